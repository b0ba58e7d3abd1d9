"""Keys that a door refuses, as the openai package reports them: a variable for each key; argument: the model."""

import os
import sys
import time
from collections.abc import Callable

import openai
from outcomes import Calls

MODEL = sys.argv[1]
CALLS_SECONDS = 15
ASK = {"model": MODEL, "messages": [{"role": "user", "content": "Name a colour."}], "max_tokens": 4}
calls = Calls(f"openai (Python) {openai.__version__}")


def client_of(name: str) -> openai.OpenAI:
    return openai.OpenAI(api_key=os.environ[name], max_retries=0, timeout=60)


def refusal(name: str, kind: type[openai.APIStatusError], code: str, *, after: int = 0, **ask: object) -> None:
    """A request by the key in this variable is refused after so many that are not."""
    client = client_of(name)
    for _ in range(after):
        assert client.chat.completions.create(**ASK).choices
    error = error_of(lambda: client.chat.completions.create(**(ASK | ask)))
    assert (type(error), error.code) == (kind, code), error
    assert ("retry-after" in error.response.headers) == (kind is openai.RateLimitError)


def error_of(call: Callable[[], object]) -> openai.APIStatusError:
    """The error of a call."""
    try:
        call()
    except openai.APIStatusError as error:
        return error
    raise AssertionError("it was accepted")


def wait_for_a_whole_minute() -> None:
    """Pass the rest of a clock minute that may end during the calls: a limit of a minute starts anew with each."""
    rest = 60 - time.time() % 60
    if rest < CALLS_SECONDS:
        time.sleep(rest)


def stream_over_a_limit() -> None:
    """A stream that begins below a limit is whole, and the next request is refused."""
    stream = client_of("STREAM_KEY").chat.completions.create(**(ASK | {"max_tokens": 64}), stream=True)
    assert list(stream)[-1].choices[0].finish_reason == "length"
    refusal("STREAM_KEY", openai.RateLimitError, "rate_limit_exceeded")


def embeddings() -> None:
    """A model that makes no embeddings refuses them itself."""
    client_of("KEY").embeddings.create(model=MODEL, input="a colour")


wrong = openai.AuthenticationError
calls.passes("wrong key", lambda: refusal("WRONG_KEY", wrong, "invalid_api_key"))
calls.passes("expired key", lambda: refusal("EXPIRED_KEY", wrong, "expired_api_key"))
calls.passes("revoked key", lambda: refusal("REVOKED_KEY", wrong, "revoked_api_key"))
calls.passes(
    "model", lambda: refusal("MODEL_KEY", openai.PermissionDeniedError, "model_not_allowed", after=1, model="x")
)
limit = (openai.RateLimitError, "rate_limit_exceeded")
wait_for_a_whole_minute()
calls.passes("requests a minute", lambda: refusal("REQUESTS_KEY", *limit, after=2))
calls.passes("tokens a minute", lambda: refusal("TOKENS_KEY", *limit, after=1))
calls.passes("tokens a day", lambda: refusal("DAY_KEY", *limit, after=1))
calls.passes("stream over a limit", stream_over_a_limit)
calls.raises("embeddings", openai.NotFoundError, embeddings)
