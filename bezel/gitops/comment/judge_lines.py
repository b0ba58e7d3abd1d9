"""First lines of a section: what the change does to packs, limits, prices and the code that judge it, old and new."""

from collections.abc import Iterator

from bezel.gitops.comment.documents import Document, mapping, texts
from bezel.gitops.judge.document import FIRST_DEPLOY
from bezel_base.text.markdown import code, prose

SHOWN = 5
"""Most changes that are visible without unfolding the section."""
_FOLDED = 60


def judge_lines(document: Document) -> list[str]:
    """The lines; none where the document says nothing about what judges."""
    part = mapping(document, "judge")
    statement, changes = part.get("said"), texts(part, "changes")
    if not isinstance(statement, str):
        return []
    more = [f"- and {len(changes) - SHOWN} more below"] if len(changes) > SHOWN else []
    return [f"**Judge: {prose(statement, 200)}.**", *(f"- {code(line, 140)}" for line in changes[:SHOWN]), *more]


def judge_detail(document: Document) -> Iterator[str]:
    """The changes that the first lines leave out, and the digest that approves all of them."""
    part = mapping(document, "judge")
    yield from (f"- judge: {code(line, 200)}" for line in texts(part, "changes")[SHOWN:_FOLDED])
    if isinstance(digest := part.get("digest"), str) and digest and part.get(FIRST_DEPLOY) is not True:
        yield f"- judge: approved by {code(digest, 80)}"
