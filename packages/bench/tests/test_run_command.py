"""`bezel-bench run` from the command line: what is sent, written and printed, and which errors a user gets."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from bench_support.command_line import parse
from bench_support.http_server import Answer, Call, Server, serving
from bench_support.recorded import recorded_body, recorded_stream
from bezel_base.errors import UserError
from bezel_bench.commands.main import main
from bezel_bench.commands.measure.load_options import load_of
from bezel_bench.commands.run import plan_of as load_and_limits_of
from bezel_bench.commands.run import warm_up_of
from bezel_bench.load.plan import Burst, Closed, Constant, Poisson, Replay, Stage, Staged, Stop, Target
from bezel_bench.result.document import load as read_result
from bezel_bench.result.sample_file import read_samples

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TARGET = Target("http://127.0.0.1:1", "m")
# On a machine that does something else besides, the client says of itself that it was too slow.
WELL = {"ok", "client_limited", "busy_machine"}
STREAM = [line for _, line in recorded_stream("chat-stream-usage.txt")]


def plan_of(*arguments: str) -> Any:
    return load_of(parse(["run", "--url", TARGET.url, *arguments]), TARGET)


@pytest.fixture(scope="module")
def shared_server() -> Iterator[Server]:
    with serving() as server:
        yield server


@pytest.fixture
def server(shared_server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    """A server that answers with a recorded stream of 6 tokens, and counts nothing."""
    monkeypatch.delenv("BEZEL_SIMULATED", raising=False)

    def answer(call: Call) -> Answer | None:
        if call.path == "/v1/models":
            return Answer(json=json.loads(recorded_body("models.txt")))
        return Answer(chunks=[*STREAM]) if call.path == "/v1/chat/completions" else None

    shared_server.routes[:] = [answer]
    shared_server.calls.clear()
    return shared_server


@pytest.mark.slow
def test_a_run_is_written_whole_and_printed_and_can_be_read_again(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    out = tmp_path / "run.json"
    arguments = ["--url", server.url, "--public", "--users", "2", "--requests", "8", "--output-tokens", "6"]
    code = main(["run", *arguments, "--repeats", "2", "--slo", "ttft=60000", "--out", str(out)])
    text = capsys.readouterr().out
    result = read_result(out)
    assert [(cell.id, cell.requests) for cell in result.cells] == [("run-r0", 8), ("run-r1", 8)]
    states = {cell.state for cell in result.cells}
    assert states <= WELL
    assert code == (states != {"ok"})
    assert result.nature == "measured"
    assert result.manifest.model == "tiny-gemma4"
    assert result.samples is not None
    assert set(read_samples(tmp_path / result.samples.file, result.samples.sha256)) == {"run-r0", "run-r1"}
    assert {finding.numbers["repeats"] for finding in result.findings} == ({2} if states == {"ok"} else set())
    sent = [call.json["messages"][0]["content"] for call in server.calls if call.path == "/v1/chat/completions"]
    assert len(set(sent)) == 16
    assert len({cell.load["prompts"]["run"] for cell in result.cells if cell.load}) == 2
    for shown in (
        "(2 users, 128 + 6 tokens, 8 requests",
        "ttft",
        "goodput",
        "prompt lengths are approximate",
    ):
        assert shown in text
    assert max(len(line.replace(str(tmp_path), "")) for line in text.splitlines()) <= 120


@pytest.mark.slow
def test_run_in_which_something_is_wrong_exits_with_1_and_says_what(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    # Answers of 6 tokens where 7 were asked for.
    arguments = ["--url", server.url, "--public", "--requests", "6", "--output-tokens", "7"]
    assert main(["run", *arguments]) == 1
    assert "output_length: FAILED: 6 of 6 responses" in capsys.readouterr().out
    server.routes.insert(0, lambda call: Answer(500) if call.path == "/v1/chat/completions" else None)
    assert main(["run", *arguments, "--json"]) == 1
    (cell,) = json.loads(capsys.readouterr().out)["cells"]
    assert (cell["state"], cell["failures"], cell["distributions"]) == ("failed", {"http_5xx": 6}, {})


@pytest.mark.slow
def test_figures_of_a_simulated_server_say_so(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--url", server.url, "--public", "--requests", "4", "--output-tokens", "6"]
    main(["run", *arguments, "--simulated", "--json"])
    assert json.loads(capsys.readouterr().out)["nature"] == "simulated"
    main(["run", *arguments, "--simulated"])
    assert "simulated: no figure describes hardware" in capsys.readouterr().out


@pytest.mark.slow
def test_the_same_run_id_sends_the_same_prompts_again_and_no_id_others(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["run", "--url", server.url, "--public", "--requests", "2", "--output-tokens", "6", "--json"]
    runs = []
    for more in ((), (), ("--run-id", "x")):
        main([*arguments, *more])
        runs.append(json.loads(capsys.readouterr().out)["cells"][0]["load"]["prompts"]["run"])
    # What a result says of its run makes it again.
    main([*arguments, "--run-id", runs[2]])
    assert len({*runs}) == 3
    sent = [call.json["messages"][0]["content"] for call in server.calls if call.path == "/v1/chat/completions"]
    assert len(set(sent[:4])) == 4
    assert sent[4:6] == sent[6:8]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--url", "http://127.0.0.1:9", "--public"], "--url = http://127.0.0.1:9\n   no server responds there"),
        (["--url", "http://127.0.0.1:9", "--public", "--model", "m"], "accepts no connection"),
        (["--url", "https://127.0.0.1:9", "--public", "--ca-file", "none.pem"], "--ca-file = none.pem"),
        (
            ["--url", "http://127.0.0.1:9", "--public", "--model", "m", "--out", "none/r.json"],
            "folder does not exist",
        ),
        (
            ["--url", "http://127.0.0.1:9", "--public", "--out", "/"],
            "--out = /\n   the result would be lost",
        ),
        (["--url", "http://127.0.0.1:9", "--public", "--out", "/dev/null/r.json"], "folder does not exist"),
        (
            ["--url", "http://127.0.0.1:9", "--public", "--out", f"{'r' * 240}.json"],
            "the files beside it would",
        ),
        (["--url", "http://127.0.0.1:9", "--public", "--out", f"{'r' * 300}/r.json"], "File name too long"),
    ],
)
def test_a_user_s_mistake_is_reported_in_a_sentence(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", *arguments]) == 1
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["goodput", "--slo", "ttft_p50=1s", "--out", "/"], "--out = /\n   the result would be lost"),
        (["sweep", "--out", "/"], "--out = /\n   the result would be lost"),
        (["sweep", "--out", "r.json"], "--url = http://127.0.0.1:9\n   no server responds there"),
    ],
)
def test_mistake_of_a_sweep_or_a_search_is_reported_before_any_request(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*arguments, "--url", "http://127.0.0.1:9", "--public"]) == 1
    assert message in capsys.readouterr().err


def test_without_a_server_the_command_line_is_wrong() -> None:
    assert main(["run"]) == 2
    assert parse(["run", "--url", "http://x"]).action == "run"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "pattern", "stop"),
    [
        ([], Closed(1), Stop(requests=10)),
        (["--users", "8"], Closed(8), Stop(requests=80)),
        (["--users", "8", "--seconds", "30"], Closed(8), Stop(seconds=30.0)),
        (["--rate", "3"], Poisson(3.0), Stop(seconds=60.0)),
        (["--rate", "3", "--arrivals", "constant", "--requests", "9"], Constant(3.0), Stop(requests=9)),
        (["--rate", "3", "--burstiness", "0.5"], Burst(3.0, 0.5), Stop(seconds=60.0)),
        (["--user-stages", "4:30,8:10"], Staged("users", (Stage(4.0, 30.0), Stage(8.0, 10.0))), Stop()),
        (["--rate-stages", "0.5:30"], Staged("rate", (Stage(0.5, 30.0),)), Stop()),
    ],
)
def test_options_say_pattern_and_end(arguments: list[str], pattern: object, stop: Stop) -> None:
    load = plan_of(*arguments)
    assert (load.pattern, load.stop) == (pattern, stop)


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        ([], "unique"),
        (["--prefix-tokens", "64", "--groups", "4"], "shared_prefix"),
        (["--turns", "3"], "multi_turn"),
        (["--file", "texts"], "file"),
    ],
)
def test_options_say_the_kind_of_prompts(arguments: list[str], kind: str) -> None:
    assert plan_of(*arguments).prompts.kind == kind


def test_a_trace_is_replayed(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    trace.write_text("0\n0.5\n2\n")
    assert plan_of("--trace", str(trace)).pattern == Replay((0.0, 0.5, 2.0))
    trace.write_text("0\nsoon\n")
    with pytest.raises(UserError, match="one instant a line"):
        plan_of("--trace", str(trace))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--burstiness", "0.5"], "add --rate"),
        (["--rate", "3", "--arrivals", "burst"], "belong together"),
        (["--rate", "3", "--arrivals", "poisson", "--burstiness", "2"], "belong together"),
        (["--user-stages", "4-30"], "expected a list of stages"),
        (["--extra-body", "[]"], "expected a JSON object"),
        (["--turns", "2", "--prefix-tokens", "9"], "give one of them"),
        (["--users", "0"], "--users = 0"),
        (["--rate", "-1"], "--rate = -1"),
        (["--rate", "1", "--turns", "2"], "turns wait"),
    ],
)
def test_options_that_cannot_be_meant_are_refused(arguments: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        plan_of(*arguments)


def test_a_limit_is_a_time_with_a_unit_or_milliseconds() -> None:
    def limits(*texts: str) -> list[float]:
        slos = [word for text in texts for word in ("--slo", text)]
        return [slo.limit_ms for slo in load_and_limits_of(parse(["run", "--url", TARGET.url, *slos]))[1]]

    assert limits("ttft=500", "tpot=50.5ms", "e2e=1.5s") == [500.0, 50.5, 1500.0]
    for text in ("ttft=5m", "ttft=ms", "ttft=s", "ttft=0s", "ttft=-1ms", "ttft=nan", "ttft=infs", "ttft_p99=500ms"):
        with pytest.raises(UserError, match=r"expected a limit.\n.*e.g. ttft=500"):
            limits(text)


@pytest.mark.slow
def test_a_warm_up_is_sent_first_with_other_words_and_counts_in_no_figure(server: Server, tmp_path: Path) -> None:
    out = tmp_path / "run.json"
    arguments = [
        "--url",
        server.url,
        "--public",
        "--users",
        "2",
        "--requests",
        "8",
        "--output-tokens",
        "6",
        "--warmup",
        "5",
    ]
    main(["run", *arguments, "--repeats", "2", "--out", str(out)])
    result = read_result(out)
    assert [cell.requests for cell in result.cells] == [8, 8]
    assert "5 warm-up requests sent before the load, counted in no figure" in result.notes
    bodies = [call.body for call in server.calls if call.path == "/v1/chat/completions"]
    assert len(bodies) == 5 + 8 + 8
    assert len({str(body) for body in bodies}) == 21


def test_a_warm_up_by_time_has_the_rate_of_its_load() -> None:
    load = plan_of("--rate", "50", "--requests", "4", "--max-concurrency", "3")
    warm = warm_up_of(load, 0, 1.5)
    assert warm is not None
    assert (warm.pattern, warm.stop, warm.max_concurrency) == (Poisson(50), Stop(None, 1.5), 3)
    assert warm.prompts.run != load.prompts.run
    assert (by_users := warm_up_of(load, 9, 0.0)) is not None
    assert (by_users.pattern, by_users.stop, by_users.max_concurrency) == (Closed(8), Stop(9, None), None)
    assert warm_up_of(load, 0, 0.0) is None


def test_a_warm_up_of_less_than_nothing_is_refused(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--url", server.url, "--public", "--warmup", "-1"]) != 0
    assert "--warmup = -1" in capsys.readouterr().err
    assert server.calls == []


def test_users_of_a_rate_do_not_think() -> None:
    with pytest.raises(UserError, match="give users instead of a rate"):
        plan_of("--rate", "4", "--think-time", "1")


@pytest.mark.parametrize(
    ("arguments", "message"), [(("--users", "4"), "give a --rate"), (("--rate", "4"), "give 1 or more")]
)
def test_a_limit_of_requests_under_way_needs_a_rate_and_a_number(arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(UserError, match=message):
        plan_of(*arguments, "--max-in-flight", "0")
    assert plan_of("--rate", "4", "--max-in-flight", "9").max_in_flight == 9


def test_a_concurrency_without_a_load_is_refused() -> None:
    with pytest.raises(UserError, match="add --users 64"):
        load_of(parse(["run", "--url", TARGET.url, "--concurrency", "64"]), TARGET)
    for load in (["--users", "1"], ["--rate", "2"]):
        assert load_of(parse(["run", "--url", TARGET.url, "--concurrency", "64", *load]), TARGET)
