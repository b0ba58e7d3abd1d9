"""Made-up results of every kind that a report is made from: a sweep, a comparison of drafts, runs, a failed one.

Their figures follow one simple law, so that curves look like those of a server; no server was measured.
"""

from __future__ import annotations

import functools
import math
import random
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from bezel_bench.result.document import Cell, Check, Finding, Inferred, Result, StageFigures
from bezel_bench.result.records import (
    Client,
    Distribution,
    Histogram,
    Machine,
    Manifest,
    Metric,
    Platform,
    PriceBasis,
    ServedBy,
)

if TYPE_CHECKING:
    from bezel_bench.result.document import State

CONTEXTS = (4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)
USERS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048)
METRIC = "output_tokens_per_second"
HOSTILE = (
    "</title><script>alert(1)</script><img src=x onerror=alert(2)> "
    "@everyone `[x](javascript:alert(3))` | \u202e\x00&amp;"
)
TRANSIENT = "connection closed after 12 of 128 tokens"


def manifest(
    title: str, accelerator: str | None = "nvidia-l4", *, price: float | None = 1.0465, **more: Any
) -> Manifest:
    """What was run."""
    return Manifest(
        title=title,
        url="https://bezel-l4-qat.example",
        model=more.pop("model", "gemma-4-12b-it-qat-w4a16"),
        served_by=ServedBy(
            image="vllm/vllm-openai", vllm_version="0.32.0", max_model_len=32768, max_num_seqs=256,
            kv_cache_dtype="fp8", arguments=["--max-model-len", "32768", "--max-num-seqs", "256"],
        ),
        platform=Platform(accelerator=accelerator, chips=1, instances=1, concurrency=256, region="us-east4"),
        price=PriceBasis(usd_per_hour=price, as_of="2026-11-01", source="list price") if price else PriceBasis(),
        client=Client(
            bezel="0.1.0", python="3.11.2", workers=1, tls=True,
            machine=Machine(cores=2, cpu="AMD EPYC", memory_bytes=8 << 30, kernel="Linux 6.1"),
        ),
        started_at=datetime(2026, 11, 22, 9, 30, tzinfo=UTC),
        seed=7,
        command=["bezel", "bench", "sweep", "--stack", "l4-qat"],
        **more,
    )  # fmt: skip


def speed(context: int, users: int, places: int = 256, factor: float = 1.0) -> tuple[float, float, float]:
    """Output tokens a second, TTFT and TPOT in ms of a server with room for so many at a time."""
    batch = min(users, places)
    tpot = (22 + 0.22 * batch + batch * context * 2.2e-4) / factor
    prefill = context * 0.06
    ttft = 40 + prefill * (1 + 0.5 * math.sqrt(batch)) + max(0, users - places) / places * 128 * tpot
    return batch * 128 / ((128 * tpot + prefill * batch + 40) / 1000), ttft, tpot


def distribution(median: float, spread: float, n: int, seed: int) -> Distribution:
    """Log-normal values."""
    values = np.random.default_rng(seed).lognormal(math.log(median), spread, n)
    counts, edges = np.histogram(values, np.geomspace(values.min(), values.max(), 41))
    shares = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}
    percentiles = dict(zip(shares, np.quantile(values, [*shares.values()]).tolist(), strict=True))
    return Distribution(
        unit="ms", n=n, mean=float(values.mean()), min=float(values.min()), max=float(values.max()),
        **percentiles | ({} if n >= 1000 else {"p999": None}),
        histogram=Histogram(edges=edges.tolist(), counts=counts.tolist()),
    )  # fmt: skip


def cell(context: int, users: int, *, price: float | None = 1.0465, factor: float = 1.0, **more: Any) -> Cell:
    """A cell of 3 x users requests, at least 200."""
    state: State = more.pop("state", "ok")
    seed = more.pop("seed", context * 4096 + users)
    chance = random.Random(seed)  # noqa: S311 - noise, no secrets
    rate, ttft, tpot = (value * math.exp(chance.gauss(0, 0.02)) for value in speed(context, users, factor=factor))
    requests = max(200, 3 * users)
    ttfts, itls = distribution(ttft, 0.35, 400, seed), distribution(tpot, 0.2, 1200, seed + 1)
    dollars = {"value": price * 1e6 / 3600 / rate} if price else {"value": None, "why": "the price is unknown"}
    metrics = {
        METRIC: Metric(value=rate, low=rate * 0.97, high=rate * 1.03, unit="tokens/s", n=requests),
        "requests_per_second": Metric(value=rate / 128, unit="requests/s", n=requests),
        "cost_per_million_output_tokens": Metric(unit="USD per million output tokens", **dollars),
        **{f"ttft_{name}": Metric(value=getattr(ttfts, name), unit="ms", n=requests) for name in ("p50", "p90", "p99")},
        **{f"tpot_{name}": Metric(value=tpot * by, unit="ms") for name, by in (("p50", 1), ("p90", 1.1), ("p99", 1.3))},
        "itl_p50": Metric(value=itls.p50, unit="ms"),
        "e2e_p50": Metric(value=ttft + 127 * tpot, unit="ms"),
    }
    arm, turn = more.get("variant", ""), more.get("repeat", 0)
    return Cell(
        id=f"{context}-{users}{f'-{arm}' if arm else ''}{f'-{turn}' if turn else ''}",
        context_tokens=context, users=users, output_tokens=128, pattern="closed", prompts="unique", state=state,
        metrics=metrics, distributions={"ttft": ttfts, "itl": itls}, requests=requests, seconds=60.0,
        checks=more.pop("checks", [check("counters"), check("roofline"), check("steady_state")]), **more,
    )  # fmt: skip


