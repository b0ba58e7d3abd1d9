r"""Redaction: any text without what has the form, or stands under the name, of a credential.

The one way by which problems, logs, reports, comments and results hide credentials. Owns the passwords of URLs and what
follows `Bearer`. Which forms and names are those of credentials is in `bezel_base.credentials`; values under a name are
hidden by `named_values`. Works in linear time on any text. Pure.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import TYPE_CHECKING, Any

from bezel_base.credentials.forms import replace_forms
from bezel_base.credentials.names import holds_secret
from bezel_base.credentials.private_keys import HIDDEN, without_private_keys
from bezel_base.text.named_values import without_named_values

if TYPE_CHECKING:
    from collections.abc import Callable

PLACEHOLDER = HIDDEN
_SHORTEST = 6
"""Characters of a known secret that is replaced: a shorter one would eat ordinary words."""
_PASSWORD_OF_URL = re.compile(r"(:(?:\\?/){2}[^\s/:@\"'<>]*:)([^\s/]+)(?=@)")
_USER_OF_URL = re.compile(r"(:(?:\\?/){2})([^\s/:@\"'<>]{20,}+)(?=@)")
_DATA_SOURCE = re.compile(r"(?<![\w.-])([\w.-]++:)([^\s@/:\"']++)(?=@(?:tcp|unix)\()")
_USER_OF_CURL = re.compile(r"((?<![\w-])(?:-u ?|--user[ =])[\"']?[^\s:\"']{1,64}:)(?!\d+(?!\S))([^\s\"']++)")
_SCHEME = re.compile(r"(?i)(?<![\w-])(bearer|basic)((?:[ \t]|%20|\+)+|[:=][ \t]*+)")
_SCHEME_VALUE = re.compile(r"[\w.~+/=%-]++")
_OF_SCHEME = re.compile(
    r"(?i)auth\w*|credentials?|header|headers|scheme|tokens?|realm=.*|error=.*|scope=.*|format|or|%[sdv]"
)
_KEY_FILE = re.compile(r"\"private_key\"\s*:")
# Reports name the same resources and say the same sentences again and again. A text with a credential is never kept.
_texts_without: set[str] = set()
_MOST_KEPT, _LONGEST_KEPT = 4096, 512


def redact(text: str, *secrets: str) -> str:
    """A text without anything in the form or under the name of a credential, and without the given values.

    Args:
        text: Any text; it may have several lines.
        secrets: Values known to be secret; those shorter than six characters are left alone.
    """
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= _SHORTEST:
            text = text.replace(secret, PLACEHOLDER)
    if text in _texts_without:
        return text
    redacted = without_named_values(redact_forms(text))
    if redacted == text and len(text) <= _LONGEST_KEPT:
        if len(_texts_without) >= _MOST_KEPT:
            _texts_without.clear()
        _texts_without.add(text)
    return redacted


def is_secret(name: str, value: str) -> bool:
    """Whether a value is a secret in plain text, by the name that it stands under, by its form or by a name in it.

    A value of one line may hold entries, as `Server=x;Password=y` and `host=x password=y` do; a script is code.
    """
    without = redact_forms(value) if "\n" in value else redact(value)
    return holds_secret(name, value) or without != value or _KEY_FILE.search(value) is not None


def redact_forms(text: str) -> str:
    """A text without what is a credential wherever it stands; what only has the name of one stays, as in code."""
    text = replace_forms(without_private_keys(text), PLACEHOLDER)
    if "@" in text:
        for pattern in (_PASSWORD_OF_URL, _USER_OF_URL, _DATA_SOURCE):
            text = pattern.sub(rf"\g<1>{PLACEHOLDER}", text)
    if "-u" in text:
        text = _USER_OF_CURL.sub(rf"\g<1>{PLACEHOLDER}", text)
    return _without_schemes(text)


def redact_values(content: Any) -> Any:
    """JSON content with every text in it redacted, keys as they are."""
    return _redacted_values(content, redact)


def redact_forms_of_values(content: Any) -> Any:
    """JSON content with every text in it as of `redact_forms`."""
    return _redacted_values(content, redact_forms)


def _redacted_values(content: Any, redaction: Callable[[str], str]) -> Any:
    if isinstance(content, str):
        return redaction(content)
    if isinstance(content, dict):
        return {key: _redacted_values(value, redaction) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_redacted_values(value, redaction) for value in content]
    return content


def _without_schemes(text: str) -> str:
    """A text without what follows `Bearer`, and what follows `Basic` where it is a user and a password."""
    parts, end = [], 0
    for match in _SCHEME.finditer(text):
        value = _SCHEME_VALUE.match(text, match.end())
        if match.start() < end or value is None or _OF_SCHEME.fullmatch(value[0]):
            continue
        if match[1].lower() == "basic" and not _is_user_and_password(value[0]):
            continue
        parts += [text[end : match.end()], PLACEHOLDER]
        end = value.end()
    return "".join([*parts, text[end:]])


def _is_user_and_password(value: str) -> bool:
    try:
        return b":" in base64.b64decode(value[:4096].rstrip("=") + "=" * (-len(value[:4096].rstrip("=")) % 4))
    except (binascii.Error, ValueError):
        return False
