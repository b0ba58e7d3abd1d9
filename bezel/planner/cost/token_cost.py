"""Cost of a million tokens, input and output separately, at a stated load and utilisation.

Owns the split of an instance's paid seconds between prompts and outputs, in the ratio of the time that each would take
without the other. Their sum over a request is the request's cost; nothing is counted twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bezel.planner.base.money import figure, times

if TYPE_CHECKING:
    from bezel.planner.base.money import Amount
    from bezel_catalog.sizing.pooled_speed import PooledEstimate
    from bezel_catalog.sizing.roofline import Estimate

# Share of the paid time under the stated load; in the rest an instance starts, idles or drains. 1 gives the lowest
# possible price; only the bill shows the share that a service reaches.
UTILISATION = 0.5
POOLED_DIGITS = 6  # small encoders read a million tokens for less than a cent
_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class TokenCost:
    """USD for a million tokens as (low, high), from the fast and the slow end of the estimate.

    `output` is None for a model that pools, which generates none.
    """

    input: tuple[Amount, Amount]
    output: tuple[Amount, Amount] | None
    load: str
    utilisation: float

    @property
    def basis(self) -> str:
        """The load and utilisation at which the cost holds."""
        return f"estimate at {self.load}, {self.utilisation:.0%} of the paid time under this load"

    def as_output(self) -> dict[str, object]:
        """Plain values for a stack's output; an unknown figure is "unknown"."""
        if self.output is None:
            return {
                "usd_per_million_input_tokens": [figure(end, POOLED_DIGITS) for end in self.input],
                "tokens_basis": self.basis,
            }
        return {
            "usd_per_million_input_tokens": [figure(end, 3) for end in self.input],
            "usd_per_million_output_tokens": [figure(end, 3) for end in self.output],
            "tokens_basis": self.basis,
        }


def token_cost(hourly: Amount, speed: Estimate, *, utilisation: float = UTILISATION) -> TokenCost:
    """The cost of tokens on one instance.

    Args:
        hourly: of the instance.
        speed: estimated speed at the load.
        utilisation: share of the paid time under that load, above 0 and at most 1.
    """
    ends: dict[str, list[Amount]] = {"input": [], "output": []}
    for step, prefill, round_ in zip(speed.step_seconds, speed.prefill_seconds, speed.round_seconds, strict=True):
        paid = round_ / (speed.output_tokens * step + speed.batch * prefill) * _MILLION / utilisation / 3600
        ends["input"].append(times(hourly, paid * prefill / speed.prompt_tokens))
        ends["output"].append(times(hourly, paid * step / speed.batch))
    return TokenCost(
        input=(ends["input"][0], ends["input"][1]),
        output=(ends["output"][0], ends["output"][1]),
        load=f"{speed.batch} users, {speed.prompt_tokens} tokens in, {speed.output_tokens} out",
        utilisation=utilisation,
    )


def pooled_token_cost(hourly: Amount, speed: PooledEstimate, *, utilisation: float = UTILISATION) -> TokenCost:
    """The cost of tokens on one instance with a model that pools: all of its time is spent on inputs.

    Args:
        hourly: of the instance.
        speed: estimated speed at the load.
        utilisation: share of the paid time under that load, above 0 and at most 1.
    """
    slow, fast = (_MILLION / rate / utilisation / 3600 for rate in speed.tokens_per_second)
    return TokenCost(
        input=(times(hourly, fast), times(hourly, slow)),
        output=None,
        load=f"{speed.batch} inputs of {speed.prompt_tokens} tokens in each step",
        utilisation=utilisation,
    )
