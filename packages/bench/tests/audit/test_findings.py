"""Each fault of a table is named where it is, and not where the same data are as they should be."""

from __future__ import annotations

import json
import random
from pathlib import Path

from bench_support.audited_files import CLEAN, HEAD, audit, grid
from bezel_bench.audit import findings
from bezel_bench.audit.runner import audit_files


def test_a_clean_grid_is_not_accused(tmp_path: Path) -> None:
    assert not audit(tmp_path, v6e1_12b_csv=grid(CLEAN))


def test_second_run_in_one_file_is_found_and_numbered_repeats_are_not(tmp_path: Path) -> None:
    again = grid(CLEAN, scale=0.87).removeprefix(HEAD)
    assert audit(tmp_path, a_csv=grid(CLEAN) + again) == {findings.MEANS}
    lines = [f"{line},0" for line in grid(CLEAN).splitlines()[1:]] + [f"{line},1" for line in again.splitlines()]
    assert not audit(tmp_path, a_csv=HEAD.strip() + ",repeat\n" + "\n".join(lines) + "\n")


def test_the_mean_of_two_files_is_found_and_a_third_run_is_not(tmp_path: Path) -> None:
    one, two = grid(CLEAN), grid(CLEAN, scale=0.86)
    mean = grid({key: [round(value, 2) * 0.93 for value in line] for key, line in CLEAN.items()})
    assert findings.MEANS in audit(tmp_path, a_csv=one, b_csv=two, c_csv=mean)
    assert findings.MEANS not in audit(tmp_path, a_csv=one, b_csv=two, c_csv=grid(CLEAN, scale=0.94))


def test_copy_under_another_label_is_found_and_another_run_is_not(tmp_path: Path) -> None:
    assert findings.COPIES in audit(tmp_path, v6e1_12b_csv=grid(CLEAN), v6e1_e4b_csv=grid(CLEAN))
    assert not audit(tmp_path, v6e1_12b_csv=grid(CLEAN), v6e1_e4b_csv=grid(CLEAN, scale=1.31))


def test_a_queue_left_over_is_found_after_the_cell_that_left_it(tmp_path: Path) -> None:
    """20 % of 512 users at 44.72/s are 2.3 s of work; 1 / 0.39 - 1 / 3.5 are 2.3 s."""
    before = grid(CLEAN).replace("64,512,44.72,req/s,100,ok", "64,512,44.72,req/s,80,timeout")
    late = before.replace("256,1,3.52", "256,1,0.39")
    assert audit(tmp_path, a_csv=late) == {findings.DRAIN}
    assert not audit(tmp_path, a_csv=before.replace("256,1,3.52", "256,1,0.03")), "30 s are not what was left"
    assert not audit(tmp_path, a_csv=late.replace("80,timeout", "100,ok")), "nothing was left"
    assert not audit(tmp_path, a_csv=late.replace("16,1,3.81", "16,1,0.39")), "so is a cell that follows none"
    assert not audit(tmp_path, a_csv=before.replace("64,1,3.77", "64,1,0.39")), "it follows another cell"


def test_a_queue_left_over_is_found_whatever_the_rate_counts(tmp_path: Path) -> None:
    lines = [line.split(",") for line in grid(CLEAN).splitlines()[1:]]
    for line in lines:
        if line[:2] == ["64", "512"]:
            line[4:] = ["80", "timeout"]
        if line[:2] == ["256", "1"]:
            line[2] = "0.39"
    for unit, output in (("input tok/s", 0), ("prompt tok/s", 0), ("output tok/s", 0), ("total tok/s", 128)):
        rows = ""
        for context, users, value, _, success, state in lines:
            each = {"input": int(context), "prompt": int(context), "total": int(context) + 128}.get(
                unit.split()[0], 128
            )
            rows += f"{context},{users},{float(value) * each:.2f},{unit},{success},{state},{output or ''}\n"
        assert audit(tmp_path, a_csv=f"{HEAD.strip()},output_tokens\n{rows}") == {findings.DRAIN}, unit


def test_a_queue_left_over_is_found_by_the_numbers_of_requests_too(tmp_path: Path) -> None:
    """600 of 1000 requests timed out: 60 % of 256 users at 20/s are 7.7 s; 8 / 0.93 - 8 / 10 are 7.8 s."""
    head = "context_tokens,users,requests_per_second,requests,completed,status\n"
    before = "".join(f"{c},8,10.0,8,8,ok\n{c},64,21.0,64,64,ok\n{c},256,20.0,1000,1000,ok\n" for c in (16, 64))
    lossy = before.replace("256,20.0,1000,1000,ok", "256,20.0,1000,400,timeout", 1)
    late = lossy.replace("64,8,10.0", "64,8,0.93")
    twin = before.replace("64,8,10.0", "64,8,0.93")
    assert audit(tmp_path, a_csv=head + late + "128,8,9.7,8,8,ok\n128,64,20.0,64,64,ok\n128,256,19,256,256,ok\n") == {
        findings.DRAIN
    }
    assert not audit(tmp_path, a_csv=head + twin)


