"""Names of a project replaced by others, the same for the same name, in whatever is shown to strangers. Pure.

Known names come first, the longest before the others; then what has the form of an address, an identity or an id.
Values of labels, annotations and variables are the user's own words, and are replaced as a whole.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from bezel_base.text.redaction import redact

_FORMS = (
    ("ACCOUNT", re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")),
    ("HOST", re.compile(r"(?<![\w.-])[\w-]+(?:\.[\w-]+)*\.run\.app\b")),
    ("BUCKET", re.compile(r"(?<=gs://)[\w.-]+|(?<=/b/)[\w.-]+")),
    ("PROJECT", re.compile(r"(?<=projects/)[\w.-]+|(?<=project )\d{6,}|(?<=project=)[\w.:-]+")),
    ("FOLDER", re.compile(r"(?<=folders/)\d+|(?<=organizations/)\d+")),
    ("DOMAIN", re.compile(r"(?<=domain:)[\w.-]+")),
    ("ADDRESS", re.compile(r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w.])")),
    ("ID", re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b\d{18,}\b")),
)
_OWN_WORDS = {"labels": "LABEL", "annotations": "ANNOTATION"}
_TITLES = {"displayName", "description"}
_PUBLIC = {"quotaId"}  # as long as a key, and published by Google
_MADE = re.compile(r"[A-Z]+(?:-\d+)?")


class Pseudonyms:
    """The replacements of one report.

    Args:
        names: Kind -> names of that kind, e.g. `PROJECT` -> the project's id and its number.
    """

    def __init__(self, names: Mapping[str, Iterable[str]]) -> None:
        self._given: dict[str, str] = {}
        self._counts: dict[str, int] = {}
        for kind, values in names.items():
            for value in values:
                if value:
                    self._pseudonym(kind, value)
        self._known = re.compile(
            "|".join(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])" for name in _longest_first(self._given))
            or r"(?!)"
        )

    def text(self, text: str) -> str:
        """A text without names and without credentials."""
        text = redact(text)
        # An e-mail address first: a known name within it would leave the rest.
        for kind, form in _FORMS[:2]:
            text = form.sub(lambda match, kind=kind: self._pseudonym(kind, match[0]), text)  # type: ignore[misc]
        text = self._known.sub(lambda match: self._given[match[0]], text)
        for kind, form in _FORMS[2:]:
            text = form.sub(lambda match, kind=kind: self._of_form(kind, match[0]), text)  # type: ignore[misc]
        return text

    def content(self, content: Any) -> Any:
        """JSON content without names; keys stay, apart from those of labels and annotations."""
        if isinstance(content, str):
            return self.text(content)
        if isinstance(content, list | tuple):
            return [self.content(each) for each in content]
        if isinstance(content, Mapping):
            return {key: self._entry(str(key), value) for key, value in content.items()}
        return content

    def _entry(self, key: str, value: Any) -> Any:
        if key in _OWN_WORDS and isinstance(value, Mapping):
            return {
                self._pseudonym(f"{_OWN_WORDS[key]}-NAME", name): self._pseudonym(_OWN_WORDS[key], str(item))
                for name, item in value.items()
            }
        if key in _PUBLIC:
            return value
        if key in _TITLES and isinstance(value, str):
            return self._pseudonym("TITLE", value)
        if key == "env" and isinstance(value, list):
            return [self._variable(each) for each in value]
        return self.content(value)

    def _variable(self, entry: Any) -> Any:
        if not isinstance(entry, Mapping) or "value" not in entry:
            return self.content(entry)
        return {**entry, "value": self._pseudonym("VALUE", str(entry["value"]))}

    def _of_form(self, kind: str, name: str) -> str:
        return name if _MADE.fullmatch(name) else self._pseudonym(kind, name)

    def _pseudonym(self, kind: str, name: str) -> str:
        if name not in self._given:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self._given[name] = f"{kind}-{self._counts[kind]}"
        return self._given[name]


def _longest_first(names: Iterable[str]) -> list[str]:
    return sorted(names, key=len, reverse=True)
