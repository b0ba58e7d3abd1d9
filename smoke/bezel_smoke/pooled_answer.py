"""Check of a model that pools: one request to the endpoint that it serves, and whether its answer is plausible.

Leaves the choice of the endpoint to the plan, retries to `bezel_smoke.poller`.
"""

import math
from typing import TYPE_CHECKING, Any

from bezel_smoke.poller import CheckFailedError, NotJudged

if TYPE_CHECKING:
    from bezel_smoke.poller import Poller

CHECK = "pooling"
_TEXT = "The capital of France is Paris."
_QUERY, _DOCUMENTS = "What is the capital of France?", ("Paris is the capital of France.", "Bread is made of flour.")
_NOT_VLLM = "check that the image is vLLM's, and that the service at this address is the one of the stack."


def check_pooled_answer(poller: "Poller", path: str) -> str | NotJudged:
    """Send one request; return what came back as text.

    Args:
        poller: The poller of the server.
        path: Its endpoint, e.g. /v1/embeddings; "" where only a plugin's data would get an answer.

    Raises:
        CheckFailedError: The answer is not plausible, or never comes.
    """
    if not path:
        return NotJudged("only a plugin of the server can ask this model, so its answer was not judged")
    is_ranking = path.endswith("/rerank")
    asked = {"query": _QUERY, "documents": list(_DOCUMENTS)} if is_ranking else {"input": _TEXT}
    parsed = poller.json_response(CHECK, "POST", path, json={"model": poller.model, **asked})
    rows = parsed.get("results" if is_ranking else "data")
    expected = len(_DOCUMENTS) if is_ranking else 1
    if not isinstance(rows, list) or len(rows) != expected or not all(isinstance(row, dict) for row in rows):
        raise CheckFailedError(CHECK, f"POST {path} got HTTP 200 without {expected} results", _NOT_VLLM)
    numbers = [number for row in rows for number in _numbers(row)]
    if not numbers or not all(map(math.isfinite, numbers)):
        raise CheckFailedError(CHECK, f"POST {path} got HTTP 200 without finite numbers", _NOT_VLLM)
    usage = parsed.get("usage")
    tokens = usage.get("prompt_tokens") if isinstance(usage, dict) else None
    if not isinstance(tokens, int) or tokens < 1:
        raise CheckFailedError(CHECK, f"POST {path} got HTTP 200 without a number of prompt tokens", _NOT_VLLM)
    return f"{path} returned {len(numbers)} number{'s' * (len(numbers) > 1)} for {tokens} prompt tokens"


def _numbers(row: dict[str, Any]) -> list[float]:
    """The numbers of a result: a vector, one for each token, probabilities, or one score."""
    value: Any = next((row[key] for key in ("embedding", "probs", "relevance_score", "data") if key in row), [])
    values = value if isinstance(value, list) else [value]
    flat = [number for each in values for number in (each if isinstance(each, list) else [each])]
    return [float(number) for number in flat if isinstance(number, int | float) and not isinstance(number, bool)]
