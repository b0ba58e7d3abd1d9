"""Counters of a vLLM server: read from `/metrics` before and after a load, and subtracted where that is valid.

Owns the parsing of Prometheus' text format, the names of the counters and the rules for a void difference. Leaves the
requests to bezel_bench.server.drain and the assessment to bezel_bench.validity.server_checks.

Each counter has a gauge beside it that ends in `_created` and holds a date, and `vllm:iteration_tokens_total` is a
histogram in spite of its name: only the counters named here are read, summed over engines and models.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Sequence

    from bezel_bench.result.document import Counters, Reading

_COUNTERS = {
    "vllm:prompt_tokens_total": "prompt_tokens",
    "vllm:prompt_tokens_cached_total": "cached_tokens",
    "vllm:generation_tokens_total": "generated_tokens",
    "vllm:num_preemptions_total": "preemptions",
    "vllm:spec_decode_num_drafts_total": "drafts",
    "vllm:spec_decode_num_draft_tokens_total": "draft_tokens",
    "vllm:spec_decode_num_accepted_tokens_total": "accepted_tokens",
}
_SUCCESS = "vllm:request_success_total"
_PER_POSITION = "vllm:spec_decode_num_accepted_tokens_per_pos_total"
_STARTED = "process_start_time_seconds"
_READ = {*_COUNTERS, _SUCCESS, _PER_POSITION, _STARTED}
_RUNNING, _WAITING = "vllm:num_requests_running", "vllm:num_requests_waiting"
# vLLM 0.32 counts no abort at all; requests that ended so got no response.
_NO_SUCCESS = {"abort", "error"}
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


def series(text: str, names: Container[str] | None = None) -> Iterator[tuple[str, dict[str, str], float]]:
    """Yield name, labels and value of each line of Prometheus' text format that holds a number.

    Args:
        text: The lines.
        names: Only lines with these names are yielded; None for all.
    """
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        # A label's value may hold spaces and braces: the value follows the last closing one.
        head, brace, tail = line.rpartition("}")
        name, _, labels = head.partition("{") if brace else (line.partition(" ")[0], "", "")
        if names is not None and name not in names:
            continue
        parts = (tail if brace else line.partition(" ")[2]).split()
        try:
            value = float(parts[0])
        except (IndexError, ValueError):
            continue
        if math.isfinite(value):
            yield name, dict(_LABEL.findall(labels)), value


def reading(text: str) -> Reading | None:
    """Return the counters of a `/metrics` response; None where it is not vLLM's."""
    # Imported late: a load begins without the models of its result.
    from bezel_bench.result.document import Reading

    sums: Counter[str] = Counter()
    positions: Counter[int] = Counter()
    engines: set[str] = set()
    started: float | None = None
    for name, labels, value in series(text, _READ):
        if field := _COUNTERS.get(name):
            sums[field] += int(value)
            engines.add(labels.get("engine", ""))
        elif name == _SUCCESS:
            sums["requests"] += (labels.get("finished_reason") not in _NO_SUCCESS) * int(value)
        elif name == _PER_POSITION and labels.get("position", "").isdecimal():
            positions[int(labels["position"])] += int(value)
        elif name == _STARTED:
            started = value
    if not sums:
        return None
    accepted = [positions[position] for position in sorted(positions)] or None
    return Reading(process_started=started, engines=len(engines), accepted_per_position=accepted, **sums)


def running(text: str) -> tuple[int, int] | None:
    """Return the requests that run and wait at the server, from a `/metrics` response; None where not reported."""
    sums: Counter[str] = Counter()
    for name, _, value in series(text, {_RUNNING, _WAITING}):
        sums[name] += int(value)
    return (sums[_RUNNING], sums[_WAITING]) if len(sums) == 2 else None


def readings(texts: Sequence[str]) -> list[Reading]:
    """Return the counters of several `/metrics` responses; empty where one is not vLLM's."""
    results = [reading(text) for text in texts]
    return [result for result in results if result is not None] if None not in results else []


def over(before: Sequence[str], after: Sequence[str] | None, *, instances: int | None) -> Counters:
    """Return the counters' increase over a load from texts of `/metrics`; `after` is None where nothing succeeded."""
    from bezel_bench.result.document import Counters

    first = readings(before)
    if after is None:
        return Counters(before=first[-1] if first else None, after=None, gained=None, why="no request succeeded")
    return counter_increase(first, readings(after), instances=instances)


def counter_increase(before: Sequence[Reading], after: Sequence[Reading], *, instances: int | None) -> Counters:
    """Return the counters' increase over a load.

    Args:
        before: Readings before it, taken one after the other on separate connections; empty where there is none.
        after: Readings after it, likewise.
        instances: The number of servers behind the address; None where unknown.
    """
    from bezel_bench.result.document import Counters

    first, last = (before[-1] if before else None), (after[-1] if after else None)
    if first is None or last is None:
        return Counters(before=first, after=last, gained=None, why="the server reports no counters at /metrics")
    why = _void(before, after, instances)
    return Counters(before=first, after=last, gained=None if why else _difference(first, last), why=why)


def _void(before: Sequence[Reading], after: Sequence[Reading], instances: int | None) -> str:
    """Return why a difference of readings is invalid, "" where it is valid."""
    if instances is not None and instances > 1:
        return f"{instances} instances serve at the address, and each counts its own requests"
    if (
        len({reading.process_started for reading in before}) > 1
        or len({reading.process_started for reading in after}) > 1
    ):
        return "several processes serve at the address, and each counts its own requests"
    first, last = before[-1], after[-1]
    if first.process_started != last.process_started:
        return "another process responded after the load: the server was restarted, or there are several"
    for name in type(first).model_fields:
        old, new = getattr(first, name), getattr(last, name)
        if (old is None) != (new is None):
            return f"{name} was counted at one end of the load only: another server responded"
        if isinstance(old, int) and new < old:
            return f"{name} fell from {old} to {new}: the server was restarted, or there are several"
    return ""


def _difference(first: Reading, last: Reading) -> Reading:
    whole = {name: getattr(first, name) for name in ("process_started", "engines")}
    counts = {
        name: getattr(last, name) - getattr(first, name)
        for name in type(first).model_fields
        if name not in {*whole, "accepted_per_position"} and getattr(first, name) is not None
    }
    accepted = None
    if first.accepted_per_position is not None and last.accepted_per_position is not None:
        pairs = zip(first.accepted_per_position, last.accepted_per_position, strict=False)
        accepted = [new - old for old, new in pairs]
    return type(first)(**whole, **counts, accepted_per_position=accepted)


def acceptance(gained: Reading | None) -> list[float] | None:
    """Return the share of drafts whose token at each position was accepted; None where no draft was made."""
    if gained is None or not gained.drafts or gained.accepted_per_position is None:
        return None
    return [accepted / gained.drafts for accepted in gained.accepted_per_position]
