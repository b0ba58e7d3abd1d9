"""Whether speculative decoding pays: drafts are made, and some are accepted.

A server with a draft model that does not fit answers correctly and slower than without; only its counters tell.
"""

from smoke.probe import CheckFailedError, Probe
from smoke.server import counters

_CHECK = "speculation"
_TOKENS = 64
_ROUNDS = 3
_FAMILY = "vllm:spec_decode_"
# Texts that go on in an obvious way: what a fitting draft model gets right.
_PROMPTS = (
    "The three primary colours are red, yellow and",
    "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18,",
    "def add(a, b):\n    return a + b\n\ndef subtract(a, b):\n",
    "Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday. January, February, March,",
)


def check_acceptance(probe: Probe, least: float) -> str:
    """Sends a few completions and compares the server's counters before and after.

    Args:
        probe: The server.
        least: The least share of draft tokens accepted, 0 to 1; in any case some must be.

    Raises:
        CheckFailedError: None is drafted, or too few are accepted.
    """
    for _ in range(_ROUNDS):
        drafted_before, accepted_before = _counted(probe)
        for prompt in _PROMPTS:
            probe.complete(_CHECK, prompt, _TOKENS)
        drafted, accepted = _counted(probe)
        drafted, accepted = drafted - drafted_before, accepted - accepted_before
        # Another instance may have answered: its counters are its own.
        if drafted > 0 and accepted >= 0:
            return _judged(accepted / drafted, int(drafted), least)
    raise CheckFailedError(
        _CHECK,
        "no draft was counted during the completions",
        "Look for speculative_config in the container's log: it must name a method and a draft model.",
    )


def _judged(share: float, drafted: int, least: float) -> str:
    if share <= 0 or share < least:
        raise CheckFailedError(
            _CHECK,
            f"{share:.1%} of {drafted} draft tokens were accepted, at least {max(least, 0.001):.1%} is wanted",
            "The draft model does not fit the model: set vllm.spec-model to its own assistant, lower "
            "vllm.spec-tokens, or remove speculation, which costs time as it is.",
        )
    return f"{share:.1%} of {drafted} draft tokens were accepted"


def _counted(probe: Probe) -> tuple[float, float]:
    """Draft tokens and accepted tokens so far."""
    sums = counters(probe.answered(_CHECK, "GET", "/metrics").text, _FAMILY)
    names = [f"{_FAMILY}num_{kind}_tokens_total" for kind in ("draft", "accepted")]
    missing = [name for name in names if name not in sums]
    if missing:
        raise CheckFailedError(
            _CHECK,
            f"/metrics has no {missing[0]}: the server runs without speculative decoding",
            "Set vllm.spec-method and vllm.spec-model (and no vllm.disable-log-stats), or leave speculation out.",
        )
    return sums[names[0]], sums[names[1]]
