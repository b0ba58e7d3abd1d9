"""Faults put into clean results at random: each of the sixteen, in the formats where it can be seen.

An injection changes what its fault changes and nothing else. It returns None where the clean case that was drawn has no
room for it (no heavy cell, no long context, nothing that would change), so that what is counted is there to be found.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from audit_clean import Case, File, axes, grid_rows, label_of, rich_rows, sweep, with_drafts
from audit_documents import claims, guidellm, kv_token_bytes, result, vllm_run
from audit_server import Served, measure, noisy, some_server

if TYPE_CHECKING:
    from collections.abc import Callable

Dice = random.Random
OUTPUT = 128


@dataclass
class Injected:
    """A case with one fault, and the item that has it."""

    fault: int
    how: str
    case: Case
    item: str


def injected(fault: int, seed: int) -> Injected:
    """A case with that fault; the same seed gives the same."""
    dice = random.Random(1000 * seed + fault)  # noqa: S311 - simulated
    ways = INJECTIONS[fault]
    way = ways[seed % len(ways)]
    while True:
        found = way(dice)
        if found:
            case, item = found
            return Injected(fault, way.__name__.removeprefix("_"), case, item)


Way = tuple[Case, str] | None


def _grid(dice: Dice, served: Served, **options: Any) -> tuple[str, list[dict[str, str]], list[int], list[int]]:
    contexts, users = axes(dice)
    loads = sweep(served, contexts, users, OUTPUT, dice)
    return f"{label_of(served, dice)}.csv", grid_rows(loads, dice, **options), contexts, users


def _case(served: Served, *files: File) -> Case:
    return Case("injected", list(files), served)


def _claim(dice: Dice, served: Served, **fields: Any) -> tuple[Case, str]:
    """One more claim among clean ones."""
    document = claims(served, some_server(dice), dice)
    document["claims"].insert(dice.randint(0, len(document["claims"])), {"id": "injected", **fields})
    return _case(served, File("claims.json", document=document)), "injected"


def _around(served: Served) -> dict[str, Any]:
    return {"hardware": served.hardware.removeprefix("nvidia-"), "model": served.model.id, "chips": served.chips}


def _ok(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    return [row for row in rows if row["status"] == "ok" and float(row.get("value") or 0) > 0]


def _digits(row: dict[str, str], value: float) -> str:
    return f"{value:.{len(row['value'].partition('.')[2])}f}"


# 1 mean of different runs
def _mean_in_claim(dice: Dice) -> Way:
    served = some_server(dice)
    first = round(dice.uniform(2, 90), 2)
    second = round(first * dice.choice((dice.uniform(0.0, 0.9), dice.uniform(1.1, 1.4))), 2)
    value = round((first + second) / 2, dice.choice((1, 2)))
    return _claim(dice, served, metric="throughput", value=value, unit="req/s", runs=[first, second], users=64)


def _appended(dice: Dice) -> Way:
    served = some_server(dice)
    name, rows, contexts, users = _grid(dice, served)
    again = sweep(replace(served, speed=dice.uniform(0.75, 0.92)), contexts, users, OUTPUT, dice)
    more = grid_rows(again, dice)
    if len(_ok(rows)) < 6 or len(_ok(more)) < 6:
        return None
    return _case(served, File(name, [*rows, *more])), name


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
    return _case(served, *files), files[2].name


# 2 copy
def _copied(dice: Dice) -> Way:
    served, other = some_server(dice), some_server(dice)
    if (served.hardware, served.model) == (other.hardware, other.model):
        return None
    name, rows, _, _ = _grid(dice, served)
    if len({row["value"] for row in _ok(rows) if float(row["value"]) >= 3}) < 12:
        return None
    copy = f"{label_of(other, dice)}-b.csv"
    return _case(served, File(name, rows), File(copy, [dict(row) for row in rows])), copy


def _copied_in_part(dice: Dice) -> Way:
    """Half of the contexts are another system's."""
    served, other = some_server(dice), some_server(dice)
    if (served.hardware, served.model) == (other.hardware, other.model):
        return None
    contexts, users = axes(dice)
    ours = grid_rows(sweep(served, contexts, users, OUTPUT, dice), dice)
    theirs = grid_rows(sweep(other, contexts, users, OUTPUT, dice), dice)
    half = len(ours) // 2
    if len({row["value"] for row in _ok(ours[:half]) if float(row["value"]) >= 3}) < 12:
        return None
    names = [f"{label_of(one, dice)}_{number}.csv" for number, one in enumerate((served, other))]
    return _case(served, File(names[0], ours), File(names[1], [*ours[:half], *theirs[half:]])), names[1]


