"""Text from outside made fit to be shown or sent on: no control characters, no secrets, bounded.

The one way by which operations treat log lines, metrics, a model's answers and a cloud's messages. Which texts are
credentials, and which characters are hidden, is in bezel_base.text. vLLM's own lines, which speak of tokens all the
time, stay as they are.
"""

from collections.abc import Iterable

from bezel_base.credentials.private_keys import PrivateKeys
from bezel_base.text.cleaning import clean_text
from bezel_base.text.printable import printable

__all__ = ["MAX_LINE", "MAX_TEXT", "LineCleaner", "clean_text", "cleaned_lines"]

MAX_LINE = 2000
"""Characters of one shown line; vLLM's list of arguments has about a thousand."""

MAX_TEXT = 256 * 1024
"""Characters of one text of a log: the size of Cloud Logging's largest entry."""


class LineCleaner:
    """Cleans the texts of a log one after the other: a private key that spans lines and texts is hidden as a whole."""

    def __init__(self, *secrets: str, limit: int = MAX_LINE) -> None:
        self._secrets, self._limit = secrets, limit
        self._keys = PrivateKeys()

    def lines(self, text: str) -> list[str]:
        """The lines of the log's next text."""
        return [self._clean(line) for line in printable(text[:MAX_TEXT]).split("\n")]

    def _clean(self, line: str) -> str:
        return clean_text(self._keys.line(line), self._limit, *self._secrets)


def cleaned_lines(texts: Iterable[str], *secrets: str, limit: int = MAX_LINE) -> list[str]:
    """The cleaned lines of a log's texts."""
    cleaner = LineCleaner(*secrets, limit=limit)
    return [line for text in texts for line in cleaner.lines(text)]