def test_totals_that_say_so_are_no_mixed_unit_but_a_question(tmp_path: Path) -> None:
    text = "".join(f"{context},{users},{9 * context},total tok/s,100,ok\n" for context in (64, 256) for users in (1, 8))
    assert not audit(tmp_path, a_csv=HEAD + text)
    assert {question.kinds for question in audit_files([tmp_path / "a.csv"]).questions} >= {(findings.UNITS,)}
    assert audit(tmp_path, a_csv=HEAD + text.replace("total tok/s", "tok/s")) == {findings.UNITS}


def scattered_grid(values: dict[int, list[float]], factor: float = 1.0) -> str:
    """A grid with the scatter of a run."""
    dice = random.Random(5)  # noqa: S311 - simulated
    return grid(
        {key: [value * dice.uniform(0.97, 1.03) for value in line] for key, line in values.items()}, scale=factor
    )


def test_multiplied_or_rounded_copy_is_found_and_a_repeat_is_not(tmp_path: Path) -> None:
    run = scattered_grid(CLEAN)
    scaled_run, rounded = scattered_grid(CLEAN, 1.01), scattered_grid(CLEAN, 0.9999999).replace("0,req/s", ",req/s")
    assert audit(tmp_path, a_csv=run, b_csv=scaled_run) == {findings.COPIES}
    assert audit(tmp_path, a_csv=run, b_csv=rounded) == {findings.COPIES}
    assert not audit(tmp_path, a_csv=run, b_csv=grid(CLEAN, scale=1.01)), "the scatter is another"


def test_one_run_that_was_multiplied_is_found_and_another_run_is_not(tmp_path: Path) -> None:
    path = Path(__file__).parents[1] / "fixtures" / "vllm" / "bench-serve-mtp-result-t1.json"
    run = json.loads(path.read_text(encoding="utf-8"))
    copy = {key: value * 1.01 if isinstance(value, float) else value for key, value in run.items()}
    dice = random.Random(3)  # noqa: S311 - simulated
    other = {key: value * dice.gauss(1, 0.01) if isinstance(value, float) else value for key, value in run.items()}
    for name in ("request_throughput", "output_throughput", "total_token_throughput"):
        other[name] = run[name] * run["duration"] / other["duration"]
    assert findings.COPIES in audit(tmp_path, a_json=json.dumps(run), b_json=json.dumps(copy))
    assert not audit(tmp_path, a_json=json.dumps(run), b_json=json.dumps(other))


def test_a_copy_with_another_column_is_found(tmp_path: Path) -> None:
    lines = grid(CLEAN).splitlines()
    for column, value in (("output_tokens", "128"), ("repeat", "1"), ("request_rate", "50"), ("note", "new")):
        more = "\n".join([f"{lines[0]},{column}", *(f"{line},{value}" for line in lines[1:])]) + "\n"
        assert audit(tmp_path, v6e1_12b_csv=grid(CLEAN), v6e1_e4b_csv=more) == {findings.COPIES}, column


def test_one_timeout_that_explains_every_failure_is_found(tmp_path: Path) -> None:
    def rows(share: dict[float, int]) -> str:
        return HEAD + "".join(
            f"{16 << n},2048,{rate},req/s,{success},ok\n" for n, (rate, success) in enumerate(share.items())
        )

    timed_out = {22.0: 66, 16.1: 48, 11.8: 35, 30.2: 91, 6.6: 20}
    assert findings.TIMEOUTS in audit(tmp_path, a_csv=rows(timed_out))
    assert findings.TIMEOUTS not in audit(tmp_path, a_csv=rows({22.0: 66, 16.1: 80, 11.8: 91, 30.2: 52, 6.6: 97}))


def test_lossy_cell_is_a_queue_unless_a_heavier_one_lost_nothing(tmp_path: Path) -> None:
    """More users of such a cell only wait."""
    lost = grid(CLEAN).replace("1024,64,14.87,req/s,100", "1024,64,9.50,req/s,60")
    assert audit(tmp_path, a_csv=lost) == {findings.MISSING}
    assert audit(tmp_path, a_csv=lost.replace("1024,512,15.02,req/s,100", "1024,512,9.4,req/s,40")) == {
        findings.MISSING,
        findings.QUEUES,
    }


