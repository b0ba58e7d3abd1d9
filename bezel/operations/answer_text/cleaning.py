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
from bezel_base.credentials.forms import replace_forms
from bezel_base.credentials.private_keys import FIRST_MARK, PrivateKeys
from bezel_base.text.redaction import PLACEHOLDER

_WORD: Final = re.compile(r"[!-~]*\Z")
"""The last word so far: printable ASCII, as every credential is; other scripts are shown at once."""
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
        self._key: PrivateKeys | None = None
        self._is_hidden = False

    def take(self, piece: str) -> str:
        """What may be shown now."""
        self._unmatched += self._printing.take(piece)
        self._held += self._without_secrets(is_end=False)
        return self._release(is_end=False)

    def end(self) -> str:
        """The rest."""
        self._held += self._without_secrets(is_end=True)
        return self._release(is_end=True)

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
            match = next((secret for secret in self._secrets if rest.startswith(secret)), None)
            shown.append(text[place] if match is None else PLACEHOLDER)
            place += 1 if match is None else len(match)
        self._unmatched = text[place:]
        return "".join(shown)

    def _release(self, *, is_end: bool) -> str:
        shown = ""
        while self._key or FIRST_MARK in self._held:
            before, mark, rest = self._held.partition("\n" if self._key else FIRST_MARK)
            if not self._key:
                shown += _replace_credentials(before)
                self._key, self._held = PrivateKeys(), mark + rest
            elif mark or is_end:
                shown += self._of_key(before, self._key, mark)
                self._held = rest
                if not mark:
                    return shown
            else:
                return shown
        cut = len(self._held) if is_end else _WORD.search(self._held).start()  # type: ignore[union-attr]
        whole, self._held = self._held[:cut], self._held[cut:]
        return shown + _replace_credentials(whole)

    def _of_key(self, line: str, key: PrivateKeys, newline: str) -> str:
        """A line from the first one of a key on, whose lines together become one placeholder."""
        was_hidden, was_within = self._is_hidden, key.is_within
        shown = key.line(line)
        self._is_hidden = key.is_within
        if not key.is_within:
            self._key = None
        if was_hidden and was_within and shown.startswith(PLACEHOLDER):
            shown = shown.removeprefix(PLACEHOLDER)
        elif was_hidden:
            shown = f"\n{shown}"
        return _replace_credentials(shown) + ("" if self._is_hidden else newline)


def clean(text: str, secrets: Iterable[str] = ()) -> str:
    """A whole answer, as its pieces are shown."""
    cleaning = Cleaning(secrets)
    return cleaning.take(text) + cleaning.end()


def _replace_credentials(text: str) -> str:
    """A text of whole words without credentials that have a form of their own."""
    return replace_forms(text, PLACEHOLDER)
