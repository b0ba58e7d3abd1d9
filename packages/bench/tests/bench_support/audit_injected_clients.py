"""Injections of faults 17 and 18 into the files of other load clients: one core figure changed, a load not sent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench_support.audit_clean import File
from bench_support.audit_injecting import Dice, Way, case_of
from bench_support.audit_server import some_server
from bench_support.writers.formats import FORMATS, scale_figure
from bench_support.writers.reports import inference_perf
from bench_support.writers.requests import closed_load, open_load

if TYPE_CHECKING:
    from collections.abc import Callable

_FACTORS = (1.2, 1.3, 1.5, 2.0, 0.5)


def _changed_figure(dice: Dice, figure: str) -> Way:
    """One figure of a file was changed."""
    name = dice.choice([name for name, kind in FORMATS.items() if figure in kind.places and not kind.yaml])
    kind = FORMATS[name]
    seed = dice.randint(0, 10**6)
    load = closed_load(seed, rounds=20) if kind.closed_only or dice.random() < 0.5 else open_load(seed)
    document = scale_figure(kind.write(load), kind.places[figure][0], dice.choice(_FACTORS), whole=dice.random() < 0.5)
    return case_of(some_server(dice), File("run.json", document=document)), "run.json"


def _changed_rate(dice: Dice) -> Way:
    return _changed_figure(dice, "rate")


def _changed_duration(dice: Dice) -> Way:
    return _changed_figure(dice, "duration")


def _changed_order(dice: Dice) -> Way:
    """The median is above the p99."""
    document = FORMATS["vllm"].write(closed_load(dice.randint(0, 10**6)))
    document["median_ttft_ms"], document["p99_ttft_ms"] = document["p99_ttft_ms"], document["median_ttft_ms"]
    return case_of(some_server(dice), File("run.json", document=document)), "run.json"


def _slow_client(dice: Dice) -> Way:
    """The client sent less than was asked for."""
    rate = dice.uniform(3, 20)
    document = inference_perf(open_load(dice.randint(0, 10**6), rate=rate * dice.uniform(0.4, 0.7), count=600))
    document["load_summary"]["requested_rate"] = rate
    return case_of(some_server(dice), File("run.json", document=document)), "run.json"


def _late_client(dice: Dice) -> Way:
    """Requests waited in the client, and no latency counts that."""
    document = inference_perf(open_load(dice.randint(0, 10**6), late=dice.uniform(0.02, 0.5)))
    return case_of(some_server(dice), File("run.json", document=document)), "run.json"


WAYS: dict[int, tuple[Callable[[Dice], Way], ...]] = {
    17: (_changed_rate, _changed_duration, _changed_order),
    18: (_slow_client, _late_client),
}