def test_more_users_that_only_wait_are_a_queue(tmp_path: Path) -> None:
    text = HEAD + "".join(f"{context},64,24.1,req/s,100,ok\n{context},512,24.3,req/s,61,ok\n" for context in (16, 64))
    assert findings.QUEUES in audit(tmp_path, a_csv=text)
    assert findings.QUEUES not in audit(tmp_path, a_csv=text.replace(",61,", ",99,"))


def test_a_context_that_fails_at_every_load_is_no_matter_of_memory(tmp_path: Path) -> None:
    failed = "".join(f"4096,{users},0.0,req/s,0,ok\n" for users in (1, 8, 64, 512))
    assert findings.LENGTHS in audit(tmp_path, a_csv=grid(CLEAN) + failed)
    assert not audit(tmp_path, a_csv=grid(CLEAN) + failed.replace("0.0,req/s,0,ok", ",,,infeasible"))


def test_a_prompt_that_is_too_long_did_not_time_out(tmp_path: Path) -> None:
    head = f"{HEAD.strip()},max_model_len\n"
    text = "".join(f"{context},{users},2.5,req/s,100,ok,4096\n" for context in (16, 1024) for users in (1, 8, 64))
    late = "".join(f"CONTEXT,{users},,,0,timeout,4096\n" for users in (1, 8, 64))
    assert audit(tmp_path, a_csv=head + text + late.replace("CONTEXT", "4096")) == {findings.LENGTHS}
    assert not audit(tmp_path, a_csv=head + text + late.replace("CONTEXT", "2048"))


TABLE = "context_tokens,users,output_tokens,requests_per_second,ttft_ms,tpot_ms,e2e_ms,status\n"


def test_users_that_never_were_are_seen_by_the_requests_under_way(tmp_path: Path) -> None:
    rows = "128,512,64,40.0,300,34.9,2500,ok\n"  # 40/s x 2.5 s = 100
    assert audit(tmp_path, a_csv=TABLE + rows) == {findings.CAPS}
    assert not audit(tmp_path, a_csv=TABLE + rows.replace(",512,", ",100,"))


def test_a_mean_gap_is_checked_by_the_length_that_two_rates_tell(tmp_path: Path) -> None:
    head = "context_tokens,users,requests_per_second,output_tokens_per_second,ttft_ms,tpot_ms,e2e_ms\n"
    assert audit(tmp_path, a_csv=f"{head}128,8,2.51,321.3,300,2890,3190\n") == {findings.SUMS}
    assert audit(tmp_path, a_csv=f"{head}128,8,2.51,321.3,300,4.1,3190\n") == {findings.SUMS}
    assert not audit(tmp_path, a_csv=f"{head}128,8,2.51,321.3,300,22.8,3190\n")


def test_mean_gap_of_the_whole_span_is_a_sum_of_unknown_length(tmp_path: Path) -> None:
    """In every row the mean gap is all the time between the first token and the last."""
    head = "context_tokens,users,ttft_ms,tpot_ms,e2e_ms,requests_per_second\n"
    rows = "".join(
        f"{context},8,300,{span},{300 + span},2.0\n" for context, span in ((16, 2890), (64, 3011), (128, 3090))
    )
    assert audit(tmp_path, a_csv=head + rows) == {findings.SUMS}
    assert not audit(tmp_path, a_csv=head + rows.replace(",2890,", ",29.1,"))


def test_a_median_time_for_a_token_that_no_step_has_is_found(tmp_path: Path) -> None:
    path = Path(__file__).parents[1] / "fixtures" / "vllm" / "bench-serve-mtp-result-t1.json"
    run = json.loads(path.read_text(encoding="utf-8"))
    assert not audit(tmp_path, a_json=json.dumps(run))
    assert findings.ROOFLINE in audit(tmp_path, a_json=json.dumps(run | {"median_tpot_ms": 0.004}))
    head = "context_tokens,users,requests_per_second,p50_tpot_ms\n"
    assert audit(tmp_path, a_csv=f"{head}128,8,2.51,0.004\n") == {findings.ROOFLINE}
    assert not audit(tmp_path, a_csv=f"{head}128,8,2.51,4.0\n")


def test_one_cell_above_the_reachable_share_is_noise_beside_lower_ones(tmp_path: Path) -> None:
    """At 1024 tokens of 12e9 parameters, 22.4 requests a second are 60 % of a v6e-1's peak."""
    rates = [15.1, 19.9, 24.0, 16.2, 18.8, 21.0]
    rows = [f"1024,{2**n},{rate:.2f},req/s,100,ok\n" for n, rate in enumerate(rates)]
    assert not audit(tmp_path, v6e1_12b_csv=HEAD + "".join(rows))
    more = [f"1024,{2**n},{rate * 1.45:.2f},req/s,100,ok\n" for n, rate in enumerate(rates)]
    assert audit(tmp_path, v6e1_12b_csv=HEAD + "".join(more)) == {findings.ROOFLINE}


