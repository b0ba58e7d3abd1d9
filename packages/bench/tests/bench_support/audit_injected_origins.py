"""Injections of faults 1 to 6: figures that come from elsewhere, or that nothing can have done."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bench_support.audit_clean import File, axes, grid_rows, label_of, rich_rows, sweep
from bench_support.audit_documents import result, vllm_run
from bench_support.audit_injecting import OUTPUT, Dice, Way, around, case_of, claim, digits_of, grid, ok_rows
from bench_support.audit_server import measure, noisy, some_server

if TYPE_CHECKING:
    from collections.abc import Callable


# 1 mean of different runs
def _mean_in_claim(dice: Dice) -> Way:
    served = some_server(dice)
    first = round(dice.uniform(2, 90), 2)
    second = round(first * dice.choice((dice.uniform(0.0, 0.9), dice.uniform(1.1, 1.4))), 2)
    value = round((first + second) / 2, dice.choice((1, 2)))
    return claim(dice, served, metric="throughput", value=value, unit="req/s", runs=[first, second], users=64)


def _appended_run(dice: Dice) -> Way:
    served = some_server(dice)
    name, rows, contexts, users = grid(dice, served)
    again = sweep(replace(served, speed=dice.uniform(0.75, 0.92)), contexts, users, OUTPUT, dice)
    more = grid_rows(again, dice)
    if len(ok_rows(rows)) < 6 or len(ok_rows(more)) < 6:
        return None
    return case_of(served, File(name, [*rows, *more])), name


def _mean_of_files(dice: Dice) -> Way:
    served = some_server(dice)
    contexts, users = axes(dice)
    other = replace(served, speed=dice.uniform(0.7, 0.9))
    runs = [sweep(one, contexts, users, OUTPUT, dice) for one in (served, other)]
    digits = dice.choice((2, 3))
    files = []
    label = label_of(served, dice)
    tables = [
        [
            {
                "context_tokens": str(one.context),
                "users": str(one.users),
                "value": f"{one.rate:.{digits}f}",
                "unit": "req/s",
            }
            for one in run
        ]
        for run in runs
    ]
    mean = [
        first | {"value": f"{(float(first['value']) + float(second['value'])) / 2:.{digits}f}"}
        for first, second in zip(*tables, strict=True)
    ]
    apart = [abs(float(a["value"]) - float(b["value"])) for a, b in zip(*tables, strict=True)]
    if sum(1 for one in apart if one > 5 * 10**-digits) < 10:
        return None
    for number, table in enumerate((*tables, mean)):
        files.append(File(f"{label}_{number}.csv", table))
    return case_of(served, *files), files[2].name


# 2 copy
def _copied_grid(dice: Dice) -> Way:
    served, other = some_server(dice), some_server(dice)
    if (served.hardware, served.model) == (other.hardware, other.model):
        return None
    name, rows, _, _ = grid(dice, served)
    if len({row["value"] for row in ok_rows(rows) if float(row["value"]) >= 3}) < 12:
        return None
    copy = f"{label_of(other, dice)}-b.csv"
    return case_of(served, File(name, rows), File(copy, [dict(row) for row in rows])), copy


def _copied_in_part(dice: Dice) -> Way:
    """Half of the contexts are another system's."""
    served, other = some_server(dice), some_server(dice)
    if (served.hardware, served.model) == (other.hardware, other.model):
        return None
    contexts, users = axes(dice)
    ours = grid_rows(sweep(served, contexts, users, OUTPUT, dice), dice)
    theirs = grid_rows(sweep(other, contexts, users, OUTPUT, dice), dice)
    half = len(ours) // 2
    if len({row["value"] for row in ok_rows(ours[:half]) if float(row["value"]) >= 3}) < 12:
        return None
    names = [f"{label_of(one, dice)}_{number}.csv" for number, one in enumerate((served, other))]
    return case_of(served, File(names[0], ours), File(names[1], [*ours[:half], *theirs[half:]])), names[1]


def _copied_and_multiplied(dice: Dice) -> Way:
    """Another system's figures, all changed by the same few percent, with another column beside them."""
    served, other = some_server(dice), some_server(dice)
    contexts, users = axes(dice)
    loads = [noisy(measure(served, context, user, OUTPUT), dice, 0.02) for context in contexts for user in users]
    rows = grid_rows(loads, dice)
    if len({row["value"] for row in ok_rows(rows) if float(row["value"]) >= 30}) < 16:
        return None
    factor = 1 + dice.choice((-1, 1)) * dice.uniform(0.005, 0.1)
    copy = [
        row | {"value": row["value"] and digits_of(row, float(row["value"]) * factor), "output_tokens": str(OUTPUT)}
        for row in rows
    ]
    names = [f"{label_of(one, dice)}_{number}.csv" for number, one in enumerate((served, other))]
    return case_of(served, File(names[0], rows), File(names[1], copy)), names[1]


