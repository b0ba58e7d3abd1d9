"""Messages of the engine as a person reads them: each failure once, and its cause first. Pure.

A failed resource is reported by the provider's log, by the engine's list of errors, and by the check that explains it
(`bezel_components.base.failure_explanation`): three times the platform's sentence. Owns which of them say the same, and
the engine's display of them where it is no terminal. Leaves out what a denied permission needs
(`bezel.engine.events.denied_permissions`).
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from bezel.engine.events.reader import PACK_CANCELLED

# What a plan was to change and a failed run did not reach.
_NOT_REACHED = re.compile(r"expected resource operations for \S+ but none were seen")
# Once a run has failed, the engine (3.274) closes its port before it ends the program, whose open call then fails (in
# words of the SDK), and ends the policies that it still evaluates.
_ENDED_WITH_RUN = frozenset({"Resource monitor has terminated, shutting down", PACK_CANCELLED})
# The Google provider reports a failure twice: by its log, and as a list with one entry, which the engine lists again.
_LOGGED = re.compile(r"sdk-v2/\S+ sdk\.helper_schema: (.*?): provider=\S+", re.DOTALL)
_LISTED = re.compile(r"(?:[a-z]+ing urn:\S+ )?1 error occurred:\s*\* (.*)", re.DOTALL)
_OPERATION = re.compile(r"^.*?\bError code \d+, message: ", re.DOTALL)
_EXPLAINED = re.compile(r"^ *cause: ", re.MULTILINE)
_LED_BY = ("cause: ", "consequence: ")
_REPAIR = "Repair: "
_DEEPEST = 5

_TITLE = "Diagnostics:"
_SECTION = re.compile(r"^\S")
_HEAD = re.compile(r"^  \S.*:$")
_MESSAGE = re.compile(r"^    (?P<severity>error|warning): (?P<text>.*)$")
_ROW = re.compile(r"^(?P<row>[ @+~-].*?\S) error: .+$")
_ENDED = frozenset({"update failed", "preview failed", "destroy failed", "refresh failed", *_ENDED_WITH_RUN})
# After a destroy the engine names its own command, which here finds no stack: `make down` says what is left.
_AFTER_DESTROY = re.compile(
    r"The resources in the stack have been deleted, but the history|If you want to remove the stack completely, run"
)
_INDENT = "    "


def plain_errors(texts: Iterable[str]) -> list[str]:
    """The errors of a run: each once, causes only, those that are explained first."""
    bare = [_bare(text) for text in texts]
    causes = [text for text in bare if text.strip() not in _ENDED_WITH_RUN and not _NOT_REACHED.fullmatch(text.strip())]
    once = list(dict.fromkeys(causes or bare))
    kept = [text for text in once if not _is_repeated(text, once)]
    return [cause_first(text) for text in sorted(kept, key=lambda text: _EXPLAINED.search(text) is None)]


def cause_first(text: str) -> str:
    """An explained failure with cause, consequence and repair right after its head; any other text as it is."""
    if not _EXPLAINED.search(text):
        return text
    head, *lines = text.split("\n")
    led = [line for line in lines if line.lstrip().startswith(_LED_BY)]
    at = next((number for number, line in enumerate(lines) if line.lstrip().startswith(_REPAIR)), len(lines))
    repair = lines[at:]  # it is the last part, of one line or several
    rest = [line for line in lines[:at] if line not in led]
    return "\n".join([head, *led, *repair, *rest])


def _bare(text: str) -> str:
    """A text without what the provider's log and the lists of one error put around it."""
    if form := _LOGGED.fullmatch(text.strip()):
        text = form[1].strip()
    for _ in range(_DEEPEST):
        form = _LISTED.fullmatch(text.strip())
        if form is None:
            break
        text = form[1].strip()
    return text


def _is_repeated(text: str, others: Iterable[str]) -> bool:
    """Whether a longer message holds this one's sentence, with or without the operation that it ended."""
    sentence = " ".join(_OPERATION.sub("", text).split())
    return any(other != text and len(other) > len(text) and sentence in " ".join(other.split()) for other in others)


@dataclass
class _Block:
    """The messages of one resource: lines before the first one, then each with its severity."""

    head: str
    before: list[str] = field(default_factory=list)
    messages: list[tuple[str, list[str]]] = field(default_factory=list)

    @property
    def rank(self) -> int:
        """Explained failures first, the stack's own row last."""
        errors = [lines for severity, lines in self.messages if severity == "error"]
        if any(_EXPLAINED.search("\n".join(lines)) for lines in errors):
            return 0
        return 2 if errors and all(lines[0] in _ENDED for lines in errors) else 1

    def lines(self) -> Iterator[str]:
        """The block with each failure once."""
        yield self.head
        yield from self.before
        errors = plain_errors("\n".join(lines).strip("\n") for severity, lines in self.messages if severity == "error")
        others = [lines for severity, lines in self.messages if severity != "error"]
        for text in errors:
            yield from _indent("error", text.splitlines())
        for lines in others:
            yield from _indent("warning", lines)
        yield ""


class Display:
    """The engine's output line by line, its errors only among its diagnostics, and each of these once."""

    def __init__(self) -> None:
        self._diagnostics: list[str] | None = None
        self._rows: set[str] = set()

    def take(self, line: str) -> list[str]:
        """The lines to show for the next one, without line ends."""
        if _AFTER_DESTROY.match(line):
            return []
        if self._diagnostics is not None:
            if not _SECTION.match(line):
                self._diagnostics.append(line)
                return []
            return [*self.end(), line]
        if line == _TITLE:
            self._diagnostics = []
            return [line]
        if match := _ROW.match(line):
            row = match["row"]
            if row in self._rows:
                return []
            self._rows.add(row)
            return [row]
        return [line]

    def end(self) -> list[str]:
        """The lines that are still held."""
        diagnostics, self._diagnostics = self._diagnostics, None
        return [] if diagnostics is None else list(_ordered_lines(diagnostics))


def _ordered_lines(lines: Iterable[str]) -> Iterator[str]:
    blocks: list[_Block] = []
    loose: list[str] = []
    for line in lines:
        if _HEAD.match(line):
            blocks.append(_Block(line))
        elif not blocks:
            loose.append(line)
        elif match := _MESSAGE.match(line):
            blocks[-1].messages.append((match["severity"], [match["text"]]))
        elif blocks[-1].messages:
            blocks[-1].messages[-1][1].append(line.removeprefix(_INDENT))
        else:
            blocks[-1].before.append(line)
    yield from loose
    for block in sorted(blocks, key=lambda block: block.rank):
        yield from block.lines()


def _indent(severity: str, lines: list[str]) -> Iterator[str]:
    first, *others = lines or [""]
    yield f"{_INDENT}{severity}: {first.strip()}"
    while others and not others[-1].strip():
        others.pop()
    for line in others:
        yield f"{_INDENT}{line}".rstrip()
