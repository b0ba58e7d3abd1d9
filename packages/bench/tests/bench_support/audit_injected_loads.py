"""Injections of faults 7 to 11: loads that measure something else, lengths, drafts, sums."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bench_support.audit_clean import File, axes, grid_rows, label_of, rich_rows, sweep, with_drafts
from bench_support.audit_documents import guidellm, result, vllm_run
from bench_support.audit_injecting import OUTPUT, Dice, Way, case_of, claim
from bench_support.audit_server import measure, noisy, some_server

if TYPE_CHECKING:
    from collections.abc import Callable


# 7 queues
def _above_concurrency(dice: Dice) -> Way:
    served = some_server(dice)
    contexts, users = axes(dice)
    concurrency, instances = dice.choice((4, 8, 16)), dice.choice((1, 2, 3))
    if users[-1] <= concurrency * instances:
        return None
    rows = rich_rows(sweep(served, contexts, users, OUTPUT, dice), served, dice)
    rows = [row | {"service_concurrency": str(concurrency), "instances": str(instances)} for row in rows]
    return case_of(served, File("table.csv", rows)), "table.csv"


def _above_claim(dice: Dice) -> Way:
    served = some_server(dice)
    seqs = dice.choice((8, 64, 256))
    return claim(
        dice, served, metric="throughput", value=12.5, unit="req/s", users=seqs * dice.choice((2, 4, 8)),
        max_num_seqs=seqs, hardware=served.label,
    )  # fmt: skip


def _queueing_labelled_ok(dice: Dice) -> Way:
    served = some_server(dice)
    document = result(served, dice, shared=False)
    queueing = [cell for cell in document["cells"] if cell["state"] == "queueing"]
    for cell in queueing:
        cell.update(state="ok", reason="")
    return (case_of(served, File("run.json", document=document)), "run.json") if queueing else None


def _unequal_sides(dice: Dice) -> Way:
    served = some_server(dice)
    low, high = 4, dice.choice((16, 64))
    side = {"output_tokens": 128}
    return claim(
        dice, served, metric="ratio", value=2.9, unit="x",
        a={"hardware": "L4", "max_instances": 1, "service_concurrency": low, **side},
        b={"hardware": "RTX PRO 6000", "max_instances": dice.choice((1, 3)), "service_concurrency": high, **side},
    )  # fmt: skip


# 8 caps
def _capped_table(dice: Dice) -> Way:
    """Rows above the client's pool are measured with the pool's users."""
    served = some_server(dice)
    contexts, users = axes(dice)
    cap = dice.choice((32, 64, 100, 128))
    if users[-1] < 2 * cap:
        return None
    loads = [
        noisy(measure(served, context, min(user, cap), OUTPUT), dice, 0.01) for context in contexts for user in users
    ]
    rows = rich_rows(loads, served, dice)
    wanted = [user for _ in contexts for user in users]
    for row, user in zip(rows, wanted, strict=True):
        row["users"] = str(user)
    return case_of(served, File("table.csv", rows)), "table.csv"


def _few_requests(dice: Dice) -> Way:
    served = some_server(dice)
    run = vllm_run(served, dice, detailed=False)
    run["max_concurrency"] = run["num_prompts"] * dice.choice((2, 5))
    return case_of(served, File("run.json", document=run)), "run.json"


def _capped_run(dice: Dice) -> Way:
    served = some_server(dice)
    run = vllm_run(served, dice, detailed=True, users=64)
    run["max_concurrency"] = dice.choice((128, 256))
    return case_of(served, File("run.json", document=run)), "run.json"


def _capped_report(dice: Dice) -> Way:
    served = some_server(dice)
    report = guidellm(served, dice)
    load = report["benchmarks"][-1]
    streams = load["config"]["strategy"]["streams"]
    if streams < 64:
        return None
    concurrency = streams * dice.uniform(0.2, 0.55)
    for part in load["metrics"]["request_concurrency"].values():
        part["mean"] = concurrency
    return case_of(served, File("run.json", document=report)), "run.json"


def _cap_claim(dice: Dice) -> Way:
    served, users = some_server(dice), dice.choice((512, 2048))
    return claim(dice, served, metric="success", value=100, unit="%", users=users, requests_cap=dice.choice((100, 128)))


# 9 output lengths
def _mixed_lengths(dice: Dice) -> Way:
    served = some_server(dice)
    contexts, users = axes(dice)
    lengths = dice.sample((1, 10, 16, 100, 128), 2)
    half = len(contexts) // 2
    loads = [
        *sweep(served, contexts[:half], users, lengths[0], dice),
        *sweep(served, contexts[half:], users, lengths[1], dice),
    ]
    return case_of(served, File("table.csv", rich_rows(loads, served, dice))), "table.csv"


def _unequal_lengths(dice: Dice) -> Way:
    served = some_server(dice)
    first, second = dice.sample((1, 10, 16, 100, 128), 2)
    return claim(
        dice, served, metric="ratio", value=2.7, unit="x",
        a={"hardware": "v6e-1", "output_tokens": first}, b={"hardware": "v6e-4", "output_tokens": second},
    )  # fmt: skip


# 10 speculation
def _one_token(dice: Dice) -> Way:
    served = with_drafts(some_server(dice), dice)
    rows = rich_rows(sweep(served, *axes(dice), dice.choice((1, 1, 4)), dice), served, dice)
    return case_of(served, File("table.csv", rows)), "table.csv"


def _one_token_grid(dice: Dice) -> Way:
    """The length is not declared; the rates are those of one-token answers."""
    served = with_drafts(some_server(dice), dice)
    contexts, users = axes(dice)
    loads = sweep(served, contexts, users, 1, dice)
    step = served.model.weight_bytes * (0.25 if served.model.architecture.experts else 1) / served.peaks()[0]
    if max(load.rate * step / min(load.users, served.max_num_seqs) for load in loads) < 0.15:
        return None
    name = f"{label_of(served, dice)}.csv"
    return case_of(served, File(name, grid_rows(loads, dice))), name


def _no_drafts(dice: Dice) -> Way:
    served = some_server(dice)
    generated = dice.randint(5000, 50000)
    return claim(
        dice, served, metric="throughput", value=11.9, unit="req/s", speculation="mtp 3", output_tokens=1,
        drafts=round(generated * dice.uniform(0.002, 0.03)), generated_tokens=generated, prompt_tokens=900 * generated,
    )  # fmt: skip


def _short_run(dice: Dice) -> Way:
    served = with_drafts(some_server(dice), dice)
    run = vllm_run(served, dice, detailed=False)
    run |= {"total_output_tokens": run["completed"], "output_throughput": run["request_throughput"]}
    run |= {"spec_decode_num_drafts": dice.randint(1, 20), "mean_tpot_ms": 0.0, "mean_itl_ms": 0.0}
    run |= {"spec_decode_draft_tokens": 60, "spec_decode_accepted_tokens": 3, "mean_e2el_ms": run["mean_ttft_ms"]}
    return case_of(served, File("run.json", document=run)), "run.json"


def _ttft_credited(dice: Dice) -> Way:
    return claim(
        dice,
        some_server(dice),
        metric="ttft",
        value=0.3,
        unit="s",
        speculation=dice.choice(("ngram 3", "mtp 3")),
        users=1,
    )


# 11 sums
def _summed_table(dice: Dice) -> Way:
    served = some_server(dice)
    loads = sweep(served, *axes(dice), dice.choice((32, 128)), dice)
    rows = rich_rows([replace(load, tpot=load.tpot * (load.output - 1)) for load in loads], served, dice)
    return case_of(served, File("table.csv", rows)), "table.csv"


def _summed_run(dice: Dice) -> Way:
    served = with_drafts(some_server(dice), dice) if dice.random() < 0.5 else some_server(dice)
    run = vllm_run(served, dice, detailed=False)
    tokens = run["total_output_tokens"] // run["completed"]
    name, gaps = "mean_tpot_ms", tokens - 1
    run[name] *= gaps
    return case_of(served, File("run.json", document=run)), "run.json"


def _lost_time(dice: Dice) -> Way:
    """A gap of chunks that came together: between first and last token most of the time has no cause."""
    served = some_server(dice)
    loads = sweep(served, *axes(dice), dice.choice((32, 128)), dice)
    share = dice.uniform(0.05, 0.5)
    if not any(load.tpot * (load.output - 1) > 0.4 * load.e2e for load in loads):
        return None
    rows = rich_rows([replace(load, tpot=load.tpot * share) for load in loads], served, dice)
    return case_of(served, File("table.csv", rows)), "table.csv"


def _summed_latency(dice: Dice) -> Way:
    """The latencies of all users were added up."""
    served = some_server(dice)
    run = vllm_run(served, dice, detailed=False, users=dice.choice((8, 64)))
    run["mean_e2el_ms"] *= run["completed"]
    return case_of(served, File("run.json", document=run)), "run.json"


def _summed_claim(dice: Dice) -> Way:
    served, tokens = some_server(dice), dice.choice((10, 64))
    ttft, gap = round(dice.uniform(0.1, 0.9), 2), dice.uniform(0.005, 0.05)
    span = round(gap * (tokens - 1), 3)
    return claim(
        dice, served, metric="itl", value=span, unit="s", ttft=ttft, e2e=round(ttft + span, 3), output_tokens=tokens
    )


def _summed_result(dice: Dice) -> Way:
    served = some_server(dice)
    document = result(served, dice, shared=False)
    good = [cell for cell in document["cells"] if cell["state"] == "ok"]
    for cell in good:
        cell["metrics"]["tpot_mean"]["value"] *= OUTPUT - 1
    return (case_of(served, File("run.json", document=document)), "run.json") if good else None


WAYS: dict[int, tuple[Callable[[Dice], Way], ...]] = {
    7: (_above_concurrency, _above_claim, _queueing_labelled_ok, _unequal_sides),
    8: (_capped_table, _few_requests, _capped_run, _capped_report, _cap_claim),
    9: (_mixed_lengths, _unequal_lengths),
    10: (_one_token, _one_token_grid, _no_drafts, _short_run, _ttft_credited),
    11: (_summed_table, _summed_run, _lost_time, _summed_latency, _summed_claim, _summed_result),
}