def test_table_of_two_lengths_is_comparable_where_each_cell_has_both(tmp_path: Path) -> None:
    one = "".join(f"{context},1,16,2.0,100,26.6,500,ok\n" for context in (16, 64))
    two = "".join(f"{context},1,128,0.4,100,18.9,2500,ok\n" for context in (256, 1024))
    assert audit(tmp_path, a_csv=TABLE + one + two) == {findings.OUTPUTS}
    both = "".join(f"{context},1,128,0.4,100,18.9,2500,ok\n" for context in (16, 64))
    assert not audit(tmp_path, a_csv=TABLE + one + both)


def test_rates_without_room_for_answers_cannot_judge_drafts(tmp_path: Path) -> None:
    values = {context: [5.6, 22.6, 31.0, 32.4] for context in (4, 8, 16)}
    assert findings.SPECULATION in audit(tmp_path, **{"l4-12b-qat-mtp_csv": grid(values)})
    assert not audit(tmp_path, **{"l4-12b-qat_csv": grid(values)})
    assert not audit(tmp_path, **{"l4-12b-qat-mtp_csv": grid(values, scale=0.05)})


def test_a_unit_that_changes_within_a_column_is_found(tmp_path: Path) -> None:
    mixed = grid(CLEAN).replace("2.61,req/s", "334.08,generated tok/s")
    assert audit(tmp_path, a_csv=mixed) == {findings.UNITS}
    each = grid(CLEAN) + grid(CLEAN, unit="generated tok/s", scale=128).removeprefix(HEAD)
    assert not audit(tmp_path, a_csv=each)


def test_a_file_under_another_device_s_name_is_found(tmp_path: Path) -> None:
    text = "hardware,context_tokens,users,value,unit\nv6e-4,16,1,3.1,req/s\n"
    assert audit(tmp_path, v6e1_12b_csv=text) == {findings.LABELS}
    assert not audit(tmp_path, v6e4_12b_csv=text)


def test_hole_in_a_grid_is_found_and_a_cell_with_a_reason_is_not(tmp_path: Path) -> None:
    lines = grid(CLEAN).splitlines(keepends=True)
    assert audit(tmp_path, a_csv="".join(line for line in lines if not line.startswith("256,64,"))) == {
        findings.MISSING
    }
    explained = ["256,64,,,,timeout\n" if line.startswith("256,64,") else line for line in lines]
    assert not audit(tmp_path, a_csv="".join(explained))


def test_a_failure_reported_as_good_is_found(tmp_path: Path) -> None:
    bad = grid(CLEAN).replace("1024,512,15.02,req/s,100,ok", "1024,512,0.0,req/s,0,ok")
    assert audit(tmp_path, a_csv=bad) == {findings.MISSING}
    assert not audit(tmp_path, a_csv=bad.replace("0.0,req/s,0,ok", ",,0,failed"))


def test_a_lone_failure_is_found_whichever_column_tells_it(tmp_path: Path) -> None:
    bad = grid(CLEAN).replace("256,64,38.66,req/s,100,ok", "256,64,0.00,req/s,0,ok")
    half = grid(CLEAN).replace("256,64,38.66,req/s,100,ok", "256,64,19.3,req/s,50,ok")

    def without(text: str, column: int) -> str:
        return "".join(
            ",".join(p for n, p in enumerate(line.split(",")) if n != column) + "\n" for line in text.split()
        )

    assert audit(tmp_path, a_csv=without(bad, 5)) == {findings.MISSING}, "no state"
    assert audit(tmp_path, a_csv=without(bad, 4)) == {findings.MISSING}, "no success"
    slow = grid(CLEAN).replace("256,8,17.29", "256,8,0.0")
    assert not audit(tmp_path, a_csv=without(slow, 4)), "8 users at less than 0.05/s took 160 s: it may have compiled"
    assert audit(tmp_path, a_csv=without(half, 5)) == {findings.MISSING}
    assert not audit(tmp_path, a_csv=without(bad.replace("0.00,req/s,0,ok", ",,0,ok"), 5)), "reported as a failure"
    counted = "".join(f"{context},{users},5.{users},100,{users}\n" for context in (16, 64) for users in (99, 100, 98))
    head = "context_tokens,users,requests_per_second,requests,completed\n"
    assert not audit(tmp_path, a_csv=head + counted)
    assert audit(tmp_path, a_csv=head + counted.replace("16,98,5.98,100,98", "16,98,5.98,100,40")) == {findings.MISSING}
