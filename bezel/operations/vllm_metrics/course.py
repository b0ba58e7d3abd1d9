"""Course of a stack's figures over time: one row for each window, and lines that draw it in 80 columns. Pure."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from bezel.leases.clock import format_duration
from bezel.operations.results import utc
from bezel.operations.vllm_metrics import sample as names
from bezel.operations.vllm_metrics.figures import ended_requests
from bezel.operations.vllm_metrics.latencies import latency_of, seconds_text
from bezel.operations.vllm_metrics.sample import Sample
from bezel.operations.vllm_metrics.served import ALL, Served

_LEVELS = ":-=+*#%@"
_NO_SERVER, _NOTHING = "_", "."
_NAME, _VALUE = 12, 10


class Window(BaseModel):
    """What the servers did in a part of the time; a figure is null where it is unknown, or nothing was observed."""

    model_config = ConfigDict(frozen=True)

    begins_at: datetime
    ends_at: datetime
    servers: int = Field(description="servers that were sampled")
    requests: int | None = Field(description="calls of the model that ended")
    failed: int | None = Field(description="those of them that the server failed")
    prompt_tokens: int | None
    generated_tokens: int | None
    ttft_p50: float | None = Field(description="seconds")
    ttft_p99: float | None = Field(description="seconds")
    waiting: float | None = Field(description="longest queue of one server")
    kv_cache_usage: float | None = Field(description="highest use of a KV cache, 0 to 1")


def course_of(served: Served) -> tuple[Window, ...]:
    """The windows of what the servers did."""
    return tuple(_window(served, number) for number in range(len(served.when.ends)))


def _window(served: Served, number: int) -> Window:
    begins_at, ends_at = utc(served.when.begins[number]), utc(served.when.ends[number])
    if begins_at is None or ends_at is None:
        raise AssertionError("a window has two ends")
    waiting, usage = (served.gauges.get(name) for name in (names.WAITING, names.KV_USAGE))
    return Window(
        begins_at=begins_at,
        ends_at=ends_at,
        servers=served.servers[number] if served.servers else 0,
        **traffic_of(served, slice(number, number + 1)),
        waiting=None if waiting is None else waiting[number],
        kv_cache_usage=None if usage is None else usage[number],
    )


def traffic_of(served: Served, windows: slice) -> dict[str, Any]:
    """What a `Window` and a `Day` say of the traffic in some windows, by the names of their fields."""
    requests, failed = requests_of(served, windows)
    ttft = latency_of(served, "ttft", windows)
    return {
        "requests": requests,
        "failed": failed,
        "prompt_tokens": whole(served.count(names.PROMPT, windows)),
        "generated_tokens": whole(served.count(names.GENERATED, windows)),
        "ttft_p50": ttft.p50,
        "ttft_p99": ttft.p99,
    }


def requests_of(served: Served, windows: slice = ALL) -> tuple[int | None, int | None]:
    """Calls of the model that ended in some windows, and those that the server failed; None where neither is known."""
    is_counted = any(served.counters.get(name) for name in (names.HTTP, names.FINISHED))
    if not is_counted or served.is_unknown(windows):
        return None, None
    outcomes = served.outcomes(windows)
    well, failed = ended_requests(Sample(read_at=0.0, sums={}, kv_usage=None, outcomes=outcomes, engines=0))
    return round(well + failed), round(failed)


def whole(number: float | None) -> int | None:
    """A count as a whole number."""
    return None if number is None else round(number)


def totals_line(windows: Sequence[Window]) -> str:
    """The sums over the windows."""
    sums = [total_of(windows, name) for name in ("requests", "failed", "prompt_tokens", "generated_tokens")]
    requests, failed, prompt, generated = ("unknown" if number is None else f"{number:,}" for number in sums)
    return f"requests {requests}, {failed} of them failed; tokens {prompt} in, {generated} out"


def total_of(
    windows: Sequence[Window], name: Literal["requests", "failed", "prompt_tokens", "generated_tokens"]
) -> int | None:
    """Sum of a figure over the windows with a sample; None where it is unknown in one of them."""
    numbers: list[int | None] = [getattr(window, name) for window in windows if window.servers or getattr(window, name)]
    counts = [number for number in numbers if number is not None]
    return sum(counts) if len(counts) == len(numbers) else None


def course_lines(windows: Sequence[Window], *, generates: bool = True) -> Iterator[str]:
    """The course in lines of at most 80 columns, each with the highest value of its figure."""
    if not any(window.servers for window in windows):
        return
    length = max((window.ends_at - window.begins_at).total_seconds() for window in windows)
    yield (
        f"each column is {format_duration(length)}, from {windows[0].begins_at:%Y-%m-%d %H:%M} UTC; "
        f"{_NO_SERVER} no sample, {_NOTHING} nothing"
    )
    rows: list[tuple[str, Callable[[Window], float | None], Callable[[float], str]]] = [
        ("requests", lambda window: window.requests, _number),
        ("failed", lambda window: window.failed, _number),
        ("tokens in", lambda window: window.prompt_tokens, _number),
    ]
    if generates:
        rows.append(("tokens out", lambda window: window.generated_tokens, _number))
        rows.append(("TTFT p99", lambda window: window.ttft_p99, seconds_text))
    rows.append(("waiting", lambda window: window.waiting, _number))
    rows.append(("KV cache", lambda window: window.kv_cache_usage, lambda share: f"{share:.0%}"))
    for name, value_of, text_of in rows:
        values = [value_of(window) for window in windows]
        most = max((value for value in values if value is not None), default=None)
        if most is not None:
            drawn = "".join(_level(value, most, window) for value, window in zip(values, windows, strict=True))
            yield f"{name:<{_NAME}}{text_of(most):>{_VALUE}} {drawn}"


def _level(value: float | None, most: float, window: Window) -> str:
    if not window.servers and not value:
        return _NO_SERVER
    if not value:
        return _NOTHING
    return _LEVELS[max(0, min(len(_LEVELS) - 1, round(value / most * len(_LEVELS)) - 1))]


def _number(value: float) -> str:
    return f"{value:,.0f}"
