"""JSON Web Tokens before they are verified: header, claims and signature of a caller's text. Pure."""

import base64
from typing import NamedTuple

from bezel_base.json_documents import read_encodable_json
from bezel_localcloud.core.json_types import Json


class TokenParts(NamedTuple):
    """What a token holds, none of it verified.

    Attributes:
        header: Its first part.
        claims: Its second part.
        signature: The bytes of its third part.
        signed: What the signature is of.
    """

    header: Json
    claims: Json
    signature: bytes
    signed: str


def token_parts(token: str) -> TokenParts:
    """The parts of a token in the compact form.

    Raises:
        ValueError: It has not three parts of base64, or the first two are no JSON objects in bounds.
    """
    parts = token.split(".", 3)
    if len(parts) != 3:
        raise ValueError("not three parts")
    header, claims = (read_encodable_json(from_base64url(part)) for part in parts[:2])
    if not isinstance(header, dict) or not isinstance(claims, dict):
        raise ValueError("not JSON objects")  # noqa: TRY004 - a wrong text, as the errors above
    return TokenParts(header, claims, from_base64url(parts[2]), token.rpartition(".")[0])


def from_base64url(text: str) -> bytes:
    """The bytes of a text in URL-safe base64, with or without its padding.

    Raises:
        ValueError: It is none.
    """
    return base64.b64decode(text.rstrip("=") + "=" * (-len(text.rstrip("=")) % 4), altchars=b"-_", validate=True)
