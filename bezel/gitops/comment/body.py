"""Text of the sticky comment: a marker, and a section for each project, stack and kind of document, with its commit.

Several jobs of one run may each bring a part. Sections of the same commit are kept beside the new ones, those of an
older commit are dropped: nothing that is shown is out of date. Only text of an own comment may be given here.
"""

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple
from urllib.parse import quote, unquote

from bezel.gitops.comment.documents import KINDS, Document, name_of
from bezel.gitops.comment.sections import section
from bezel_base.text.markdown import code

MARKER = "<!-- bezel: sticky comment -->"
LONGEST = 65_000
"""Below the 65,536 characters that GitHub takes."""
_NO_COMMIT = "-"
_SECTION = re.compile(r"<!-- bezel:section (\S+) (\w+) (\S+) -->\n(.*?)\n<!-- bezel:end -->", re.DOTALL)
# At the start of a line there is no foreign text.
_HIDDEN = re.compile(r"^<!-- bezel:[^\n]*-->\n?", re.MULTILINE)
_FOLDED = re.compile(r"\n*^<details>.*?^</details>$", re.DOTALL | re.MULTILINE)


class Key(NamedTuple):
    """What a section is about."""

    project: str
    stack: str
    kind: str
    commit: str


Sections = Mapping[Key, str]


def sections_of(documents: Iterable[Document], commit: str, run_url: str = "") -> dict[Key, str]:
    """The sections of documents.

    Args:
        documents: of the pipeline.
        commit: that they are of; "" where it is unknown.
        run_url: page of the run that wrote them.
    """
    known_commit = commit if re.fullmatch(r"[0-9a-f]{7,64}", commit) else _NO_COMMIT
    return {
        Key(*name_of(document), str(document["kind"]), known_commit): section(document, run_url)
        for document in documents
    }


def sections_in(body: str) -> dict[Key, str]:
    """The sections in the text of an own comment."""
    matches = _SECTION.findall(body.replace("\r\n", "\n"))
    return {Key(*_read(name), kind, commit): text for name, kind, commit, text in matches}


def merge_sections(sections: Iterable[Sections]) -> dict[Key, str]:
    """Sections of several texts together; of two of the same key the later one."""
    return {key: text for each in sections for key, text in each.items()}


def body_of(sections: Sections) -> str:
    """The comment's text, of at most 65,000 characters."""
    longest_first = sorted(sections, key=lambda key: -len(sections[key]))
    shown = dict(sections)
    text = _compose(shown)
    for key in longest_first:  # they lose their detail first
        if len(text) <= LONGEST:
            return text
        shown[key] = _FOLDED.sub("", shown[key])
        text = _compose(shown)
    for left, key in enumerate(sorted(shown, key=_order, reverse=True), start=1):
        if len(text) <= LONGEST:
            break
        del shown[key]
        text = _compose(shown, left)
    return text


def visible(body: str) -> str:
    """The text without its hidden marks, for a terminal or a run's summary."""
    return _HIDDEN.sub("", body).strip() + "\n"


def _compose(sections: Sections, left: int = 0) -> str:
    parts = [MARKER]
    commits = sorted({key.commit for key in sections} - {_NO_COMMIT})
    parts += [f"Commit {', '.join(code(commit[:8]) for commit in commits)}"] if commits else []
    several = len({key.project for key in sections}) > 1
    heading = None
    for key in sorted(sections, key=_order):
        if key[:2] != heading:
            parts.append(f"### {code(f'{key.project}/{key.stack}' if several and key.project else key.stack)}")
            heading = key[:2]
        mark = f"<!-- bezel:section {_mark_name(key)} {key.kind} {key.commit} -->"
        parts.append(f"{mark}\n{sections[key]}\n<!-- bezel:end -->")
    parts += [f"{left} further parts do not fit into a comment: see the run's log."] if left else []
    return "\n\n".join(parts) + "\n"


def _mark_name(key: Key) -> str:
    """Project and stack in a mark. Two hyphens would end the comment of HTML early in some readers."""
    return "/".join(quote(name, safe="").replace("-", "%2D") for name in key[:2])


def _read(name: str) -> tuple[str, str]:
    """Project and stack of a mark."""
    project, _, stack = name.rpartition("/")
    return unquote(project), unquote(stack)


def _order(key: Key) -> tuple[str, str, int]:
    return key.stack, key.project, KINDS.index(key.kind) if key.kind in KINDS else len(KINDS)
