"""Check of speculative decoding: drafts are made, and enough of them are accepted.

A server with an unfit draft model answers correctly, but slower than without it; only its counters show that.
"""

from dataclasses import dataclass

from smoke.client import counters
from smoke.poller import CheckFailedError, NotJudged, Poller

_CHECK = "speculation"
_TOKENS = 64
# Fewest drafts for judging the share: with fewer, chance decides.
_DRAFTS = 256
# Each round of the prompts drafts about 60 times; n-grams are found less often.
_ROUNDS = 24
_FAMILY = "vllm:spec_decode_num_"
# Texts with an obvious continuation, which a fitting draft model predicts.
_PROMPTS = (
    "The three primary colours are red, yellow and",
    "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18,",
    "def add(a, b):\n    return a + b\n\ndef subtract(a, b):\n",
    "Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday. January, February, March,",
)


@dataclass(frozen=True)
class _Counts:
    """The server's counters: drafts, their tokens, and the accepted ones of these."""

    drafts: float = 0
    tokens: float = 0
    accepted: float = 0

    def __add__(self, other: "_Counts") -> "_Counts":
        return _Counts(self.drafts + other.drafts, self.tokens + other.tokens, self.accepted + other.accepted)

    def since(self, earlier: "_Counts") -> "_Counts | None":
        """The increase; None where the counters are another instance's."""
        gained = (self.drafts - earlier.drafts, self.tokens - earlier.tokens, self.accepted - earlier.accepted)
        return None if min(gained) < 0 else _Counts(*gained)


def check_acceptance(probe: Poller, least: float, *, random_weights: bool = False) -> str | NotJudged:
    """Send completions until there are enough drafts, and judge the share of accepted draft tokens.

    Args:
        probe: The server.
        least: The smallest share, 0 to 1, of at least 256 drafts; with 0 any accepted token of any draft will do.
        random_weights: Whether the model is a test model with unpredictable output: drafts must be made, but the share
            is reported and not judged.

    Raises:
        CheckFailedError: There are no or too few drafts, or too few accepted tokens.
    """
    wanted = _DRAFTS if least and not random_weights else 1
    counted, before = _Counts(), _counted(probe)
    for _ in range(_ROUNDS):
        for prompt in _PROMPTS:
            probe.complete(_CHECK, prompt, _TOKENS)
        now = _counted(probe)
        counted, before = counted + (now.since(before) or _Counts()), now
        if counted.drafts >= wanted and counted.tokens:
            return _judged(counted, least, random_weights=random_weights)
    raise CheckFailedError(
        _CHECK,
        f"{int(counted.drafts) or 'no'} drafts were counted in {_ROUNDS * len(_PROMPTS)} completions, "
        f"{wanted} {'are' if wanted > 1 else 'is'} needed to judge",
        "Look for speculative_config in the container's log: it must name a method and a draft model. Other instances "
        "count their own: check a service with one.",
    )


def _judged(counted: _Counts, least: float, *, random_weights: bool) -> str | NotJudged:
    share = counted.accepted / counted.tokens
    found = f"{share:.1%} of {int(counted.tokens)} tokens in {int(counted.drafts)} drafts were accepted"
    if random_weights:
        return NotJudged(f"smoke.random_weights is set; {found}")
    if share <= 0 or share < least:
        raise CheckFailedError(
            _CHECK,
            f"{found}, at least {max(least, 0.001):.1%} is wanted",
            "The draft model does not fit the model: set vllm.spec-model to its own assistant, lower "
            "vllm.spec-tokens, or remove speculation, which costs time as it is. A test model with random weights: "
            "set smoke.random_weights.",
        )
    return f"{found}, at least {least:.1%} was wanted" if least else found


def _counted(probe: Poller) -> _Counts:
    """Read the counters."""
    sums = counters(probe.answered(_CHECK, "GET", "/metrics").text, _FAMILY)
    names = [f"{_FAMILY}{kind}_total" for kind in ("drafts", "draft_tokens", "accepted_tokens")]
    missing = [name for name in names if name not in sums]
    if missing:
        raise CheckFailedError(
            _CHECK,
            f"/metrics has no {missing[0]}: the server runs without speculative decoding",
            "Set vllm.spec-method and vllm.spec-model (and no vllm.disable-log-stats), or leave speculation out.",
        )
    return _Counts(*(sums[name] for name in names))
