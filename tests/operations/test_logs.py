"""Logs of a deployment at the wire: the right log, bounded, in pages, and fit for a terminal."""

import threading
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bezel.localcloud.services.logging.filters import parse_filter
from bezel.operations.log_reading.bounds import LogsError
from bezel.operations.log_reading.entries import level_of, quoted
from bezel.operations.logs import Logs, LogsArguments, logs
from tests.support.operations.deployed import SERVICE, Deployed, live_service, service_resource, state_of
from tests.support.operations.log_server import REQUESTS, SYSTEM, LogServer


@pytest.fixture
def log(cloud: Deployed) -> LogServer:
    cloud.keep("dev", state_of(service_resource(), url=cloud.server.url))
    cloud.live[SERVICE] = live_service()
    return LogServer(cloud)


def read(log: LogServer, **arguments: Any) -> Logs:
    return logs(log.cloud.context, LogsArguments(stack="dev", **arguments))


def texts(found: Logs) -> list[str]:
    return [line.text for line in found.lines]


def test_the_newest_lines_of_the_newest_revision_come_oldest_first(log: LogServer) -> None:
    log.add("of an older revision", 1, revision="llm-00001-abc")
    for number in range(5):
        log.add(f"line {number}", 10 + number)
    log.add("GET /v1/models", 20, log=REQUESTS, httpRequest={"status": 200})
    found = read(log, limit=3)
    assert texts(found) == ["line 2", "line 3", "line 4"]
    assert (found.revision, found.is_cut) == ("llm-00002-abc", True)
    assert texts(read(log, revision="all", limit=9))[0] == "of an older revision"
    assert texts(read(log, revision="llm-00001-abc")) == ["of an older revision"]


def test_pages_show_every_line_once_though_many_have_the_same_instant(log: LogServer) -> None:
    for number in range(23):
        log.add(f"line {number}", 60 + number // 10)
    log.page = 4
    shown: list[str] = []
    page = None
    for _ in range(9):
        found = read(log, limit=3, page=page)
        shown = [*texts(found), *shown]
        page = found.older
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
@settings(max_examples=200)
@given(st.text(max_size=60))
def test_no_text_leaves_its_quotes_in_the_filter(text: str) -> None:
    holds = parse_filter(f'textPayload:{quoted(text)} AND severity="ERROR"').holds
    assert holds({"textPayload": f"a {text} b", "severity": "ERROR"})
    assert not holds({"textPayload": f"a {text} b", "severity": "INFO"})


def test_lines_are_bounded_printable_and_without_credentials(log: LogServer) -> None:
    log.add("\x1b[31mtoken hf_plantedplantedplanted\x1b[0m\nsecond \x07line", 1)
    log.add("-----BEGIN PRIVATE KEY-----", 2)
    log.add("planted+key+body", 3)
    log.add("-----END PRIVATE KEY-----", 4)
    log.add("x" * 9000, 5)
    found = read(log)
    assert texts(found)[:2] == ["token [redacted]", "second line"]
    assert len(texts(found)[-1]) < 2010
    assert "planted" not in found.text() + found.model_dump_json()


@pytest.mark.slow
def test_a_log_of_any_size_gives_a_bounded_result(log: LogServer) -> None:
    for number in range(120):
        log.add("word " * 1000 + str(number), number)
    found = read(log, limit=5000)
    assert found.is_cut
    assert sum(map(len, texts(found))) < 300_000


@pytest.mark.slow
def test_following_shows_each_further_line_once_until_the_deadline(log: LogServer) -> None:
    log.add("first", 10)
    shown: list[str] = []
    object.__setattr__(log.cloud.context, "output", shown.append)
    threading.Timer(0.1, lambda: (log.add("second", 12), log.add("late", 9))).start()
    found = read(log, follow=True, deadline=0.4)
    assert texts(found) == ["first", "late", "second"] or texts(found) == ["first", "second", "late"]
    assert len(shown) == 3
    assert found.notes == ("ended after 0.4 s",)
    assert "first" not in found.text()  # it was shown already


@pytest.mark.slow
def test_following_shows_no_earlier_line_that_the_limit_left_out(log: LogServer) -> None:
    for number in range(5):
        log.add(f"earlier {number}", 5 + number)
    shown: list[str] = []
    object.__setattr__(log.cloud.context, "output", shown.append)
    threading.Timer(0.1, lambda: (log.add("further", 12), log.add("late", 6))).start()
    read(log, follow=True, deadline=0.4, limit=1)
    assert shown[0].endswith("earlier 4")
    assert sorted(line.rpartition(" ")[2] for line in shown[1:]) == ["further", "late"]


def test_the_level_of_a_line_is_read_where_vllm_writes_it() -> None:
    assert level_of("(EngineCore pid=7) WARNING 11-21 10:00:00 [x.py:1] ERROR in a text") == "WARNING"
    assert level_of("INFO:     Started server process [1]") == "INFO"
    assert level_of("no INFORMATION here") == ""