def check(name: str, state: str = "passed", text: str = "as it should be", **numbers: Any) -> Check:
    """What a check found."""
    return Check.model_validate({"name": name, "state": state, "text": text, "numbers": numbers})


def bare(context: int, users: int, state: State, reason: str, **more: Any) -> Cell:
    """A cell without figures."""
    return Cell(
        id=f"{context}-{users}", context_tokens=context, users=users, output_tokens=128, pattern="closed",
        prompts="unique", state=state, reason=reason, **more,
    )  # fmt: skip


@functools.cache
def sweep(*, nature: str = "simulated", price: float | None = 1.0465) -> Result:
    """A sweep of 13 x 12: every state, a part measured, the rest inferred, a knee for each context."""
    cells = [_of_sweep(context, users, price) for context in CONTEXTS for users in USERS]
    knees = []
    for context in CONTEXTS:
        most = speed(context, 256)[0]
        users = next(users for users in USERS if speed(context, users)[0] > 0.9 * most)
        text = f"At a context of {context} tokens {users} users get 90% of the plateau."
        knees.append(Finding(name="knee", text=text, numbers={"context_tokens": context, "users": users}))
    return Result.model_validate({
        "schema": "bezel.bench/1", "kind": "sweep", "nature": nature,
        "manifest": manifest("12B QAT on L4", price=price),
        "cells": [one for one in cells if isinstance(one, Cell)],
        "inferred": [one for one in cells if isinstance(one, Inferred)],
        "findings": knees, "notes": ["The sweep ended: the surface is known to 3 %."],
    })  # fmt: skip


def _of_sweep(context: int, users: int, price: float | None) -> Cell | Inferred:
    if context == 16384 and users >= 512:
        return bare(context, users, "infeasible", "16384 + 128 tokens x 512 > 411000 that the KV cache holds")
    if (context, users) == (8192, 1024):
        return bare(
            context, users, "failed", "every request timed out after 120 s", requests=3072,
            failures={"timeout": 3000, "http_5xx": 72},
            failure_examples={"timeout": "no token for 120 s", "http_5xx": "no instance"},
        )  # fmt: skip
    if (context, users) == (4, 512):
        return cell(context, users, price=price, state="client_limited", reason="a worker used 97 % of a core")
    if users > 256:
        reason = f"{users} users > 1 instances x 256 requests at a time"
        return cell(context, users, price=price, state="queueing", reason=reason)
    if users == 64:
        return cell(context, users, price=price, failures={"truncated": 1}, failure_examples={"truncated": TRANSIENT})
    if users == 256:
        few = check("steady_state", "suspect", "fewer answers than 3 x users", answers=170, users=users)
        return cell(context, users, price=price, checks=[check("counters"), few])
    if (CONTEXTS.index(context) + USERS.index(users)) % 3 == 0 or users == 1:
        return cell(context, users, price=price)
    value = speed(context, users)[0]
    how = "log-linear between 64 and 256 tokens at the same users"
    if context == CONTEXTS[-2]:
        why = "only 8 cells measured between others; a 90 % range needs 9"
        return Inferred(context_tokens=context, users=users, metric=METRIC, value=value, errors=8, how=how, why=why)
    return Inferred(context_tokens=context, users=users, metric=METRIC, value=value, low=value * 0.93,
                    high=value * 1.07, errors=20, how=how)  # fmt: skip


def line(
    title: str, accelerator: str, factor: float, *, nature: str = "measured", price: float | None = 1.0465
) -> Result:
    """One context over users: of one hardware, to stand beside another's."""
    cells = [cell(1024, users, factor=factor, price=price) for users in (1, 2, 4, 8, 16, 32, 64)]
    knee = Finding(name="knee", text="At a context of 1024 tokens 32 users get 90% of the plateau.",
                   numbers={"context_tokens": 1024, "users": 32})  # fmt: skip
    about = manifest(title, accelerator, price=price)
    return Result.model_validate({"schema": "bezel.bench/1", "kind": "sweep", "nature": nature, "manifest": about,
                                  "cells": cells, "findings": [knee]})  # fmt: skip


