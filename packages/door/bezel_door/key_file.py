"""Keys of a door as one JSON file: written, read, and a caller's key judged by it. Pure.

Owns the text of a key, what is stored of it (a hash, never the text) and the reasons why one is not admitted. Leaves
out where the file lies, who may change it, and what a key's limits mean for a request (`bezel_door.accounts.ledger`).
"""

import base64
import hashlib
import hmac
import json
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final

KEY_OBJECT: Final = "keys.json"
"""Name of the object in the door's bucket."""
LONGEST_FILE: Final = 4 * 1024 * 1024
"""Bytes of a file that is read: about 10,000 keys."""
MOST_OF_A_LIMIT: Final = 10**12
MOST_MODELS: Final = 100

_VERSION = 1
_TEXT = re.compile(r"bezel-([a-z0-9]{8})-[A-Za-z0-9_-]{43}")
_ID = re.compile(r"[a-z0-9]{8}")
_HASH = re.compile(r"[0-9a-f]{64}")
_TEAM = re.compile(r"(?:[A-Za-z0-9][A-Za-z0-9_.-]{0,62})?")
_MODEL = re.compile(r"[!-~]{1,200}")
_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
_LIMITS = ("requests_per_minute", "tokens_per_minute", "tokens_per_day")
_NO_HASH = "0" * 64  # no key has it: an unknown id is compared like a known one


class KeyFileError(ValueError):
    """A file that is no file of keys; the text says where."""


class KeyRefusal(StrEnum):
    """Why a key is not admitted."""

    WRONG = "wrong"
    """No key, or none of this door's: an unknown id and a wrong secret are one reason."""
    REVOKED = "revoked"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True)
class Key:
    """What is stored of a key.

    Attributes:
        hash: SHA-256 of its text, in hexadecimal.
        team: Team that it belongs to: letters, digits, `.`, `_`, `-`; "" where none is named.
        created: When it was made.
        expires: From when on it is not admitted any more; None for never.
        revoked: From when on it is revoked; None where it is not.
        requests_per_minute: Requests of a clock minute (UTC); None without a limit.
        tokens_per_minute: Tokens in and out of a clock minute (UTC); None without a limit.
        tokens_per_day: Tokens in and out of a day (UTC); None without a limit.
        models: Names of models that it may ask for; empty for all.
    """

    hash: str
    team: str
    created: datetime
    expires: datetime | None = None
    revoked: datetime | None = None
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    tokens_per_day: int | None = None
    models: tuple[str, ...] = ()


_FIELDS = frozenset(field.name for field in fields(Key))


def create_key_text(random_bytes: Callable[[int], bytes] = secrets.token_bytes) -> str:
    """Make the text of a new key; `key_id` names it and `hash_key` is what is stored of it."""
    letters = [byte % len(_LETTERS) for byte in random_bytes(64) if byte < 252]  # 252 = 7 * 36: each letter alike
    secret = base64.urlsafe_b64encode(random_bytes(32)).rstrip(b"=").decode()
    return f"bezel-{''.join(_LETTERS[letter] for letter in letters[:8])}-{secret}"


def key_id(text: str) -> str | None:
    """The id in a key's text; None where the text is no key."""
    match = _TEXT.fullmatch(text)
    return match[1] if match else None


def hash_key(text: str) -> str:
    """What is stored of a key's text."""
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()


def judge_key(keys: Mapping[str, Key], text: str, now: datetime) -> tuple[str, Key] | KeyRefusal:
    """Id and record of a caller's key, or why it is not admitted.

    A text costs the same whether its id is known or not: it is hashed, and compared in constant time. A caller without
    the whole key learns nothing about it, not even that it was revoked.
    """
    identifier = key_id(text)
    key = keys.get(identifier) if identifier else None
    is_right = hmac.compare_digest(hash_key(text), key.hash if key else _NO_HASH)
    if identifier is None or key is None or not is_right:
        return KeyRefusal.WRONG
    if key.revoked is not None and key.revoked <= now:
        return KeyRefusal.REVOKED
    if key.expires is not None and key.expires <= now:
        return KeyRefusal.EXPIRED
    return identifier, key