def _copied_run(dice: Dice) -> Way:
    served, other = some_server(dice), some_server(dice)
    if served.model.architecture == other.model.architecture:
        return None
    run = vllm_run(served, dice, detailed=False)
    copy = run | {"model_id": other.model.id, "hardware": other.label}
    return case_of(served, File("a.json", document=run), File("b.json", document=copy)), "b.json"


# 3 more than the hardware can do
def _cached_grid(dice: Dice) -> Way:
    """One prompt for all: a long context costs what a short one does."""
    served = some_server(dice)
    contexts, users = axes(dice)
    if contexts[-1] < 8192:
        return None
    loads = sweep(replace(served, cached=0.999), contexts, users, 1, dice)
    peak = served.peaks()[1] / 2 / served.model.architecture.active_parameters
    if max(load.rate * load.context for load in loads if load.context + 1 <= 8192) < 0.7 * peak:
        return None
    name = f"{label_of(served, dice)}.csv"
    rows = grid_rows(loads, dice)
    if not any(float(row["value"]) * int(row["context_tokens"]) > 0.65 * peak for row in ok_rows(rows)):
        return None
    return case_of(served, File(name, rows)), name


def _cached_claim(dice: Dice) -> Way:
    served = some_server(dice)
    load = measure(replace(served, cached=0.9999), 16384, 256, 1)
    peak = served.peaks()[1] / 2 / served.model.architecture.active_parameters
    if load.rate * 16384 < 0.7 * peak:
        return None
    value = round(load.rate, 2)
    return claim(
        dice, served, metric="throughput", value=value, unit="req/s", context=16384, users=256, **around(served)
    )


def _too_many_outputs(dice: Dice) -> Way:
    """A rate of output tokens that the memory cannot feed."""
    served = some_server(dice)
    run = vllm_run(served, dice, detailed=False)
    bandwidth = served.peaks()[0]
    users = run["max_concurrency"]
    step = served.model.weight_bytes * (0.2 if served.model.architecture.experts else 1) / bandwidth
    most = users / step
    factor = dice.uniform(1.3, 4.0) * most * 6 / run["output_throughput"]
    for key in ("request_throughput", "output_throughput", "total_token_throughput"):
        run[key] *= factor
    run["duration"] /= factor
    for key in ("mean_ttft_ms", "mean_tpot_ms", "mean_itl_ms", "mean_e2el_ms"):
        run[key] /= factor
    return case_of(served, File("run.json", document=run)), "run.json"


def _held_back(dice: Dice) -> Way:
    """Answers that came in one piece: their first token is as late as their last, and the others took no time."""
    served = some_server(dice)
    run = vllm_run(served, dice, detailed=False)
    run |= {"mean_ttft_ms": run["mean_e2el_ms"] - 0.3, "median_tpot_ms": dice.uniform(0.001, 0.01)}
    run |= {"mean_tpot_ms": 0.3 / (run["total_output_tokens"] / run["completed"] - 1), "mean_itl_ms": 0.01}
    return case_of(served, File("run.json", document=run)), "run.json"


def _share_of_peak(dice: Dice) -> Way:
    served = some_server(dice)
    value = round(dice.uniform(70, 99), 1)
    return claim(dice, served, metric="share of peak", value=value, unit="%", hardware=served.label)


def _one_prompt(dice: Dice) -> Way:
    served = some_server(dice)
    contexts, users = axes(dice)
    rows = rich_rows(sweep(served, contexts, users, OUTPUT, dice), served, dice, "identical")
    return case_of(served, File("table.csv", rows)), "table.csv"


# 4 drain
def _undrained_grid(dice: Dice) -> Way:
    """The client gives up after its timeout; the server works off the rest before it looks at the next cell."""
    served = some_server(dice)
    contexts, users = axes(dice)
    patience, digits = dice.uniform(20, 120), dice.choice((1, 2, 3))
    loads = sweep(served, contexts, users, OUTPUT, dice)
    left, changed, rows = 0.0, 0, []
    for load, heavier in zip(loads, [*loads[1:], loads[0]], strict=True):
        seconds = left + load.users / load.rate
        if left and seconds > patience:
            return None
        changed += bool(left) and _stands_out(load.users / seconds, load.users, heavier.rate, heavier.users)
        left = max(0.0, seconds - patience)
        share = min(1.0, patience / seconds)
        rows.append(
            {
                "context_tokens": str(load.context),
                "users": str(load.users),
                "value": f"{load.users / seconds:.{digits}f}",
                "unit": "req/s",
                "success_pct": f"{100 * share:.0f}",
                "status": "ok" if share == 1 else "timeout",
            }
        )
    name = f"{label_of(served, dice)}.csv"
    return (case_of(served, File(name, rows)), name) if changed else None


