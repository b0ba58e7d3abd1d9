"""Retrieval of tools by a task's words: BM25 over a tool's own texts, with the usual parameters. Pure.

It knows no synonyms and no tool: plural and other endings are cut off, and words of every sentence are left out.
"""

import math
import re
from collections import Counter
from collections.abc import Mapping

from mcp_types import Tool

_K1, _B = 1.2, 0.75
_ENDINGS = ("ing", "ed", "es", "s", "ly", "e")
_SHORTEST = 3
_IN_EVERY_SENTENCE = frozenset(
    re.split(
        r"\s+",
        "a an and are as at be but by can could did do does for from had has have i if in into is it its may me my no "
        "not of on one or our per so than that the their them then there they this to use was we were will with would "
        "you your",
    )
)


def terms_of(text: str) -> list[str]:
    """The words of a text, without endings; a name with hyphens or dots, such as `v6e-4`, is one."""
    terms = re.findall(r"[a-z0-9]+(?:[-.][a-z0-9]+)*", text.lower())
    return [_stem(term) for term in terms if term not in _IN_EVERY_SENTENCE]


def _stem(term: str) -> str:
    for ending in _ENDINGS:
        if term.endswith(ending) and len(term) - len(ending) >= _SHORTEST:
            return term.removesuffix(ending)
    return term


def text_of(tool: Tool) -> str:
    """What the list says of a tool; name, title and description count twice, as arguments say how and not what."""
    arguments = tool.input_schema["properties"]
    parts = [f"{name} {part.get('description', '')} {part.get('enum', '')}" for name, part in arguments.items()]
    head = [tool.name.replace("_", " "), tool.title or "", tool.description or ""]
    return " ".join([*head, *head, *parts])


class Index:
    """Texts by their names, to be found by words."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._counts = {name: Counter(terms_of(text)) for name, text in texts.items()}
        self._lengths = {name: sum(count.values()) for name, count in self._counts.items()}
        self._mean = sum(self._lengths.values()) / len(texts)

    def ranking(self, task: str) -> list[str]:
        """Names of the texts, the best match for the words of a task first."""
        rarities = {term: self._rarity(term) for term in set(terms_of(task))}
        return sorted(self._counts, key=lambda name: (-self._score(name, rarities), name))

    def _rarity(self, term: str) -> float:
        texts, having = len(self._counts), sum(term in count for count in self._counts.values())
        return math.log(1 + (texts - having + 0.5) / (having + 0.5))

    def _score(self, name: str, rarities: Mapping[str, float]) -> float:
        saturation = _K1 * (1 - _B + _B * self._lengths[name] / self._mean)
        counts = self._counts[name]
        return sum(rarity * counts[term] * (_K1 + 1) / (counts[term] + saturation) for term, rarity in rarities.items())