def write_keys(keys: Mapping[str, Key]) -> bytes:
    """Write keys as a file, by their ids."""
    document = {"version": _VERSION, "keys": {identifier: _record(keys[identifier]) for identifier in sorted(keys)}}
    return json.dumps(document, indent=1).encode() + b"\n"


def read_keys(content: bytes) -> dict[str, Key]:
    """Read a file of keys.

    Every field is required and none is unknown: a door that would leave out a limit that it does not know would admit
    more than was meant.

    Raises:
        KeyFileError: It is no such file.
    """
    if len(content) > LONGEST_FILE:
        raise KeyFileError(f"{len(content)} bytes; a file of keys has {LONGEST_FILE} at most")
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        raise KeyFileError("it is not JSON") from None
    if not isinstance(document, dict) or set(document) != {"version", "keys"}:
        raise KeyFileError("expected an object of version and keys")
    version, records = document["version"], document["keys"]
    if version != _VERSION or isinstance(version, bool):
        raise KeyFileError(f"version {version!r:.40}; this program reads version {_VERSION}")
    if not isinstance(records, dict):
        raise KeyFileError("keys: expected an object")
    return {_identifier(name): _key(name, record) for name, record in records.items()}


def _record(key: Key) -> dict[str, Any]:
    return {
        "hash": key.hash,
        "team": key.team,
        "created": _time_text(key.created),
        "expires": _time_text(key.expires) if key.expires else None,
        "revoked": _time_text(key.revoked) if key.revoked else None,
        **{limit: getattr(key, limit) for limit in _LIMITS},
        "models": list(key.models),
    }


def _time_text(time: datetime) -> str:
    return time.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _identifier(name: str) -> str:
    if not _ID.fullmatch(name):
        # Its beginning alone: a whole key may have been pasted in its place.
        raise KeyFileError(f"{name[:8]!r}: an id has 8 letters a to z and digits")
    return name


def _key(name: str, record: object) -> Key:
    if not isinstance(record, dict) or set(record) != _FIELDS:
        raise KeyFileError(f"{name}: expected an object of {', '.join(sorted(_FIELDS))}")
    created = _time(name, "created", record["created"])
    if created is None:
        raise KeyFileError(f"{name}.created: expected a time")
    return Key(
        hash=_matching(name, "hash", record["hash"], _HASH),
        team=_matching(name, "team", record["team"], _TEAM),
        created=created,
        expires=_time(name, "expires", record["expires"]),
        revoked=_time(name, "revoked", record["revoked"]),
        requests_per_minute=_limit(name, "requests_per_minute", record["requests_per_minute"]),
        tokens_per_minute=_limit(name, "tokens_per_minute", record["tokens_per_minute"]),
        tokens_per_day=_limit(name, "tokens_per_day", record["tokens_per_day"]),
        models=_models(name, record["models"]),
    )


def _matching(name: str, field: str, value: object, pattern: re.Pattern[str]) -> str:
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise KeyFileError(f"{name}.{field}: expected a text that matches {pattern.pattern}")
    return value


def _time(name: str, field: str, value: object) -> datetime | None:
    if value is None:
        return None
    try:
        time = datetime.fromisoformat(value) if isinstance(value, str) else None
        utc = time.astimezone(UTC) if time is not None and time.tzinfo is not None else None
    except (ValueError, OverflowError):
        utc = None
    if utc is None:
        raise KeyFileError(f"{name}.{field}: expected a time such as 2026-11-29T08:00:00Z, or null")
    return utc


def _limit(name: str, field: str, value: object) -> int | None:
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MOST_OF_A_LIMIT:
        raise KeyFileError(f"{name}.{field}: expected a whole number from 1 to {MOST_OF_A_LIMIT}, or null")
    return value


def _models(name: str, value: object) -> tuple[str, ...]:
    is_list = isinstance(value, list) and len(value) <= MOST_MODELS
    if not isinstance(value, list) or not is_list or not all(isinstance(m, str) and _MODEL.fullmatch(m) for m in value):
        raise KeyFileError(f"{name}.models: expected a list of at most {MOST_MODELS} names of models")
    return tuple(value)
