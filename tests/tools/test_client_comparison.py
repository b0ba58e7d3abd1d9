"""Comparison of load clients: errors against the truth, marks of busy runs, and what stands in its file and tables."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bezel_bench.load.plan import Target
from bezel_bench.server.http_probe import asker
from tests.support.needed_programs import need_program
from tools.bench.clients.client_errors import differences, errors
from tools.bench.clients.client_tables import BUSY_CORES, markdown_tables, ratio_table, spread
from tools.bench.clients.compared_loads import LOADS
from tools.bench.clients.load_client import Client, ClientFigures, Load
from tools.bench.clients.measured_row import compared_figures, failure
from tools.bench.clients.priority import HIGHEST, group_nice, highest_priority
from tools.bench.clients.rate_tables import figures, rates_table
from tools.bench.clients.result_file import Results, read_results, round_figures, write_results
from tools.bench.clients.server_clocks import ServedLoad, load_between, totals
from tools.bench.clients.watched_run import Watched, watch
from tools.bench.compare_clients import main
from tools.bench.truth.truth_server import Record, TruthServer

MS = 1_000_000


def truth(count: int = 10) -> list[Record]:
    """Responses of three tokens: 50 ms to the first, 10 ms to each other, begun 100 ms apart."""
    records = []
    for number in range(count):
        arrival = number * 100 * MS
        first, last = arrival + 50 * MS, arrival + 70 * MS
        records.append(Record(number, arrival, arrival, first, last, last, 3, "ok", (10 * MS, 10 * MS)))
    return records


def client_figures(late: float = 0.0, **fields: Any) -> ClientFigures:
    """What a client reports of them that sees each first token so many ms late."""
    exact = {"answered": 10, "seconds": 0.97, "tokens": 30, "ttft_ms": [50.0 + late] * 10, "tpot_ms": [10.0] * 10}
    return ClientFigures(**(exact | {"itl_ms": [10.0] * 20} | fields))


def test_exact_figures_have_no_error() -> None:
    result = errors(client_figures(), truth())
    assert (result.ttft_ms_p50, result.ttft_ms_p99, result.itl_ms_p99, result.paired_ms_p99) == (0, 0, 0, None)
    assert (result.tpot, result.tokens, result.answers) == (0, 0, 0)
    assert (result.rate, result.throughput) == pytest.approx((0, 0))


def test_late_tokens_and_lost_responses_are_errors() -> None:
    instants = [[one.arrival, one.first + 3 * MS, one.last] for one in truth()]
    result = errors(client_figures(2.0, itl_ms=[8.0] * 20, answered=9, instants=instants), truth())
    assert (result.ttft_ms_p99, result.itl_ms_p50, result.paired_ms_p99) == pytest.approx((2, 2, 3))
    assert (result.answers, result.rate) == (-1, pytest.approx(-0.1))


def test_chunks_read_together_are_compared_by_quantiles() -> None:
    assert max(differences([10.0] * 5, [10.0] * 9)) == 0
    assert max(differences([20.0] * 5, [10.0] * 9)) == 10
    assert differences([], [10.0]) == []


def run(client: str, load: str, round_: int, cpu: float = 1.0, others: float = 0.0, **more: Any) -> dict[str, Any]:
    """A measurement, as the file holds it."""
    row: dict[str, Any] = {
        "client": client,
        "load": load,
        "round": round_,
        "cpu_seconds": cpu,
        "others": others,
        "seconds": 2.0,
    }
    row |= {
        "answered": 1000,
        "true_tokens": 1000,
        "true_seconds": 1.0,
        "at_once": 10,
        "server_cpu_seconds": 0.5,
        "state": "ok",
        "requests": 99,
        "arrived": 99,
    }
    row |= dict.fromkeys(("first_seconds", "first_cpu_seconds", "memory_mib", "ttft_ms_p50", "ttft_ms_p99"), 0.1)
    row |= dict.fromkeys(("paired_ms_p99", "itl_ms_p50", "itl_ms_p99", "tpot", "throughput"))
    return row | more


def test_tables_hold_medians_ranges_and_the_start_left_out() -> None:
    rows = [run("a", "requests", number, cpu) for number, cpu in ((1, 2.0), (2, 3.0), (3, 4.0))]
    rows += [run("a", "requests-short", number, 1.0, answered=500) for number in (1, 2, 3)]
    rows += [
        run("a", "64", 1, state="ok"),
        run("a", "64", 2, state="busy_machine"),
        run("a", "64", 3, state="", arrived=90),
    ]
    text = markdown_tables(Results("2 cores", "2026-01-01", {"a": "a run"}, rows))
    assert "| a | 4,000.0 (2,000.0 to 6,000.0) | 1,000 | 50% | not measured | 3, 0 |" in text
    assert "ok 1, busy_machine 1, sent 90 of 99: 1 | 3 |" in text
    assert "0 of 9 runs" in text
    assert "```text\na run\n```" in text


def test_a_ratio_is_of_two_runs_of_one_round() -> None:
    rows = [run("vllm-rs 1", "small", number, cpu) for number, cpu in ((1, 1.0), (2, 2.0), (3, 4.0))]
    rows += [run("a", "small", number, cpu) for number, cpu in ((1, 2.0), (2, 1.0), (3, 4.0), (4, 9.0))]
    rows += [run("a", "long", 1), {"client": "vllm-rs 1", "load": "long", "round": 1, "others": 0.0, "failed": "late"}]
    assert ratio_table(rows).splitlines()[-1] == "| a |  |  |  |  | 1.00 (0.50 to 2.00) |  |  |  |  |"
    assert ratio_table([row for row in rows if row["client"] == "a"]) == "", "nothing to compare with"


def test_busy_runs_are_left_out_where_enough_are_idle() -> None:
    rows = [run("a", "small", number, 1.0) for number in (1, 2, 3)]
    busy = run("a", "small", 4, 9.0, others=2 * BUSY_CORES)
    assert "| 1.00 |" in markdown_tables(Results("", "", {}, [*rows, busy]))
    few = markdown_tables(Results("", "", {}, [rows[0], busy]))
    assert "| 5.00 (1.00 to 9.00) |" in few
    assert "1 of 2 runs" in few


def test_a_client_that_does_not_end_has_a_row() -> None:
    rows = [{"client": "b", "load": "64", "round": 1, "others": 0.0, "failed": "not finished within 180 s"}]
    assert "| b | not finished within 180 s |" in markdown_tables(Results("", "", {}, rows))
    assert spread([], "{}") == ""


def test_the_file_returns_what_was_written(tmp_path: Path) -> None:
    results = Results(
        "2 cores",
        "2026-01-01",
        {"a": "a run"},
        [round_figures({"client": "a", "load": "64", "round": 1, "x": 1.23456789})],
    )
    write_results(tmp_path / "file.json", results)
    again = read_results(tmp_path / "file.json")
    assert again == results
    assert again.rows[0]["x"] == 1.2346
    assert [again.has(*one) for one in (("a", "64", 1), ("a", "64", 2), ("b", "64", 1))] == [True, False, False]


def test_a_slow_client_sends_fewer_requests_and_rounds() -> None:
    fast, slow = Client(), Client()
    fast.name, slow.name, slow.slow, slow.requests = "bezel", "slow", True, (500, 50)
    by_name = {load.name: load for load in LOADS}
    assert [by_name["requests-short"].sent_by(client).requests for client in (fast, slow)] == [2_000, 50]
    assert [by_name["64"].sent_by(client).requests for client in (fast, slow)] == [384, 384]
    assert [by_name["streams"].rounds_of(client) for client in (fast, slow)] == [1, 0]
    assert [by_name["tls"].rounds_of(client) for client in (fast, slow)] == [3, 0]
    assert by_name["long"].rounds_of(slow) == by_name["long"].rounds_of(fast) >= 10


BEFORE = (
    'vllm:request_success_total{finished_reason="stop"} 1\nvllm:request_success_total{finished_reason="length"} 4\n'
)
AFTER = (
    'vllm:request_success_total{finished_reason="length"} 9\nvllm:generation_tokens_total 64\n'
    "vllm:time_to_first_token_seconds_sum 0.4\nvllm:time_to_first_token_seconds_count 4\n"
)


def test_the_servers_clocks_are_means_between_two_readings() -> None:
    seen = load_between(totals(BEFORE), totals(AFTER))
    assert seen == ServedLoad(4, 64, pytest.approx(100.0), None)


def test_a_rate_shows_the_excess_over_the_servers_clock() -> None:
    row = figures(client_figures(2.0), ServedLoad(9, 30, 50.0, None))
    assert (row["ttft_over_ms"], row["tpot_over_ms"], row["ttft_p99"]) == (2.0, None, 52.0)
    text = rates_table([row | {"client": "a", "rate": 2.0, "round": 1}])
    assert "| 2/s, a |" in text
    assert "| 10, 9 | 30, 30 |" in text


@pytest.mark.slow
def test_a_watched_command_is_ended_at_its_limit(tmp_path: Path) -> None:
    done = watch(["sh", "-c", "echo said; exit 3"], {}, None, tmp_path, 60, None)
    assert (done.exit_code, done.output) == (3, "said\n")
    endless = watch(["sh", "-c", "sleep 60"], {}, None, tmp_path, 0.05, None)
    assert endless.exit_code is None
    assert endless.memory_mib > 0


@pytest.mark.slow
def test_the_server_announces_and_logs_the_gaps(tmp_path: Path) -> None:
    need_program("go", "builds the server")
    with TruthServer(tmp_path, None, "-itl", "2ms", "-gaps", "-announce") as server:
        ask = asker(Target(server.url, "mock", public=True), dict)
        assert ask("/v1/chat/completions", {"max_tokens": 3}).status == 200
        assert server.output is not None
        announced = int(server.output.readline())
    (record,) = server.records()
    assert record.arrival == announced
    assert len(record.gaps) == 2
    assert sum(record.gaps) == record.last - record.first


def test_a_measurement_restores_the_priority() -> None:
    def priorities() -> tuple[int, int]:
        return os.getpriority(os.PRIO_PROCESS, 0), group_nice(os.getpid())

    before = priorities()
    with highest_priority():
        raised = priorities()
    # A user without privilege keeps the ordinary one.
    assert raised[0] in {HIGHEST, before[0]}
    assert priorities() == before


@pytest.mark.parametrize("pid", [2, 2**22 + 1], ids=["kernel-thread", "no-process"])
def test_a_process_without_a_group_has_no_nice_value(pid: int) -> None:
    assert group_nice(pid) == 0


def test_wrong_options_are_named_all_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = {"only": "65,small", "vllm": tmp_path, "compiled": tmp_path / "none", "document": tmp_path / "absent.md"}
    with pytest.raises(SystemExit):
        main([f"--{name}={value}" for name, value in wrong.items()])
    errors_of_options = capsys.readouterr().err
    for problem in (
        f"--vllm: no program {tmp_path}/vllm",
        f"--compiled: no program {tmp_path}/none",
        "give its folder with --tokenizer",
        f"--document {tmp_path}/absent.md: no such file",
    ):
        assert problem in errors_of_options
    assert "--only 65: no such load; there are" in errors_of_options


def test_what_a_client_did_not_do_is_no_figure() -> None:
    client, ended = Client(), Watched(1.0, 1.0, None, 10.0, 0, "")
    assert failure(client, ended) == ""
    assert failure(client, replace(ended, exit_code=1)) == "ended with 1"
    assert failure(client, replace(ended, exit_code=None)) == "not finished within 180 s"
    load = Load("", 8, 10, 3)
    assert "failed" in compared_figures(client_figures(answered=0), load, truth())
    assert compared_figures(client_figures(), load, truth())["at_once"] == 1