def _copied_run(dice: Dice) -> Way:
    served, other = some_server(dice), some_server(dice)
    if served.model.architecture == other.model.architecture:
        return None
    run = vllm_run(served, dice, detailed=False)
    copy = run | {"model_id": other.model.id, "hardware": other.label}
    return _case(served, File("a.json", document=run), File("b.json", document=copy)), "b.json"


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
    if not any(float(row["value"]) * int(row["context_tokens"]) > 0.65 * peak for row in _ok(rows)):
        return None
    return _case(served, File(name, rows)), name


def _cached_claim(dice: Dice) -> Way:
    served = some_server(dice)
    load = measure(replace(served, cached=0.9999), 16384, 256, 1)
    peak = served.peaks()[1] / 2 / served.model.architecture.active_parameters
    if load.rate * 16384 < 0.7 * peak:
        return None
    value = round(load.rate, 2)
    return _claim(
        dice, served, metric="throughput", value=value, unit="req/s", context=16384, users=256, **_around(served)
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
    return _case(served, File("run.json", document=run)), "run.json"


def _share_of_peak(dice: Dice) -> Way:
    served = some_server(dice)
    value = round(dice.uniform(70, 99), 1)
    return _claim(dice, served, metric="share of peak", value=value, unit="%", hardware=served.label)


def _one_prompt(dice: Dice) -> Way:
    served = some_server(dice)
    contexts, users = axes(dice)
    rows = rich_rows(sweep(served, contexts, users, OUTPUT, dice), served, dice, "identical")
    return _case(served, File("table.csv", rows)), "table.csv"


# 4 drain
def _undrained(dice: Dice) -> Way:
    """After the heaviest load of a context, the first of the next waits for its rest."""
    served = some_server(dice)
    contexts, users = axes(dice)
    if users[-1] < 256:
        return None
    name = f"{label_of(served, dice)}.csv"
    digits = dice.choice((1, 2, 3))
    rows = []
    changed = 0
    for load in sweep(served, contexts, users, OUTPUT, dice):
        rate = load.rate
        if load.users == users[0] and load.context != contexts[0]:
            left = dice.uniform(20, 59)
            changed += 1 / load.e2e > 0.1 and load.e2e < 8
            rate = load.users / (load.e2e + left)
        rows.append(
            {
                "context_tokens": str(load.context),
                "users": str(load.users),
                "value": f"{rate:.{digits}f}",
                "unit": "req/s",
                "success_pct": "100",
                "status": "ok",
            }
        )
    return (_case(served, File(name, rows)), name) if changed > 1 else None


def _undrained_result(dice: Dice) -> Way:
    served = some_server(dice)
    document = result(served, dice, shared=False)
    changed = 0
    for before, cell in zip(document["cells"], document["cells"][1:], strict=False):
        if "metrics" not in cell or cell["users"] * 8 > before["users"] or cell["state"] != "ok":
            continue
        metrics = cell["metrics"]
        wait = dice.uniform(20, 59) * 1e3
        late = metrics["e2e_mean"]["value"] + wait
        changed += metrics["e2e_mean"]["value"] < 8e3
        slower = metrics["e2e_mean"]["value"] / late
        for name in ("requests_per_second", "output_tokens_per_second", "input_tokens_per_second"):
            metrics[name]["value"] *= slower
        metrics["ttft_mean"]["value"] += wait
        metrics["e2e_mean"]["value"] = late
    return (_case(served, File("run.json", document=document)), "run.json") if changed else None


# 5 timeout
def _timed_out(dice: Dice) -> Way:
    served = some_server(dice)
    name, rows, _, _ = _grid(dice, served)
    seconds = dice.choice((30.0, 60.0, 120.0)) * dice.uniform(1.0, 1.08)
    shares = []
    for row in _ok(rows):
        share = min(1.0, seconds * float(row["value"]) / int(row["users"]))
        row["success_pct"] = f"{100 * share:.0f}"
        if 0.05 < share < 0.97 and float(row["value"]) >= 1:
            shares.append(share)
    if len(shares) < 5 or max(shares) < 1.4 * min(shares):
        return None
    return _case(served, File(name, rows)), name


def _timed_out_claim(dice: Dice) -> Way:
    served = some_server(dice)
    users, timeout = dice.choice((512, 1024, 2048)), dice.choice((30, 60, 120))
    rate = round(dice.uniform(0.2, 0.9) * users / timeout, 1)
    share = round(100 * rate * timeout * dice.uniform(0.99, 1.05) / users)
    return _claim(
        dice, served, metric="success", value=share, unit="%", users=users, throughput=rate, timeout_s=timeout
    )


# 6 length
def _oom_claim(dice: Dice) -> Way:
    served, longest = some_server(dice), dice.choice((4096, 8192, 16384))
    return _claim(
        dice,
        served,
        metric="failure cause",
        value=dice.choice(("OOM", "out of memory")),
        context=longest,
        output_tokens=dice.choice((1, 100)),
        max_model_len=longest,
        hardware=served.label,
    )


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
    if not _ok(before):
        return None
    name = f"{label_of(served, dice)}.csv"
    return _case(served, File(name, rows)), name


# 7 queues
def _above_concurrency(dice: Dice) -> Way:
    served = some_server(dice)
    contexts, users = axes(dice)
    concurrency, instances = dice.choice((4, 8, 16)), dice.choice((1, 2, 3))
    if users[-1] <= concurrency * instances:
        return None
    rows = rich_rows(sweep(served, contexts, users, OUTPUT, dice), served, dice)
    rows = [row | {"service_concurrency": str(concurrency), "instances": str(instances)} for row in rows]
    return _case(served, File("table.csv", rows)), "table.csv"


def _above_claim(dice: Dice) -> Way:
    served = some_server(dice)
    seqs = dice.choice((8, 64, 256))
    return _claim(
        dice, served, metric="throughput", value=12.5, unit="req/s", users=seqs * dice.choice((2, 4, 8)),
        max_num_seqs=seqs, hardware=served.label,
    )  # fmt: skip


def _queueing_told_ok(dice: Dice) -> Way:
    served = some_server(dice)
    document = result(served, dice, shared=False)
    queueing = [cell for cell in document["cells"] if cell["state"] == "queueing"]
    for cell in queueing:
        cell.update(state="ok", reason="")
    return (_case(served, File("run.json", document=document)), "run.json") if queueing else None


def _unequal_sides(dice: Dice) -> Way:
    served = some_server(dice)
    low, high = 4, dice.choice((16, 64))
    side = {"output_tokens": 128}
    return _claim(
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
    return _case(served, File("table.csv", rows)), "table.csv"


def _few_requests(dice: Dice) -> Way:
    served = some_server(dice)
    run = vllm_run(served, dice, detailed=False)
    run["max_concurrency"] = run["num_prompts"] * dice.choice((2, 5))
    return _case(served, File("run.json", document=run)), "run.json"


def _capped_run(dice: Dice) -> Way:
    served = some_server(dice)
    run = vllm_run(served, dice, detailed=True, users=64)
    run["max_concurrency"] = dice.choice((128, 256))
    return _case(served, File("run.json", document=run)), "run.json"


def _capped_report(dice: Dice) -> Way:
    served = some_server(dice)
    report = guidellm(served, dice)
    load = report["benchmarks"][-1]
    streams = load["config"]["strategy"]["streams"]
    if streams < 64:
        return None
    held = streams * dice.uniform(0.2, 0.55)
    for part in load["metrics"]["request_concurrency"].values():
        part["mean"] = held
    return _case(served, File("run.json", document=report)), "run.json"


def _cap_claim(dice: Dice) -> Way:
    served, users = some_server(dice), dice.choice((512, 2048))
    return _claim(
        dice, served, metric="success", value=100, unit="%", users=users, requests_cap=dice.choice((100, 128))
    )


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
    return _case(served, File("table.csv", rich_rows(loads, served, dice))), "table.csv"


def _unequal_lengths(dice: Dice) -> Way:
    served = some_server(dice)
    first, second = dice.sample((1, 10, 16, 100, 128), 2)
    return _claim(
        dice, served, metric="ratio", value=2.7, unit="x",
        a={"hardware": "v6e-1", "output_tokens": first}, b={"hardware": "v6e-4", "output_tokens": second},
    )  # fmt: skip


# 10 speculation
def _one_token(dice: Dice) -> Way:
    served = with_drafts(some_server(dice), dice)
    rows = rich_rows(sweep(served, *axes(dice), dice.choice((1, 1, 4)), dice), served, dice)
    return _case(served, File("table.csv", rows)), "table.csv"


def _one_token_grid(dice: Dice) -> Way:
    """The length is not told; the rates are those of one-token answers."""
    served = with_drafts(some_server(dice), dice)
    contexts, users = axes(dice)
    loads = sweep(served, contexts, users, 1, dice)
    step = served.model.weight_bytes * (0.25 if served.model.architecture.experts else 1) / served.peaks()[0]
    if max(load.rate * step / min(load.users, served.max_num_seqs) for load in loads) < 0.15:
        return None
    name = f"{label_of(served, dice)}.csv"
    return _case(served, File(name, grid_rows(loads, dice))), name


def _no_drafts(dice: Dice) -> Way:
    served = some_server(dice)
    generated = dice.randint(5000, 50000)
    return _claim(
        dice, served, metric="throughput", value=11.9, unit="req/s", speculation="mtp 3", output_tokens=1,
        drafts=round(generated * dice.uniform(0.002, 0.03)), generated_tokens=generated, prompt_tokens=900 * generated,
    )  # fmt: skip


def _short_run(dice: Dice) -> Way:
    served = with_drafts(some_server(dice), dice)
    run = vllm_run(served, dice, detailed=False)
    run |= {"total_output_tokens": run["completed"], "output_throughput": run["request_throughput"]}
    run |= {"spec_decode_num_drafts": dice.randint(1, 20), "mean_tpot_ms": 0.0, "mean_itl_ms": 0.0}
    run |= {"spec_decode_draft_tokens": 60, "spec_decode_accepted_tokens": 3, "mean_e2el_ms": run["mean_ttft_ms"]}
    return _case(served, File("run.json", document=run)), "run.json"


def _ttft_credited(dice: Dice) -> Way:
    return _claim(
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
    return _case(served, File("table.csv", rows)), "table.csv"


def _summed_run(dice: Dice) -> Way:
    served = with_drafts(some_server(dice), dice) if dice.random() < 0.5 else some_server(dice)
    run = vllm_run(served, dice, detailed=False)
    tokens = run["total_output_tokens"] // run["completed"]
    name = dice.choice(("mean_tpot_ms", "mean_itl_ms"))
    gaps = (tokens - 1) / (served.tokens_a_step if name == "mean_itl_ms" else 1)
    run[name] *= gaps
    return _case(served, File("run.json", document=run)), "run.json"


def _summed_latency(dice: Dice) -> Way:
    """The latencies of all users were added up."""
    served = some_server(dice)
    run = vllm_run(served, dice, detailed=False, users=dice.choice((8, 64)))
    run["mean_e2el_ms"] *= run["completed"]
    return _case(served, File("run.json", document=run)), "run.json"


def _summed_claim(dice: Dice) -> Way:
    served, tokens = some_server(dice), dice.choice((10, 64))
    ttft, gap = round(dice.uniform(0.1, 0.9), 2), dice.uniform(0.005, 0.05)
    span = round(gap * (tokens - 1), 3)
    return _claim(
        dice, served, metric="itl", value=span, unit="s", ttft=ttft, e2e=round(ttft + span, 3), output_tokens=tokens
    )


def _summed_result(dice: Dice) -> Way:
    served = some_server(dice)
    document = result(served, dice, shared=False)
    good = [cell for cell in document["cells"] if cell["state"] == "ok"]
    for cell in good:
        cell["metrics"]["tpot_mean"]["value"] *= OUTPUT - 1
    return (_case(served, File("run.json", document=document)), "run.json") if good else None


# 12 chunks
def _chunks_run(dice: Dice) -> Way:
    served = with_drafts(some_server(dice), dice)
    run = vllm_run(served, dice, detailed=False)
    chunks = run["completed"] + run["spec_decode_num_drafts"]
    run |= {"output_throughput": chunks / run["duration"], "total_output_tokens": chunks}
    return _case(served, File("run.json", document=run)), "run.json"


def _chunks_claim(dice: Dice) -> Way:
    return _claim(
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
    return (_case(served, File("run.json", document=document)), "run.json") if good else None


# 13 units
def _bare_unit(dice: Dice) -> Way:
    served = some_server(dice)
    name, rows, _, _ = _grid(dice, served, tokens=True)
    unit = dice.choice(("tok/s", "tokens/s", "total tok/s", "input and output tokens/s"))
    if not _ok(rows):
        return None
    return _case(served, File(name, [row | {"unit": unit} for row in rows])), name


def _two_units(dice: Dice) -> Way:
    """Part of the column is in another unit."""
    served = some_server(dice)
    name, rows, _, _ = _grid(dice, served)
    half = dice.randint(len(rows) // 4, 3 * len(rows) // 4)
    for row in _ok(rows[half:]):
        row.update(value=_digits(row, float(row["value"]) * OUTPUT), unit="generated tok/s")
    both = _ok(rows[:half]) and _ok(rows[half:])
    return (_case(served, File(name, rows)), name) if both else None


def _both_in_run(dice: Dice) -> Way:
    served = some_server(dice)
    run = vllm_run(served, dice, detailed=False)
    run["output_throughput"] = run["total_token_throughput"]
    return _case(served, File("run.json", document=run)), "run.json"


def _both_in_table(dice: Dice) -> Way:
    served = some_server(dice)
    loads = sweep(served, *axes(dice), OUTPUT, dice)
    rows = rich_rows(loads, served, dice)
    if max(load.context for load in loads) < 64:
        return None
    for row, load in zip(rows, loads, strict=True):
        row["output_tokens_per_second"] = f"{load.rate * (load.context + load.output):.5g}"
    return _case(served, File("table.csv", rows)), "table.csv"


def _unnamed_cost(dice: Dice) -> Way:
    rate = dice.randint(2000, 20000)
    return _claim(
        dice, some_server(dice), metric="cost per million tokens", value=round(1.38 / 3600 / rate * 1e6, 3), unit="USD",
        throughput=rate, throughput_counts=dice.choice(("input", "input and output")), price_per_h=1.38,
    )  # fmt: skip


# 14 labels
def _measured_elsewhere(dice: Dice) -> Way:
    told, truly = dice.sample(("8 x L4", "1 x L4", "v6e-1", "v6e-4", "v6e-8", "RTX PRO 6000"), 2)
    return _claim(
        dice, some_server(dice), metric="throughput", value=8.5, unit="req/s", hardware=told, measured_on=truly
    )


def _filed_wrong(dice: Dice) -> Way:
    """The table says one device or model, the file's name another."""
    served, other = some_server(dice), some_server(dice)
    if (served.hardware, served.chips) == (other.hardware, other.chips) and served.size == other.size:
        return None
    rows = rich_rows(sweep(served, *axes(dice), OUTPUT, dice), served, dice)
    name = f"{label_of(other, dice)}.csv"
    return _case(served, File(name, rows)), name


def _misdated(dice: Dice) -> Way:
    served = some_server(dice)
    run = vllm_run(served, dice, detailed=False)
    name = f"run_2026-{dice.randint(1, 9):02d}-{dice.randint(1, 28):02d}.json"
    return _case(served, File(name, document=run)), name


def _too_large(dice: Dice) -> Way:
    """Weights that the device on the label cannot hold."""
    served = some_server(dice)
    run = vllm_run(served, dice, detailed=False)
    run["model_id"], run["hardware"] = dice.choice((("gemma-4-31b-it", "v6e-1"), ("gemma-4-26b-a4b-it-fp8", "l4")))
    return _case(served, File("run.json", document=run)), "run.json"


def _prices(dice: Dice) -> Way:
    low = dice.uniform(0.5, 3)
    values = [round(low * factor, 2) for factor in (1.0, dice.uniform(1.5, 3), dice.uniform(1.1, 2))]
    return _claim(dice, some_server(dice), metric="cost per hour", value=values, unit="USD/h", hardware="L4")


# 15 KV precision
def _kv_refuted(dice: Dice) -> Way:
    served = some_server(dice)
    truly, told = dice.choice(((2, ("fp8", "fp8_e5m2")), (1, ("bfloat16", "auto"))))
    tokens = dice.randint(20_000, 400_000)
    gib = round(tokens * kv_token_bytes(served, truly) / 2**30, 2)
    return _claim(
        dice, served, metric="kv dtype", value=dice.choice(told), kv_gib=gib, kv_tokens=tokens, **_around(served)
    )


# 16 missing
def _dropped(dice: Dice) -> Way:
    served = some_server(dice)
    name, rows, contexts, users = _grid(dice, served)
    left = list(rows)
    for _ in range(dice.randint(1, len(rows) // 5)):
        left.pop(dice.randrange(len(left)))
    whole = {row["context_tokens"] for row in left} == {str(one) for one in contexts}
    whole = whole and {row["users"] for row in left} == {str(one) for one in users}
    return (_case(served, File(name, left)), name) if whole else None


def _dropped_failures(dice: Dice) -> Way:
    """What did not succeed was left out."""
    served = some_server(dice)
    name, rows, _, _ = _grid(dice, served)
    left = [row for row in rows if row["status"] == "ok"]
    contexts, users = ({row[key] for row in left} for key in ("context_tokens", "users"))
    if len(contexts) < 3 or len(users) < 3 or len(left) == len(contexts) * len(users):
        return None
    return (_case(served, File(name, left)), name) if len(left) > len(contexts) * len(users) / 2 else None


def _failed_told_ok(dice: Dice) -> Way:
    served = some_server(dice)
    name, rows, _, _ = _grid(dice, served)
    bad = [row for row in rows if row["status"] != "ok"] or dice.sample(rows, 2)
    for row in bad:
        row.update(value="0.0", success_pct=dice.choice(("0", "4", "40")), status="ok")
    return _case(served, File(name, rows)), name


def _gone(dice: Dice) -> Way:
    served = some_server(dice)
    run = vllm_run(served, dice, detailed=False)
    run["num_prompts"] += dice.randint(5, 50)
    return _case(served, File("run.json", document=run)), "run.json"


INJECTIONS: dict[int, tuple[Callable[[Dice], Way], ...]] = {
    1: (_mean_in_claim, _appended, _mean_of_files),
    2: (_copied, _copied_in_part, _copied_run),
    3: (_cached_grid, _cached_claim, _too_many_outputs, _share_of_peak, _one_prompt),
    4: (_undrained, _undrained_result),
    5: (_timed_out, _timed_out_claim),
    6: (_oom_claim, _all_fail),
    7: (_above_concurrency, _above_claim, _queueing_told_ok, _unequal_sides),
    8: (_capped_table, _few_requests, _capped_run, _capped_report, _cap_claim),
    9: (_mixed_lengths, _unequal_lengths),
    10: (_one_token, _one_token_grid, _no_drafts, _short_run, _ttft_credited),
    11: (_summed_table, _summed_run, _summed_latency, _summed_claim, _summed_result),
    12: (_chunks_run, _chunks_claim, _chunks_result),
    13: (_bare_unit, _two_units, _both_in_run, _both_in_table, _unnamed_cost),
    14: (_measured_elsewhere, _filed_wrong, _misdated, _too_large, _prices),
    15: (_kv_refuted,),
    16: (_dropped, _dropped_failures, _failed_told_ok, _gone),
}
