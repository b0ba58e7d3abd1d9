"""Logs of a deployment at the wire: the right log, bounded, in pages, and fit for a terminal."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bezel.operations.log_reading.bounds import LogsError
from bezel.operations.log_reading.entries import level_of, quote_value
from bezel.operations.logs.logs import Logs, LogsArguments, logs
from bezel_localcloud.services.logging.filters import parse_filter
from tests.support.operations.deployed import SERVICE, Deployed, live_service, service_resource, state_of
from tests.support.operations.log_server import REQUESTS, SYSTEM, LogServer
from tests.support.rest.fake_google import Answer, Call


@pytest.fixture
def log(cloud: Deployed) -> LogServer:
    cloud.keep("dev", state_of(service_resource(), url=cloud.server.url))
    cloud.live[SERVICE] = live_service()
    return LogServer(cloud)


def read(log: LogServer, **arguments: Any) -> Logs:
    return logs(log.cloud.context, LogsArguments(stack="dev", **arguments))


def texts(logs: Logs) -> list[str]:
    return [line.text for line in logs.lines]


def test_the_newest_lines_of_the_newest_revision_come_oldest_first(log: LogServer) -> None:
    log.add("of an older revision", 1, revision="llm-00001-abc")
    for number in range(5):
        log.add(f"line {number}", 10 + number)
    log.add("GET /v1/models", 20, log=REQUESTS, httpRequest={"status": 200})
    page = read(log, limit=3)
    assert texts(page) == ["line 2", "line 3", "line 4"]
    assert (page.revision, page.is_cut) == ("llm-00002-abc", True)
    assert texts(read(log, revision="all", limit=9))[0] == "of an older revision"
    assert texts(read(log, revision="llm-00001-abc")) == ["of an older revision"]


@pytest.mark.slow
def test_pages_show_every_line_once_though_many_have_the_same_instant(log: LogServer) -> None:
    for number in range(23):
        log.add(f"line {number}", 60 + number // 10)
    log.page = 4
    shown: list[str] = []
    page = None
    for _ in range(9):
        logs_page = read(log, limit=3, page=page)
        shown = [*texts(logs_page), *shown]
        page = logs_page.older
        if page is None:
            break
    assert shown == [f"line {number}" for number in range(23)]


def test_each_source_is_a_log_of_its_own(log: LogServer) -> None:
    log.add("printed", 1)
    log.add("Container called exit(1).", 2, log=SYSTEM, severity="ERROR")
    url = "https://llm.example/v1/models?key=AIzaPlantedPlantedPlanted"
    log.add("", 3, log=REQUESTS, httpRequest={"requestMethod": "GET", "requestUrl": url, "status": 200})
    assert texts(read(log)) == ["printed", "Container called exit(1)."]
    assert texts(read(log, source="container")) == ["printed"]
    assert texts(read(log, source="platform")) == ["Container called exit(1)."]
    assert texts(read(log, source="requests")) == ["GET https://llm.example/v1/models 200"]


def test_lines_are_chosen_by_severity_text_and_age(log: LogServer) -> None:
    log.add("(EngineCore pid=7) ERROR 11-21 10:00:00 [core.py:7] it broke", 60)
    log.add("(APIServer pid=7) INFO 11-21 10:00:00 [core.py:7] it runs", 120)
    log.add('a "quoted" \\ text', 180, severity="WARNING")
    log.add("", 240, jsonPayload={"message": "structured"})
    del log.entries[-1]["textPayload"]
    assert [line.severity for line in read(log, severity="ERROR").lines] == ["ERROR"]
    assert len(read(log, severity="WARNING").lines) == 2
    assert texts(read(log, text='"QUOTED" \\')) == ['a "quoted" \\ text']
    assert texts(read(log, text="STRUCT")) == ["structured"]
    assert texts(read(log, since="10m"))[-1] == "structured"
    assert texts(read(log, since="2026-09-21T14:04:00Z")) == ["structured"]
    assert read(log, since="5m").lines == ()


@pytest.mark.parametrize(
    "wrong",
    [{"since": "yesterday"}, {"since": "9" * 20}, {"page": "x"}, {"page": '2026-09-21T14:00:00Z" OR "a#1'},
     {"node": "other"}, {"source": "console"}],
)  # fmt: skip
def test_an_argument_that_fits_no_log_is_refused(log: LogServer, wrong: dict[str, str]) -> None:
    with pytest.raises(LogsError):
        read(log, **wrong)


@pytest.mark.parametrize("wrong", [{"revision": "llm-00001-abc"}, {"follow": True}])
def test_what_a_console_does_not_have_is_refused_by_its_name(log: LogServer, wrong: dict[str, Any]) -> None:
    kind = "pulumi-python:dynamic/components:TpuRequest"
    lease = {"name": "bezel-v6e1", "project": "acme", "zones": [{"zone": "us-east5-a"}], "back_end": "queued_resource"}
    resource = {"urn": "urn:a", "type": kind, "custom": True, "id": "a", "inputs": {}, "outputs": lease}
    log.cloud.keep("v6e1", state_of(service_resource(), resource))
    with pytest.raises(LogsError) as refused:
        logs(log.cloud.context, LogsArguments(stack="v6e1", **wrong))
    (problem,) = refused.value.problems
    assert problem.key == f"--{next(iter(wrong))}"
    # The gateway's own log has both.
    log.add("proxied", 1)
    wrong = {"revision": "llm-00002-abc"} if "revision" in wrong else {"follow": False}
    assert texts(logs(log.cloud.context, LogsArguments(stack="v6e1", source="container", **wrong))) == ["proxied"]


@pytest.mark.slow
@settings(max_examples=60)
@given(st.text(max_size=60))
def test_no_text_leaves_its_quotes_in_the_filter(text: str) -> None:
    holds = parse_filter(f'textPayload:{quote_value(text)} AND severity="ERROR"').holds
    assert holds({"textPayload": f"a {text} b", "severity": "ERROR"})
    assert not holds({"textPayload": f"a {text} b", "severity": "INFO"})


def test_lines_are_bounded_printable_and_without_credentials(log: LogServer) -> None:
    log.add("\x1b[31mtoken hf_plantedplantedplanted\x1b[0m\nsecond \x07line", 1)
    log.add("-----BEGIN PRIVATE KEY-----", 2)
    log.add("planted+key+body", 3)
    log.add("-----END PRIVATE KEY-----", 4)
    log.add("x" * 9000, 5)
    page = read(log)
    assert texts(page)[:2] == ["token [redacted]", "second line"]
    assert len(texts(page)[-1]) < 2010
    assert "planted" not in page.text() + page.model_dump_json()


@pytest.mark.slow
def test_a_log_of_any_size_gives_a_bounded_result(log: LogServer) -> None:
    for number in range(120):
        log.add("word " * 1000 + str(number), number)
    page = read(log, limit=5000)
    assert page.is_cut
    assert sum(map(len, texts(page))) < 300_000


@pytest.mark.slow
def test_following_shows_each_further_line_once_until_the_deadline(log: LogServer) -> None:
    log.add("first", 10)
    shown: list[str] = []

    def show(line: str) -> None:
        if not shown:  # what is there was read
            log.add("second", 12)
            log.add("late", 9)
        shown.append(line)

    object.__setattr__(log.cloud.context, "output", show)
    page = read(log, follow=True, deadline=0.05)
    assert texts(page) == ["first", "late", "second"] or texts(page) == ["first", "second", "late"]
    assert len(shown) == 3
    assert page.notes == ("ended after 0.05 s",)
    assert "first" not in page.text()  # it was shown already


@pytest.mark.slow
def test_following_shows_no_earlier_line_that_the_limit_left_out(log: LogServer) -> None:
    for number in range(5):
        log.add(f"earlier {number}", 5 + number)
    shown: list[str] = []
    object.__setattr__(log.cloud.context, "output", shown.append)

    def add_after_the_look_at_what_was_left_out(call: Call) -> Answer | None:
        answer = log.answer(call)
        if answer is not None and call.json["orderBy"] == "timestamp asc" and len(log.entries) == 5:
            log.add("further", 12)
            log.add("late", 6)
        return answer

    log.cloud.server.routes.insert(0, add_after_the_look_at_what_was_left_out)
    read(log, follow=True, deadline=0.05, limit=1)
    assert shown[0].endswith("earlier 4")
    assert sorted(line.rpartition(" ")[2] for line in shown[1:]) == ["further", "late"]


def test_a_line_names_its_container_where_there_are_several(log: LogServer) -> None:
    log.add("served", 10, labels={"container_name": "llm"})
    log.add("Container called exit(0).", 11, log=SYSTEM)
    assert "[container] served" in read(log).text()
    log.add("error Exporting failed.", 12, labels={"container_name": "collector"})
    page = read(log)
    assert [line.container for line in page.lines] == ["llm", None, "collector"]
    for shown in ("[container llm] served", "[container collector] error Exporting failed.", "[platform] Contai"):
        assert shown in page.text()


def test_health_checks_that_passed_show_only_where_they_are_asked_for(log: LogServer) -> None:
    passed = '(APIServer pid=7) INFO:     169.254.1.1:41 - "GET /health HTTP/1.1" 200 OK'
    failed = 'INFO:     169.254.1.1:41 - "GET /health HTTP/1.1" 503 Service Unavailable'
    asked = 'INFO:     10.0.0.1:41 - "POST /v1/chat/completions HTTP/1.1" 200 OK'
    scraped = 'INFO:     127.0.0.1:0 - "GET /metrics HTTP/1.1" 200 OK'
    for moment, text in enumerate((failed, asked, *[passed] * 4, scraped, "last"), 10):
        log.add(text, moment)
    log.add("", 20, jsonPayload={"message": "structured"})
    shown = read(log, limit=4)
    assert texts(shown)[:3] == [failed, asked, "last"]
    assert (len(shown.lines), shown.is_cut) == (4, False)
    assert texts(read(log, source="container")).count(passed) == 4
    assert scraped in texts(read(log, source="container"))
    assert texts(read(log, text="/health")) == [failed, *[passed] * 4]


def test_the_level_of_a_line_is_read_where_vllm_writes_it() -> None:
    assert level_of("(EngineCore pid=7) WARNING 11-21 10:00:00 [x.py:1] ERROR in a text") == "WARNING"
    assert level_of("INFO:     Started server process [1]") == "INFO"
    assert level_of("no INFORMATION here") == ""


STDERR = "projects/acme/logs/run.googleapis.com%2Fstderr"


def refused_newest(log: LogServer) -> None:
    """The newest revision failed, and an older one serves."""
    log.cloud.live[SERVICE] = live_service(
        latestReadyRevision=f"{SERVICE}/revisions/llm-00001-abc",
        trafficStatuses=[
            {"type": "TRAFFIC_TARGET_ALLOCATION_TYPE_REVISION", "revision": "llm-00001-abc", "percent": 100}
        ],
        terminalCondition={"type": "Ready", "state": "CONDITION_FAILED"},
    )


def test_the_serving_revision_is_read_beside_a_refused_newest_one(log: LogServer) -> None:
    refused_newest(log)
    log.add("it serves", 1, revision="llm-00001-abc")
    log.add("it failed", 2)
    log.add("of a third", 3, revision="llm-00000-abc")
    page = read(log)
    assert texts(page) == ["it serves", "it failed"]
    assert page.revision is None
    shown = page.text().splitlines()
    assert shown[0] == "llm-00001-abc: 100 % of the traffic"
    assert shown[1] == "llm-00002-abc: the newest one, which did not become ready, no traffic"
    assert [line.split("[container] ")[1] for line in shown[2:]] == [
        "llm-00001-abc: it serves",
        "llm-00002-abc: it failed",
    ]


def test_a_revision_without_a_line_among_the_newest_is_named(log: LogServer) -> None:
    refused_newest(log)
    log.add("it failed", 1)
    for number in range(9):
        log.add(f"it serves {number}", 2 + number, revision="llm-00001-abc")
    note = "no line of llm-00002-abc is among the newest 5: --revision llm-00002-abc reads it"
    assert read(log, limit=5).notes == (note,)
    assert texts(read(log, revision="llm-00002-abc")) == ["it failed"]


def test_requests_that_the_platform_refused_are_shown_unasked(log: LogServer) -> None:
    aborted = "The request was aborted because there was no available instance."
    log.add(aborted, 1, log=REQUESTS, httpRequest={"requestMethod": "GET", "requestUrl": "https://a/b", "status": 429})
    log.add("", 2, log=REQUESTS, httpRequest={"requestMethod": "GET", "requestUrl": "https://a/b", "status": 200})
    log.add("", 3, log=REQUESTS, httpRequest={"requestMethod": "GET", "requestUrl": "https://a/b", "status": 404})
    for entry in log.entries[-2:]:
        del entry["textPayload"]
    assert texts(read(log)) == [f"GET https://a/b 429 {aborted}"]
    assert len(read(log, source="requests").lines) == 3


TRACEBACK = (
    "Traceback (most recent call last):",
    '  File "vllm/entrypoints/cli/main.py", line 120, in main',
    "    args.dispatch_function(args)",
    "    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^",
    "pydantic_core._pydantic_core.ValidationError: 1 validation error for VllmConfig",
    "  Value error, the model does not fit [type=value_error]",
    "    For further information visit https://errors.pydantic.dev/2.14/v/value_error",
    "During handling of the above exception, another exception occurred:",
    "RuntimeError: Engine core initialization failed.",
)


def test_lines_of_a_traceback_without_a_level_are_errors(log: LogServer) -> None:
    log.add("(APIServer pid=7) INFO 11-21 10:00:00 [core.py:7] it runs", 1)
    log.add("Loading safetensors checkpoint shards: 100% Completed | 1/1 [00:00<00:00, 164.03it/s]", 2, log=STDERR)
    for number, text in enumerate(TRACEBACK):
        log.add(text, 10 + number, log=STDERR)
        log.add("(APIServer pid=7) INFO 11-21 10:00:00 [core.py:7] meanwhile", 10 + number)
    log.add("INFO:     Shutting down", 50, log=STDERR)
    log.add("a word of no error", 51, log=STDERR)
    page = read(log, severity="ERROR")
    assert texts(page) == list(TRACEBACK)
    assert {line.severity for line in page.lines} == {"ERROR"}
    assert texts(read(log, severity="ERROR", text="ENGINE CORE")) == [TRACEBACK[-1]]
    assert texts(read(log, severity="ERROR", limit=2)) == list(TRACEBACK[-2:])
    # Without a severity the same lines have that of their error, and no other.
    assert [line.text for line in read(log).lines if line.severity == "ERROR"] == list(TRACEBACK)


@pytest.mark.parametrize(
    "text",
    [
        "vllm serve: error: unrecognized arguments: --no-such-option",
        "Fatal Python error: Segmentation fault",
        "terminate called after throwing an instance of 'c10::Error'",
        "Process EngineCore:",
        "  + Exception Group Traceback (most recent call last):",
        "huggingface_hub.errors.HFValidationError: Repo id must be in the form 'repo_name'",
        "[E1127 18:17:28.972110719 ProcessGroup.cpp:68] it failed",
    ],
)
def test_an_error_that_no_traceback_precedes_is_one(log: LogServer, text: str) -> None:
    log.add(text, 1, log=STDERR)
    assert texts(read(log, severity="ERROR")) == [text]


@pytest.mark.parametrize(
    "text",
    [
        "W1127 18:16:54.870000 3528 torch/utils/flop_counter.py:29] triton not found",
        "usage: vllm serve [model_tag] [options]",
        "INFO:     Application startup complete.",
        "a plain line",
        "no Traceback (most recent call last): in the middle",
    ],
)
def test_a_line_without_a_level_that_is_no_error_stays_hidden(log: LogServer, text: str) -> None:
    log.add(text, 1, log=STDERR)
    assert texts(read(log, severity="ERROR")) == []
