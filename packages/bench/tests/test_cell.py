"""A cell from an idle server to a record, and a record in other people's shapes; the server's answers are texts."""

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bench_support.cells import Server, document, plan, record, view
from bench_support.rendered import text_of
from bench_support.runs import BEGAN, MS, closed_loop, failed_sample, good_sample, measurement
from bezel_bench.cell.cell import measure_cell
from bezel_bench.commands.main import main
from bezel_bench.commands.render.tables import run_blocks
from bezel_bench.load.plan import Constant, PromptPlan, Replay
from bezel_bench.metrics.definitions import DEFINITIONS
from bezel_bench.report.export import as_csv, as_vllm
from bezel_bench.result.document import Slo, parse
from bezel_bench.result.records import ServedBy
from bezel_bench.server.http_probe import ProbeResponse
from bezel_bench.server.manifest import ask_server, redact_command, served_by

FIXTURES = Path(__file__).parent / "fixtures/vllm"


def test_a_cell_is_drained_counted_loaded_and_counted():
    server = Server(closed_loop(4, 10))
    result = measure_cell(plan(), server.send, view(server), lambda _: None)
    cell = result.cell
    before, after = (server.order[: server.order.index("load")], server.order[server.order.index("load") :])
    assert (before.count("look"), after.count("look")) == (2 + 3, 1 + 3)
    assert (cell.state, cell.requests, cell.users, cell.context_tokens) == ("ok", 40, 4, 100)
    assert cell.counters.gained.requests == 40
    assert cell.value("ttft_p50") == pytest.approx(100)
    assert cell.cost_usd == pytest.approx(0.001 * 10 * 0.201)
    assert (cell.window.requests_before, cell.window.requests_after) == (4, 4)
    assert [check.name for check in cell.checks if check.state == "failed"] == []
    assert result.began == BEGAN
    assert len(result.samples) == 40


def test_a_load_is_kept_whose_server_was_still_awaited_at_an_interrupt():
    server = Server(closed_loop(4, 10))
    seen = view(server)

    def ask(path, body):
        if "load" in server.order:
            raise KeyboardInterrupt
        return seen.ask(path, body)

    result = measure_cell(plan(), server.send, replace(seen, ask=ask), lambda _: None)
    assert (result.cell.state, result.cell.client.interrupted, len(result.samples)) == ("failed", True, 40)
    assert result.cell.reason.startswith("interrupted after 40 answers: run it again")
    assert result.cell.value("ttft_p50") == pytest.approx(100)


def test_a_cell_survives_its_document():
    whole = document(record(closed_loop(4, 10)))
    assert parse(whole.as_json(), "r.json") == whole


