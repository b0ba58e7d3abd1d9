"""Check of speculative decoding: drafts are made, and enough of them are accepted.

A server with an unfit draft model answers correctly, but slower than without it; only its counters show that.
"""

from bezel.diagnosis.client import counters
from bezel_smoke.poller import CheckFailedError, NotJudged, Poller

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


def check_acceptance(poller: Poller, min_share: float, *, random_weights: bool = False) -> str | NotJudged:
    """Send completions until there are enough drafts, and judge the share of accepted draft tokens.

    Args:
        poller: Poller of the server.
        min_share: The smallest share, 0 to 1, of at least 256 drafts; with 0 any accepted token of any draft will do.
        random_weights: Whether the model is a test model with unpredictable output: drafts must be made, but the share
            is reported and not judged.

    Raises:
        CheckFailedError: There are no or too few drafts, or too few accepted tokens.
    """
    needed = _DRAFTS if min_share and not random_weights else 1
    drafts, tokens, accepted = total = [0.0, 0.0, 0.0]
    before = _counts(poller)
    for _ in range(_ROUNDS):
        for prompt in _PROMPTS:
            poller.complete(_CHECK, prompt, _TOKENS)
        now = _counts(poller)
        gained = [new - old for new, old in zip(now, before, strict=True)]
        if min(gained) >= 0:  # else the counters are another instance's
            drafts, tokens, accepted = total = [sum(pair) for pair in zip(total, gained, strict=True)]
        before = now
        if drafts >= needed and tokens:
            return _judge(drafts, tokens, accepted, min_share, random_weights=random_weights)
    raise CheckFailedError(
        _CHECK,
        f"{int(drafts) or 'no'} drafts were counted in {_ROUNDS * len(_PROMPTS)} completions, "
        f"{needed} {'are' if needed > 1 else 'is'} needed to judge",
        "find speculative_config in the container's log: it must name a method and a draft model. Each instance counts "
        "its own drafts: check a service with one instance.",
    )


def _judge(drafts: float, tokens: float, accepted: float, min_share: float, *, random_weights: bool) -> str | NotJudged:
    share = accepted / tokens
    result = f"{share:.1%} of {int(tokens)} tokens in {int(drafts)} drafts were accepted"
    if random_weights:
        return NotJudged(f"the weights are random, and nothing predicts their output; {result}")
    if share <= 0 or share < min_share:
        raise CheckFailedError(
            _CHECK,
            f"{result}, at least {max(min_share, 0.001):.1%} is required",
            "set vllm.spec-model to the model's own assistant, lower vllm.spec-tokens, or remove speculation, which "
            "costs time with a draft model that does not fit. For a test model with random weights set "
            "smoke.random_weights.",
        )
    return f"{result}, at least {min_share:.1%} was required" if min_share else result


def _counts(poller: Poller) -> list[float]:
    """Read the counters: drafts, their tokens, and the accepted ones of these."""
    sums = counters(poller.response(_CHECK, "GET", "/metrics").text, _FAMILY)
    names = [f"{_FAMILY}{kind}_total" for kind in ("drafts", "draft_tokens", "accepted_tokens")]
    if missing := [name for name in names if name not in sums]:
        raise CheckFailedError(
            _CHECK,
            f"/metrics has no {missing[0]}: the server runs without speculative decoding",
            "set vllm.spec-method and vllm.spec-model (and no vllm.disable-log-stats), or leave speculation out.",
        )
    return [sums[name] for name in names]