def _undrained_result(dice: Dice) -> Way:
    served = some_server(dice)
    document = result(served, dice, shared=False)
    cells = [cell for cell in document["cells"] if "metrics" in cell]
    changed = 0
    for before, cell, heavier in zip(cells, cells[1:], cells[2:], strict=False):
        lost = dice.uniform(0.1, 0.8)
        left = lost * before["users"] / before["metrics"]["requests_per_second"]["value"]
        metrics, requests = cell["metrics"], cell["requests"]
        slower = requests / (requests / metrics["requests_per_second"]["value"] + left)
        next_ = heavier["metrics"]["requests_per_second"]["value"], heavier["users"]
        if cell["state"] != "ok" or not _stands_out(slower, cell["users"], *next_):
            continue
        before.update(state="failed", reason="timed out", failures={"timeout": round(lost * before["requests"])})
        changed += 1
        factor = slower / metrics["requests_per_second"]["value"]
        for name in ("requests_per_second", "output_tokens_per_second", "input_tokens_per_second"):
            metrics[name]["value"] *= factor
        for name in ("ttft_mean", "e2e_mean"):  # only the first request of each user waits
            metrics[name]["value"] += 1e3 * left * cell["users"] / requests
    return (case_of(served, File("run.json", document=document)), "run.json") if changed else None


def _stands_out(rate: float, users: int, heavier_rate: float, heavier_users: int) -> bool:
    """Whether a cell is visibly slower than its share of the next heavier load."""
    return heavier_users > users and rate < 0.35 * heavier_rate * users / heavier_users


# 5 timeout
def _timed_out(dice: Dice) -> Way:
    served = some_server(dice)
    name, rows, _, _ = grid(dice, served)
    seconds = dice.choice((30.0, 60.0, 120.0)) * dice.uniform(1.0, 1.08)
    shares = []
    for row in ok_rows(rows):
        share = min(1.0, seconds * float(row["value"]) / int(row["users"]))
        row["success_pct"] = f"{100 * share:.0f}"
        if 0.05 < share < 0.97 and float(row["value"]) >= 1:
            shares.append(share)
    if len(shares) < 5 or max(shares) < 1.4 * min(shares):
        return None
    return case_of(served, File(name, rows)), name


def _timed_out_claim(dice: Dice) -> Way:
    served = some_server(dice)
    users, timeout = dice.choice((512, 1024, 2048)), dice.choice((30, 60, 120))
    rate = round(dice.uniform(0.2, 0.9) * users / timeout, 1)
    share = round(100 * rate * timeout * dice.uniform(0.99, 1.05) / users)
    return claim(dice, served, metric="success", value=share, unit="%", users=users, throughput=rate, timeout_s=timeout)


# 6 length
def _oom_claim(dice: Dice) -> Way:
    served, longest = some_server(dice), dice.choice((4096, 8192, 16384))
    return claim(
        dice,
        served,
        metric="failure cause",
        value=dice.choice(("OOM", "out of memory")),
        context=longest,
        output_tokens=dice.choice((1, 100)),
        max_model_len=longest,
        hardware=served.label,
    )


def _labelled_timeout(dice: Dice) -> Way:
    """What was refused for its length stands there as a timeout, beside the limit."""
    served = some_server(dice)
    contexts, users = axes(dice)
    rows = grid_rows(sweep(served, contexts, users, OUTPUT, dice), dice)
    longest = dice.randint(contexts[-2] + OUTPUT, max(contexts[-2] + OUTPUT, contexts[-1] + OUTPUT - 1))
    if longest >= contexts[-1] + OUTPUT:
        return None
    rows = [row | {"output_tokens": str(OUTPUT), "max_model_len": str(longest)} for row in rows]
    for row in rows:
        if row["context_tokens"] == str(contexts[-1]):
            row.update(value="", success_pct="0", status="timeout")
    name = f"{label_of(served, dice)}.csv"
    return case_of(served, File(name, rows)), name


def _all_fail(dice: Dice) -> Way:
    """The longest context is refused at every load, and stands there as measured."""
    served = some_server(dice)
    contexts, users = axes(dice)
    rows = grid_rows(sweep(served, contexts, users, OUTPUT, dice), dice)
    state = dice.choice(("ok", "oom"))
    for row in rows:
        if row["context_tokens"] == str(contexts[-1]):
            row.update(value="0.0", success_pct="0", status=state)
    before = [row for row in rows if row["context_tokens"] == str(contexts[-2])]
    if not ok_rows(before):
        return None
    name = f"{label_of(served, dice)}.csv"
    return case_of(served, File(name, rows)), name


WAYS: dict[int, tuple[Callable[[Dice], Way], ...]] = {
    1: (_mean_in_claim, _appended_run, _mean_of_files),
    2: (_copied_grid, _copied_in_part, _copied_and_multiplied, _copied_run),
    3: (_cached_grid, _cached_claim, _too_many_outputs, _held_back, _share_of_peak, _one_prompt),
    4: (_undrained_grid, _undrained_result),
    5: (_timed_out, _timed_out_claim),
    6: (_oom_claim, _labelled_timeout, _all_fail),
}
