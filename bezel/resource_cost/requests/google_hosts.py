"""Addresses of Google's APIs, however they are written: in any case, encoded, with a port or a user, http or https.

Programs that send requests do not read addresses alike. So an address counts as Google's if any reading of it does, and
only one in its plain form is taken apart (`plain_address`). Source of the names: the discovery documents, whose root
addresses are `NAME.googleapis.com`, `NAME.mtls.googleapis.com` and `NAME.REGION.rep.googleapis.com`; the older regional
form `REGION-NAME.googleapis.com`; Private Service Connect, `NAME-ENDPOINT.p.googleapis.com`. Pure.
"""

import re
import unicodedata
from typing import NamedTuple
from urllib.parse import unquote

# Also of Google's clients in a browser, of its clouds under another name, and of the control planes of clusters.
_GOOGLE = re.compile(
    r"(?:.*\.)?(?:googleapis\.(?:com|cn)|googleapis-cn\.com|clients\d\.google\.com|gke\.goog|apis-[a-z\d-]+\.[a-z]+)"
)
_PLAIN = re.compile(r"https://([A-Za-z0-9.-]+)((?:/[A-Za-z0-9_~-][A-Za-z0-9._~:-]*)+)(?:\?([A-Za-z0-9._~:/=&,-]*))?")
_DOTS = str.maketrans({"\u3002": ".", "\\": "/"})
_UNQUOTINGS = 3
LONGEST = 8192
"""Characters of an address that are read; no request has a longer one."""


class Address(NamedTuple):
    """An address in its plain form: host in small letters, path, and the values of its query."""

    host: str
    path: str
    query: dict[str, str]


def is_google_api(address: str) -> bool:
    """Whether some reading of the address is a Google API's."""
    text = address[:LONGEST]
    for _ in range(_UNQUOTINGS):
        text = unquote(text)
    text = unicodedata.normalize("NFKC", text).translate(_DOTS).lower()
    if not (text.isascii() and text.isprintable() and " " not in text):  # most have none of these letters
        text = "".join(letter for letter in text if letter > " " and unicodedata.category(letter) != "Cf")
    scheme, colon, rest = text.partition(":")
    authority = re.split(r"[/?#]", (rest if colon and scheme.isalpha() else text).lstrip("/"), maxsplit=1)[0]
    return any(_GOOGLE.fullmatch(part.partition(":")[0].rstrip(".")) for part in authority.split("@"))


def plain_address(address: str) -> Address | None:
    """The parts of an address over https without user, port, encodings and repeated values; None for any other."""
    parts = _PLAIN.fullmatch(address) if len(address) <= LONGEST else None
    if parts is None:
        return None
    pairs = [pair.partition("=")[::2] for pair in (parts[3] or "").split("&") if pair]
    query = dict(pairs)
    return Address(parts[1].lower(), parts[2], query) if len(query) == len(pairs) else None
