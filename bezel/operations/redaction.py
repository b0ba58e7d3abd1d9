"""Text from outside made fit to be shown or sent on: no control characters, no secrets, bounded.

The one way by which operations treat log lines, metrics, a model's answers and a cloud's messages. Which texts are
credentials, and which characters are hidden, is in bezel_base.text. vLLM's own lines, which speak of tokens all the
time, stay as they are.
"""

from collections.abc import Iterable

from bezel_base.text.printable import printable
from bezel_base.text.private_keys import PrivateKeys
from bezel_base.text.redaction import redact

MAX_LINE = 2000
"""Characters of one shown line; vLLM's list of arguments has about a thousand."""

MAX_TEXT = 256 * 1024
"""Characters of one text of a log: the size of Cloud Logging's largest entry."""


def cleaned(text: str, limit: int, *secrets: str) -> str:
    """A text from outside: printable, redacted, and of at most `limit` characters.

    A credential is hidden before the text is cut: the first half of one is a secret too.
    """
    head = text[: 4 * limit + 4096]
    if len(head) < len(text):
        head = "".join(head.rsplit(None, 1)[:-1])  # the last word may be a part of a credential
    result = redact(printable(head), *secrets)
    is_cut = len(result) > limit or len(head) < len(text)
    return f"{result[: max(limit - 6, 0)]} [...]" if is_cut else result


class LineCleaner:
    """Cleans the texts of a log one after the other: a private key that spans lines and texts is hidden as a whole."""

    def __init__(self, *secrets: str, limit: int = MAX_LINE) -> None:
        self._secrets, self._limit = secrets, limit
        self._keys = PrivateKeys()

    def lines(self, text: str) -> list[str]:
        """The lines of the log's next text."""
        return [self._cleaned(line) for line in printable(text[:MAX_TEXT]).split("\n")]

    def _cleaned(self, line: str) -> str:
        return cleaned(self._keys.line(line), self._limit, *self._secrets)


def cleaned_lines(texts: Iterable[str], *secrets: str, limit: int = MAX_LINE) -> list[str]:
    """The cleaned lines of a log's texts."""
    cleaner = LineCleaner(*secrets, limit=limit)
    return [line for text in texts for line in cleaner.lines(text)]
