"""Injections of faults 12 to 16: chunks, units, labels, precision, what is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench_support.audit_clean import File, axes, label_of, rich_rows, sweep, with_drafts
from bench_support.audit_documents import kv_token_bytes, result, vllm_run
from bench_support.audit_injecting import OUTPUT, Dice, Way, around, case_of, claim, digits_of, grid, ok_rows
from bench_support.audit_server import some_server

if TYPE_CHECKING:
    from collections.abc import Callable


# 12 chunks
def _chunks_run(dice: Dice) -> Way:
    served = with_drafts(some_server(dice), dice)
    run = vllm_run(served, dice, detailed=False)
    chunks = run["completed"] + run["spec_decode_num_drafts"]
    run |= {"output_throughput": chunks / run["duration"], "total_output_tokens": chunks}
    return case_of(served, File("run.json", document=run)), "run.json"


def _chunks_claim(dice: Dice) -> Way:
    return claim(
        dice, some_server(dice), metric="throughput", value=70.3, unit="output tok/s", speculation="mtp 3",
        counted=dice.choice(("SSE chunks", "stream chunks")),
    )  # fmt: skip


def _chunks_result(dice: Dice) -> Way:
    served = with_drafts(some_server(dice), dice)
    document = result(served, dice, shared=False)
    good = [cell for cell in document["cells"] if cell["state"] == "ok"]
    for cell in good:
        for name in ("output_tokens_mean", "output_tokens_per_second"):
            cell["metrics"][name]["value"] /= served.tokens_a_step
    return (case_of(served, File("run.json", document=document)), "run.json") if good else None


# 13 units
def _bare_unit(dice: Dice) -> Way:
    served = some_server(dice)
    name, rows, _, _ = grid(dice, served, tokens=True)
    unit = dice.choice(("tok/s", "tokens/s", "tps"))
    if not ok_rows(rows):
        return None
    return case_of(served, File(name, [row | {"unit": unit} for row in rows])), name


def _two_units(dice: Dice) -> Way:
    """Part of the column is in another unit."""
    served = some_server(dice)
    name, rows, _, _ = grid(dice, served)
    half = dice.randint(len(rows) // 4, 3 * len(rows) // 4)
    for row in ok_rows(rows[half:]):
        row.update(value=digits_of(row, float(row["value"]) * OUTPUT), unit="generated tok/s")
    both = ok_rows(rows[:half]) and ok_rows(rows[half:])
    return (case_of(served, File(name, rows)), name) if both else None


def _both_in_run(dice: Dice) -> Way:
    served = some_server(dice)
    run = vllm_run(served, dice, detailed=False)
    run["output_throughput"] = run["total_token_throughput"]
    return case_of(served, File("run.json", document=run)), "run.json"


def _both_in_table(dice: Dice) -> Way:
    served = some_server(dice)
    loads = sweep(served, *axes(dice), OUTPUT, dice)
    rows = rich_rows(loads, served, dice)
    if max(load.context for load in loads) < 64:
        return None
    for row, load in zip(rows, loads, strict=True):
        row["output_tokens_per_second"] = f"{load.rate * (load.context + load.output):.5g}"
    return case_of(served, File("table.csv", rows)), "table.csv"


def _unnamed_cost(dice: Dice) -> Way:
    rate = dice.randint(2000, 20000)
    return claim(
        dice, some_server(dice), metric="cost per million tokens", value=round(1.38 / 3600 / rate * 1e6, 3), unit="USD",
        throughput=rate, throughput_counts=dice.choice(("input", "input and output")), price_per_h=1.38,
    )  # fmt: skip


# 14 labels
def _measured_elsewhere(dice: Dice) -> Way:
    label, truly = dice.sample(("8 x L4", "1 x L4", "v6e-1", "v6e-4", "v6e-8", "RTX PRO 6000"), 2)
    return claim(
        dice, some_server(dice), metric="throughput", value=8.5, unit="req/s", hardware=label, measured_on=truly
    )


def _filed_wrong(dice: Dice) -> Way:
    """The table says one device or model, the file's name another."""
    served, other = some_server(dice), some_server(dice)
    if (served.hardware, served.chips) == (other.hardware, other.chips) and served.size == other.size:
        return None
    rows = rich_rows(sweep(served, *axes(dice), OUTPUT, dice), served, dice)
    name = f"{label_of(other, dice)}.csv"
    return case_of(served, File(name, rows)), name


