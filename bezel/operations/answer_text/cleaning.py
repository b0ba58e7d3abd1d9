"""Text of an answer without control characters and without credentials, piece by piece as it arrives.

Held back is only what may become a credential: the last word, and the begin of a value that is known to be secret. So
the words of an answer appear as the server sends them, and the result is the same however the text was cut. Hidden are
the caller's own secrets, credentials with a form of their own, and private keys. What is named like one
(`password = ...`) stays, as it does in code that was asked for.
"""

import re
from collections.abc import Iterable
from typing import Final

from bezel.operations.answer_text.printing import Printing
from bezel.operations.redaction import TOKEN_FORMS
from bezel.rest.errors import PLACEHOLDER

_WORD: Final = re.compile(r"[!-~]*\Z")
"""The last word so far: printable ASCII, as every credential is; other scripts are shown at once."""
_BEGIN, _END = "-----BEGIN", "-----END"
_PRIVATE: Final = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY")
_SHORTEST = 6


class Cleaning:
    """What may be shown of an answer, piece by piece."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        """Begin an answer.

        Args:
            secrets: Values known to be secret; those shorter than six characters are left alone.
        """
        self._printing = Printing()
        self._secrets = sorted({each for each in secrets if len(each) >= _SHORTEST}, key=len, reverse=True)
        self._firsts = {secret[0] for secret in self._secrets}
        self._unmatched = self._held = ""
        self._is_key = False

    def take(self, piece: str) -> str:
        """What may be shown now."""
        self._unmatched += self._printing.take(piece)
        self._held += self._without_secrets(is_end=False)
        return self._released(is_end=False)

    def end(self) -> str:
        """The rest."""
        self._held += self._without_secrets(is_end=True)
        return self._released(is_end=True)

    def _without_secrets(self, *, is_end: bool) -> str:
        """What has arrived, with each known value replaced; what may still become one stays in `_unmatched`."""
        text, shown, place = self._unmatched, [], 0
        while place < len(text):
            if text[place] not in self._firsts:
                shown.append(text[place])
                place += 1
                continue
            rest = text[place:]
            if not is_end and any(len(rest) < len(secret) and secret.startswith(rest) for secret in self._secrets):
                break
            found = next((secret for secret in self._secrets if rest.startswith(secret)), None)
            shown.append(text[place] if found is None else PLACEHOLDER)
            place += 1 if found is None else len(found)
        self._unmatched = text[place:]
        return "".join(shown)

    def _released(self, *, is_end: bool) -> str:
        shown = ""
        while True:
            if self._is_key:
                # Up to the end of the line that ends it; a key that is cut off is hidden up to the end.
                _, mark, rest = self._held.partition(_END)
                line, newline, after = rest.partition("\n")
                if not (mark and newline):
                    self._held = "" if is_end else self._held
                    return shown
                self._is_key, self._held = False, newline + after
            before, mark, rest = self._held.partition(_BEGIN)
            if not mark:
                break
            line, newline, _ = rest.partition("\n")
            if not (newline or is_end):
                self._held = mark + rest
                return shown + _cleaned(before)
            if _PRIVATE.match(mark + line):
                shown += _cleaned(before) + PLACEHOLDER
                self._is_key, self._held = True, rest
            else:
                shown += _cleaned(before + mark)
                self._held = rest
        cut = len(self._held) if is_end else _WORD.search(self._held).start()  # type: ignore[union-attr]
        whole, self._held = self._held[:cut], self._held[cut:]
        return shown + _cleaned(whole)


def clean(text: str, secrets: Iterable[str] = ()) -> str:
    """A whole answer, as its pieces are shown."""
    cleaning = Cleaning(secrets)
    return cleaning.take(text) + cleaning.end()


def _cleaned(text: str) -> str:
    """A text of whole words without credentials that have a form of their own."""
    for form in TOKEN_FORMS:
        text = form.sub(PLACEHOLDER, text)
    return text
