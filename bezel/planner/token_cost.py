"""What a million tokens cost, input and output apart, at a stated load and utilisation.

Owns the split of an instance's paid seconds: prompts are charged the seconds of their arithmetic, answers the rest of a
full batch's time. The sum over a request is what it costs; nothing is counted twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bezel.planner.money import figure, times

if TYPE_CHECKING:
    from bezel.planner.money import Amount
    from bezel.planner.roofline import Estimate, Range

# Share of the paid time that an instance works under the stated load; the rest it starts, idles or drains. A floor
# for the price is 1; what a service reaches is seen in its bill only.
UTILISATION = 0.5
_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class TokenCost:
    """USD for a million tokens as (low, high), from the fast and the slow end of the estimate."""

    input: tuple[Amount, Amount]
    output: tuple[Amount, Amount]
    load: str
    utilisation: float

    @property
    def basis(self) -> str:
        """At which load and utilisation it holds."""
        return f"estimate at {self.load}, {self.utilisation:.0%} of the paid time under this load"

    def as_output(self) -> dict[str, object]:
        """Plain values for a stack's output; an unknown figure says "unknown"."""
        return {
            "usd_per_million_input_tokens": [figure(end, 3) for end in self.input],
            "usd_per_million_output_tokens": [figure(end, 3) for end in self.output],
            "tokens_basis": self.basis,
        }


def token_cost(hourly: Amount, found: Estimate, *, utilisation: float = UTILISATION) -> TokenCost:
    """The cost of tokens on one instance.

    Args:
        hourly: of the instance.
        found: its estimated speed at the load.
        utilisation: share of the paid time under that load, above 0 and at most 1.
    """

    def million(seconds: Range) -> tuple[Amount, Amount]:
        fast, slow = (times(hourly, second * _MILLION / utilisation / 3600) for second in seconds)
        return fast, slow

    prefill, step = found.prefill_seconds, found.step_seconds
    return TokenCost(
        input=million((prefill[0] / found.prompt_tokens, prefill[1] / found.prompt_tokens)),
        output=million((step[0] / found.batch, step[1] / found.batch)),
        load=f"{found.batch} users, {found.prompt_tokens} tokens in, {found.output_tokens} out",
        utilisation=utilisation,
    )