def saturated_result(*, paces: tuple[float, ...] = (20.0, 21.0, 24.0, 30.0), tails: tuple[float, ...] = ()) -> Result:
    """An open loop of which every rate was more than the server completes; `paces` are the tpot_p50 of the rates."""
    cells = []
    for place, pace in enumerate(paces):
        one = cell(
            1024, 2**place, state="saturated", reason="each section of the load waits longer than the one before"
        )
        top = tails[place] if tails else 1.3 * pace
        tpot = {"tpot_p50": Metric(value=pace, unit="ms"), "tpot_p90": Metric(value=1.1 * pace, unit="ms"),
                "tpot_p99": Metric(value=top, unit="ms")}  # fmt: skip
        cells.append(one.model_copy(update={"metrics": one.metrics | tpot}))
    about = manifest("Overloaded", "nvidia-l4", price=1.0465)
    return Result.model_validate({"schema": "bezel.bench/1", "kind": "sweep", "nature": "measured", "manifest": about,
                                  "cells": cells})  # fmt: skip


def staged_result(
    *, levels: tuple[float, ...] = (4, 16, 4), of: str = "users", failed: tuple[int, ...] = (0, 3, 0)
) -> Result:
    """One load whose level changes: each stage has the figures of a load of its level."""
    stages = []
    for place, (level, lost) in enumerate(zip(levels, failed, strict=True)):
        one = cell(1024, int(level), factor=1 - place / 20)
        stages.append(
            StageFigures(
                level=level,
                begins=30.0 * place,
                ends=30.0 * (place + 1),
                requests=40,
                failed=lost,
                metrics=one.metrics,
                distributions=one.distributions,
            )
        )
    whole = cell(1024, 1)
    unknown = {
        name: metric.model_copy(update={"value": None, "low": None, "high": None, "why": "the load has several levels"})
        for name, metric in whole.metrics.items()
    }
    changed = {
        "id": "run", "users": None, "pattern": "staged", "stages": stages, "metrics": unknown, "distributions": {},
        "requests": 40 * len(levels), "failures": {"timeout": sum(failed)} if any(failed) else {}, "state": "ok",
        "load": {"pattern": {"kind": "staged", "of": of}, "target": {"endpoint": "chat"}},
    }  # fmt: skip
    return Result.model_validate({"schema": "bezel.bench/1", "kind": "run", "nature": "measured",
                                  "manifest": manifest("In stages", "nvidia-l4"),
                                  "cells": [whole.model_copy(update=changed)]})  # fmt: skip


def drafts() -> Result:
    """A comparison of 0, 2 and 4 draft tokens, in three rounds."""
    arms = {"spec_tokens=0": (1.0, None), "spec_tokens=2": (1.35, [0.81, 0.62]),
            "spec_tokens=4": (1.42, [0.80, 0.61, 0.44, 0.31])}  # fmt: skip
    cells = [cell(1024, 8, factor=factor, variant=arm, repeat=turn, acceptance=shares, seed=turn * 7 + place)
             for place, (arm, (factor, shares)) in enumerate(arms.items()) for turn in range(3)]  # fmt: skip
    findings = [
        _difference("spec_tokens=2", "tpot_p50", -0.26, -0.29, -0.23),
        _difference("spec_tokens=2", METRIC, 0.33, 0.3, 0.37),
        _difference("spec_tokens=2", "ttft_p50", 0.01, -0.04, 0.06),
        _difference("spec_tokens=4", METRIC, None, None, None),
    ]
    return Result.model_validate({"schema": "bezel.bench/1", "kind": "ab", "nature": "measured", "cells": cells,
                                  "manifest": manifest("Drafts of 0, 2 and 4 tokens"), "findings": findings,
                                  "variants": {arm: ServedBy() for arm in arms}})  # fmt: skip


def _difference(arm: str, figure: str, change: float | None, low: float | None, high: float | None) -> Finding:
    shown = low is not None and high is not None and low * high > 0
    numbers = {"arm": arm, "compared_with": "spec_tokens=0", "figure": figure}
    return Finding(name="difference" if shown else "no_difference_shown", text=f"{figure}: {arm} has {change}",
                   numbers=numbers | {"change": change, "low": low, "high": high, "rounds": 3})  # fmt: skip


def failed_result(*, text: str = "the server answered 503: no available instance") -> Result:
    """One run in which a third of the requests failed; nothing is known of price and hardware."""
    checks = [check("failures_apart", "failed", text, failed=70, sent=200), check("manifest", "unknown", "no digest")]
    one = cell(1024, 16, price=None, state="failed", reason=f"failures_apart: {text}", checks=checks,
               failures={"http_5xx": 66, "truncated": 4}, failure_examples={"http_5xx": text})  # fmt: skip
    about = manifest(f"A failed run: {text}", None, price=None, model=text)
    return Result.model_validate({"schema": "bezel.bench/1", "kind": "run", "nature": "measured", "cells": [one],
                                  "manifest": about, "notes": [text]})  # fmt: skip
