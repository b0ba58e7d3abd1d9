"""Tables of other programs' words, from `words.toml`."""

from __future__ import annotations

import functools
import tomllib
from pathlib import Path
from typing import Any, cast


@functools.cache
def _tables() -> dict[str, Any]:
    return tomllib.loads((Path(__file__).parent / "words.toml").read_text(encoding="utf-8"))


def words_of(program: str, kind: str) -> frozenset[str]:
    """The words of a program that a reader treats alike: `switches` or `ignored`."""
    return frozenset(_tables()[program][kind])


def reason_of(program: str, word: str) -> tuple[str, str]:
    """Why no setting of a stack file says a word, and what to do; "" for nothing."""
    reasons = cast("dict[str, list[str]]", _tables()[program].get("reasons", {}))
    reason, repair = reasons.get(word, ("no setting of a stack file says it.", ""))
    return reason, repair
