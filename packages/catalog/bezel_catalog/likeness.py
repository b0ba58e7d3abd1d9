"""Names that a misspelt one was probably meant to be: alike in their words, equal in their numbers. Pure.

In names of models, accelerators, releases, zones and prices a number tells things apart that are spelt alike:
`gemma-3-27b-it` is no spelling of `gemma-4-e2b-it`, nor `nvidia-t4` of `nvidia-l4`. A wrong suggestion is worse than
none.
"""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_WORD_LIKENESS = 0.6
_SHORT = 4  # in a shorter word, a further letter is another thing: `l4s`, `e12b`


def closest(name: str, candidates: Iterable[str], *, likeness: float = 0.6) -> str | None:
    """Return the known name most like `name`; None when none is that like it with the same numbers.

    Args:
        name: as it was written.
        candidates: names that exist.
        likeness: the least ratio that counts, 0 nothing in common, 1 equal.
    """
    names = list(candidates)
    if same := next((each for each in names if _normalize(each) == _normalize(name)), None):
        return same
    near = [each for each in names if agrees_in_numbers(name, each)]
    return next(iter(difflib.get_close_matches(name, near, n=1, cutoff=likeness)), None)


def closest_record(name: str, candidates: Iterable[str], aliases: Mapping[str, str] | None = None) -> str | None:
    """Return the one known record that a name can mean; None where each differs in a word or a number.

    For names whose every word tells things apart (`-pt`, `-awq`, `-assistant`).

    Args:
        name: as it was written, with an owner in front of it or not.
        candidates: names that exist.
        aliases: names under which some of them are published, with or without an owner.
    """
    bare, names = name.lower().rpartition("/")[2], list(candidates)
    published = {_normalize(alias.rpartition("/")[2]): meant for alias, meant in (aliases or {}).items()}
    if meant := published.get(_normalize(bare)):
        return meant
    if same := next((each for each in names if _normalize(each) == _normalize(bare)), None):
        return same
    terms, numbers = [word for word in _words(bare) if not _numbers(word)], _words_with_numbers(bare)
    near = {
        each: further
        for each in names
        if all(_is_like(word, there) for word in terms for there in [_words(each)])
        and _words_with_numbers(each)[:1] == numbers[:1]
        and (further := _further_numbers(bare, each)) is not None
    }
    # Records with different further numbers (`gemma-4` with e2b, 12b) are equally near.
    if all(near.values()) and len({further[0] for further in near.values()}) > 1:
        return None
    return next(iter(difflib.get_close_matches(bare, near, n=1)), None)


def agrees_in_numbers(name: str, candidate: str) -> bool:
    """Whether a known name has the numbers of a name, in their order."""
    return _further_numbers(name, candidate) is not None


def _normalize(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "", name.lower())


def _words(name: str) -> list[str]:
    """The words of a name; a number at the end of a longer word is one of its own (`gemma4`)."""
    return re.findall(r"[a-z]{5,}|[a-z0-9]+", name.lower())


def _numbers(word: str) -> list[str]:
    return re.findall(r"\d+", word)


def _words_with_numbers(name: str) -> list[str]:
    return [word for word in _words(name) if _numbers(word)]


def _is_like(word: str, candidates: list[str]) -> bool:
    return any(
        sorted(word) == sorted(other) or difflib.SequenceMatcher(None, word, other).ratio() >= _WORD_LIKENESS
        for other in candidates
    )


def _further_numbers(name: str, candidate: str) -> list[str] | None:
    """The words with numbers of a known name after those of a name; None where it lacks one of them."""
    left = _words_with_numbers(candidate)
    for word in _words_with_numbers(name):
        here = next((place for place, other in enumerate(left) if _is_part(word, other)), None)
        if here is None:
            return None
        left = left[here + 1 :]
    return left


def _is_part(word: str, candidate: str) -> bool:
    """Whether a word has the numbers of a known one, and its letters: some of them, in another order, or one twice."""
    if _numbers(word) != _numbers(candidate):
        return False
    return (
        _is_within(word, candidate)
        or sorted(word) == sorted(candidate)
        or (len(word) > _SHORT and _is_within(candidate, word))
    )


def _is_within(part: str, whole: str) -> bool:
    letters = iter(whole)
    return all(letter in letters for letter in part)
