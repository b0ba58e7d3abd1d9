"""The key of a caller, from the one header that has it. Pure.

OpenAI's libraries send `Authorization: Bearer`, Anthropic's `x-api-key`, Azure's form of OpenAI's `api-key`. A key in
the query or in the body is not looked for, and two that differ are refused: no two programs may read two callers.
"""

import re
from typing import Final

from bezel_door.http1.heads import Headers

_BEARER = re.compile(r"(?i:bearer) +([!-~]+)")
_PLAIN: Final = (b"x-api-key", b"api-key")


class TwoKeysError(ValueError):
    """A request with two keys that differ."""


def caller_key(headers: Headers) -> str:
    """The key in a request's headers; "" without one.

    Raises:
        TwoKeysError: There are several, and they differ.
    """
    texts = set()
    for name, value in headers:
        text = value.decode("latin-1")
        if name == b"authorization":
            match = _BEARER.fullmatch(text)
            texts.add(match[1] if match else text)
        elif name in _PLAIN:
            texts.add(text)
    if len(texts) > 1:
        raise TwoKeysError
    return texts.pop() if texts else ""