@pytest.mark.parametrize(
    ("departed", "after", "state", "line"),
    [
        (0, 0, "ok", "not judged, as no request has the kernel's stamps"),
        (MS // 4, 0, "ok", "p50 0.25, at most 0.25 (32 requests stamped)"),
        (MS // 4, 199 * MS // 2, "ok", "p50 0.75, at most 0.75 (32 requests stamped)"),
        (MS // 4, 97 * MS, "client_limited", "p50 3.2, at most 3.2 (32 requests stamped)"),
        (3 * MS, 0, "client_limited", "p50 3, at most 3 (32 requests stamped)"),
    ],
)
def test_a_cell_is_ok_only_with_a_small_part_of_the_client(departed, after, state, line):
    run = closed_loop(4, 10)
    for sample in run.samples:
        sample.departed, sample.first_after = departed and sample.sent + departed, after and sample.sent + after
    cell = record(run)
    assert (cell.cell.state, "of the ttft were its own" in cell.cell.reason) == (state, state != "ok")
    text = " ".join(text_of(run_blocks(document(cell))).split())
    assert "client's part of the ttft" in text
    assert line in text


def test_counters_that_disagree_fail_the_cell():
    cell = record(closed_loop(4, 10), off=1.05).cell
    assert cell.state == "failed"
    assert "+5.0%" in cell.reason


def test_what_cannot_fit_is_not_sent():
    wanted = plan()
    long = replace(wanted, load=replace(wanted.load, prompts=PromptPlan(input_tokens=4096, output_tokens=1)))
    server = Server(closed_loop(4, 10))
    result = measure_cell(long, server.send, view(server), lambda _: None)
    assert (result.cell.state, result.samples, server.order) == ("infeasible", None, [])
    assert "= 4097 > max_model_len 4096" in result.cell.reason


def test_a_conversation_is_as_long_as_its_last_turn():
    wanted = plan()
    turns = PromptPlan(kind="multi_turn", input_tokens=1000, output_tokens=100, turns=4)
    result = record(closed_loop(4, 10), replace(wanted, load=replace(wanted.load, prompts=turns)))
    assert (result.cell.state, "4300 prompt + 100 output" in result.cell.reason) == ("infeasible", True)


def test_a_load_above_the_platforms_concurrency_is_queueing():
    assert record(closed_loop(4, 10), instances=1, concurrency=3).cell.state == "queueing"
    assert record(closed_loop(4, 10), instances=1, concurrency=4).cell.state == "ok"


def test_failures_stand_in_the_record_with_an_example():
    run = measurement(
        [*closed_loop(4, 10).samples, *(failed_sample(40 + n, BEGAN, "http_429", detail="slow down") for n in range(2))]
    )
    cell = record(run).cell
    assert (cell.failures, cell.failure_examples) == ({"http_429": 2}, {"http_429": "slow down"})
    assert cell.state == "failed"
    assert cell.distributions["ttft"].max == pytest.approx(100)


def test_client_in_a_hurry_excuses_no_wrong_count():
    run = closed_loop(4, 10)
    run.client.loop_lag_p99_ms = 25.0
    assert record(run).cell.state == "client_limited"
    cell = record(run, off=1.5).cell
    assert cell.state == "failed"
    assert cell.reason.startswith("counters: ")
    assert "the client fell short, too: its event loop lagged by 25.0 ms" in cell.reason


@pytest.mark.parametrize(("ttft", "state"), [(100, "client_limited"), (400, "client_limited"), (600, "ok")])
def test_a_client_is_late_by_what_the_cell_measures(ttft: int, state: str):
    run = closed_loop(4, 10, lambda index, sent, user: good_sample(index, sent, user=user, ttft=ttft * MS))
    run.client.loop_lag_p99_ms = 25.0
    assert record(run).cell.state == state


def test_load_ended_by_a_hanging_server_has_failed_and_keeps_figures():
    whole = closed_loop(4, 100)
    run = measurement([*whole.samples, failed_sample(400, whole.ended, "no_answer")])
    run.client.silent_seconds = 300.0
    cell = record(run).cell
    assert cell.state == "failed"
    assert "no request was answered for 300 s" in cell.reason
    assert "ended after 400 answers" in cell.reason
    assert cell.value("ttft_p50") == pytest.approx(100)
    assert cell.client.silent_seconds == 300
    assert record(measurement(run.samples)).cell.state == "ok", "one of 401, were it not for the server"


def test_a_load_that_ended_after_failures_in_a_row_says_so():
    whole = closed_loop(4, 10)
    broken = [failed_sample(40 + number, whole.ended, "http_5xx") for number in range(200)]
    run = measurement([*whole.samples, *broken])
    run.client.failing_requests = 200
    cell = record(run).cell
    assert cell.state == "failed"
    assert "ended after 200 failures in a row" in cell.reason
    assert cell.client.failing_requests == 200
    run.client.failing_requests = 0
    assert "in a row" not in record(run).cell.reason


def test_open_loop_at_its_limit_of_requests_under_way_is_saturated():
    run = closed_loop(4, 10)
    wanted = replace(plan(), load=replace(plan().load, pattern=Constant(20.0)))
    run.client.crowd = 500
    cell = record(run, wanted).cell
    assert (cell.state, cell.client.crowd) == ("saturated", 500)
    assert "500 requests were under way" in cell.reason
    run.client.crowd = 0
    assert record(run, wanted).cell.state != "saturated"


def test_a_cell_without_a_single_request_is_recorded():
    cell = record(measurement([])).cell
    assert (cell.state, cell.reason) == ("failed", "no request was sent")


def test_a_rate_stands_where_users_would():
    wanted = plan()
    opened = replace(wanted, load=replace(wanted.load, pattern=Constant(10.0)))
    cell = record(measurement([good_sample(index, BEGAN + index * 100 * MS) for index in range(40)]), opened).cell
    assert (cell.users, cell.rate, cell.pattern) == (None, 10.0, "constant")


def test_a_long_trace_is_not_repeated_in_the_record():
    wanted = plan()
    traced = replace(wanted, load=replace(wanted.load, pattern=Replay(tuple(range(2000)))))
    assert record(closed_loop(4, 10), traced).cell.load["pattern"]["instants"].startswith("2000 instants")


# exports
def test_a_table_has_a_row_for_each_cell_and_nothing_for_what_is_not_known():
    rows = list(csv.DictReader(io.StringIO(as_csv(document(record(closed_loop(4, 10)), "simulated")))))
    assert [row["id"] for row in rows] == ["c100-u4"]
    assert float(rows[0]["ttft_p50 [ms]"]) == pytest.approx(100)
    assert (rows[0]["goodput [requests/s]"], rows[0]["rate"], rows[0]["nature"]) == ("", "", "simulated")
    assert len(rows[0]) == 1 + 15 + 1 + len(DEFINITIONS)


def test_the_shape_of_vllm_bench_is_that_of_a_recorded_one():
    run = measurement([*closed_loop(4, 10).samples, failed_sample(40, BEGAN, "timeout")])
    result = record(run, replace(plan(), slos=[Slo(metric="ttft", limit_ms=500)]))
    shape = as_vllm(document(result), result.cell, result.samples, result.began)
    recorded = json.loads((FIXTURES / "bench-serve-mtp-result-t1.json").read_text(encoding="utf-8"))
    # Of vLLM's own making: audio, and a count for each second of the clock. Drafts: where there are any.
    missing = {key for key in recorded.keys() - shape.keys() if not key.startswith("spec_decode_")}
    assert missing == {"rtfx", "max_output_tokens_per_s"}
    assert (shape["completed"], shape["failed"], shape["total_output_tokens"]) == (40, 1, 440)
    assert shape["mean_ttft_ms"] == pytest.approx(100)
    assert shape["mean_e2el_ms"] == pytest.approx(200)
    assert shape["latencies"][-1] == 0
    assert shape["errors"][-1] == "timeout"
    assert [len(gaps) for gaps in shape["itls"]] == [10] * 40 + [0]
    assert np.isclose(shape["request_throughput"], 40 / result.cell.seconds)
    json.dumps(shape, allow_nan=False)


def test_a_run_of_failures_has_no_number_that_is_none():
    result = record(measurement([failed_sample(0, BEGAN, "refused")]))
    shape = as_vllm(document(result), result.cell, result.samples, result.began)
    assert (shape["mean_ttft_ms"], shape["request_throughput"]) == (None, 0.0)
    json.dumps(shape, allow_nan=False)


@pytest.mark.slow
def test_the_command_writes_either_shape_and_names_what_is_missing(tmp_path, capsys):
    from bezel_bench.result.document import save
    from bezel_bench.result.sample_file import samples_path, write_samples

    result, path = record(closed_loop(4, 10)), tmp_path / "r.json"
    save(document(result), path)
    assert main(["export", str(path)]) == 0
    assert capsys.readouterr().out.startswith("nature,id,")
    assert main(["export", str(path), "--format", "vllm"]) != 0
    assert "names no file of samples" in capsys.readouterr().err
    samples = write_samples(samples_path(path), {result.cell.id: (result.samples, result.began)})
    save(document(result).model_copy(update={"samples": samples}), path)
    assert main(["export", str(path), "--format", "vllm", "--out", str(tmp_path / "v.json")]) == 0
    assert json.loads((tmp_path / "v.json").read_text())["completed"] == 40
    assert main(["export", str(path), "--cell", "c1"]) != 0
    assert "there is no such cell.\n   Repair: choose one of c100-u4." in capsys.readouterr().err


# manifest
def respond(path: str, body: object) -> ProbeResponse:
    assert body is None
    texts = {
        "/version": '{"version":"0.32.0"}',
        "/v1/models": json.dumps({"data": [{"id": "other"}, {"id": "m", "max_model_len": 4096}]}),
        "/metrics": 'vllm:cache_config_info{cache_dtype="auto",kv_cache_size_tokens="242944"} 1.0\n',
    }
    return ProbeResponse(200, texts[path].encode())


def test_a_server_tells_what_the_caller_does_not_know():
    report = ask_server(respond, "m")
    served = served_by(report, ServedBy(kv_cache_dtype="fp8"))
    assert (served.vllm_version, served.max_model_len, served.kv_cache_dtype) == ("0.32.0", 4096, "fp8")
    assert report.kv_cache_tokens == 242944


def test_a_server_that_tells_nothing_leaves_it_unknown():
    def nothing(*_: object) -> ProbeResponse:
        return ProbeResponse(404, b'{"detail":"Not Found"}')

    report = ask_server(nothing, "m")
    assert served_by(report, ServedBy()) == ServedBy()
    assert report.kv_cache_tokens is None


def test_a_command_is_shown_without_its_secrets():
    line = ["bezel-bench", "run", "--api-key", "sk-1", '--extra-body={"user": "x"}', "--users", "4"]
    assert redact_command(line) == [
        "bezel-bench",
        "run",
        "--api-key",
        "(hidden)",
        "--extra-body=(hidden)",
        "--users",
        "4",
    ]


def test_command_shows_variable_that_holds_its_secret():
    line = ["bezel-bench", "run", "--api-key-env", "KEY", "--header=X-Key:1", "--input-tokens", "512"]
    assert redact_command(line) == [*line[:4], "--header=(hidden)", *line[5:]]


@pytest.mark.parametrize("times", [1, 2])
def test_usage_of_twice_the_tokens_is_told_of_a_limited_client_too(times):
    """The server's own counters agree with its `usage`: only what was requested shows that both are wrong."""
    run = closed_loop(4, 10, lambda index, sent, user: good_sample(index, sent, user=user))
    for sample in run.samples:
        sample.output_tokens *= times
    run.client.busiest_cpu_share = 0.99
    cell = record(run).cell
    assert cell.state == ("client_limited" if times == 1 else "failed")
    assert ("have more tokens in `usage` than requested (22 to 22 tokens" in cell.reason) == (times == 2)
    assert "used 99% of a core" in cell.reason