def _misdated_file(dice: Dice) -> Way:
    served = some_server(dice)
    run = vllm_run(served, dice, detailed=False)
    name = f"run_2026-{dice.randint(1, 9):02d}-{dice.randint(1, 28):02d}.json"
    return case_of(served, File(name, document=run)), name


def _too_large(dice: Dice) -> Way:
    """Weights that the device on the label cannot hold."""
    served = some_server(dice)
    run = vllm_run(served, dice, detailed=False)
    run["model_id"], run["hardware"] = dice.choice((("gemma-4-31b-it", "v6e-1"), ("gemma-4-26b-a4b-it-fp8", "l4")))
    return case_of(served, File("run.json", document=run)), "run.json"


def _prices(dice: Dice) -> Way:
    low = dice.uniform(0.5, 3)
    values = [round(low * factor, 2) for factor in (1.0, dice.uniform(1.5, 3), dice.uniform(1.1, 2))]
    return claim(dice, some_server(dice), metric="cost per hour", value=values, unit="USD/h", hardware="L4")


# 15 KV precision
def _kv_refuted(dice: Dice) -> Way:
    served = some_server(dice)
    truly, labels = dice.choice(((2, ("fp8", "fp8_e5m2")), (1, ("bfloat16", "auto"))))
    tokens = dice.randint(20_000, 400_000)
    gib = round(tokens * kv_token_bytes(served, truly) / 2**30, 2)
    return claim(
        dice, served, metric="kv dtype", value=dice.choice(labels), kv_gib=gib, kv_tokens=tokens, **around(served)
    )


# 16 missing
def _dropped_rows(dice: Dice) -> Way:
    served = some_server(dice)
    name, rows, contexts, users = grid(dice, served)
    left = list(rows)
    for _ in range(dice.randint(1, len(rows) // 5)):
        left.pop(dice.randrange(len(left)))
    whole = {row["context_tokens"] for row in left} == {str(one) for one in contexts}
    whole = whole and {row["users"] for row in left} == {str(one) for one in users}
    return (case_of(served, File(name, left)), name) if whole else None


def _dropped_failures(dice: Dice) -> Way:
    """What did not succeed was left out."""
    served = some_server(dice)
    name, rows, _, _ = grid(dice, served)
    left = [row for row in rows if row["status"] == "ok"]
    contexts, users = ({row[key] for row in left} for key in ("context_tokens", "users"))
    if len(contexts) < 3 or len(users) < 3 or len(left) == len(contexts) * len(users):
        return None
    return (case_of(served, File(name, left)), name) if len(left) > len(contexts) * len(users) / 2 else None


def _failed_labelled_ok(dice: Dice) -> Way:
    served = some_server(dice)
    name, rows, _, _ = grid(dice, served)
    bad = [row for row in rows if row["status"] != "ok"] or dice.sample(rows, 2)
    for row in bad:
        row.update(value="0.0", success_pct=dice.choice(("0", "4", "40")), status="ok")
    return case_of(served, File(name, rows)), name


def _lone_failure(dice: Dice) -> Way:
    """One cell that failed stands as a figure among others, in a table without states, below a heavier one."""
    served = some_server(dice)
    name, rows, contexts, users = grid(dice, served)
    context, user = dice.choice(contexts), dice.choice(users[:-1])
    places = {(row["context_tokens"], row["users"]): row for row in rows}
    lone, heavier = places[str(context), str(user)], places[str(context), str(users[-1])]
    if not ok_rows([lone]) or not ok_rows([heavier]):
        return None
    lone["success_pct"] = dice.choice(("0", "4", "50", "85"))
    lone["value"] = digits_of(lone, float(lone["value"]) * int(lone["success_pct"]) / 100)
    return case_of(served, File(name, [{key: row[key] for key in row if key != "status"} for row in rows])), name


def _missing_requests(dice: Dice) -> Way:
    served = some_server(dice)
    run = vllm_run(served, dice, detailed=False)
    run["num_prompts"] += dice.randint(5, 50)
    return case_of(served, File("run.json", document=run)), "run.json"


WAYS: dict[int, tuple[Callable[[Dice], Way], ...]] = {
    12: (_chunks_run, _chunks_claim, _chunks_result),
    13: (_bare_unit, _two_units, _both_in_run, _both_in_table, _unnamed_cost),
    14: (_measured_elsewhere, _filed_wrong, _misdated_file, _too_large, _prices),
    15: (_kv_refuted,),
    16: (_dropped_rows, _dropped_failures, _failed_labelled_ok, _lone_failure, _missing_requests),
}
