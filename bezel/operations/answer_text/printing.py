"""Filter of control characters and escape sequences over a text that comes in pieces.

The result does not depend on where the pieces end: a sequence is dropped as a whole, also where it begins in one piece
and ends in another. The same forms as of `bezel_base.text.printable`.
"""

from typing import Final

from bezel_base.text.printable import printable

_ESCAPE, _CSI = "\x1b", "\x9b"
_STRINGS: Final = "]PX^_"
"""What follows an escape character that begins a text, e.g. the title of a window, up to its end or the line's."""


class Printing:
    """What may be shown of a text, piece by piece."""

    def __init__(self) -> None:
        self._state = ""
        self._is_return = False

    def take(self, piece: str) -> str:
        """The part of a piece that may be shown."""
        return "".join(self._visible_text(character) for character in piece)

    def _visible_text(self, character: str) -> str:
        if self._state and (ended := self._within(character)) is not None:
            return ended
        if character in {_ESCAPE, _CSI}:
            self._state = "begun" if character == _ESCAPE else "csi"
            return ""
        # A return is a newline, and so is one with a newline after it.
        after_return, self._is_return = self._is_return, character == "\r"
        return "" if character == "\n" and after_return else printable(character)

    def _within(self, character: str) -> str | None:
        """What a character of a sequence shows, mostly nothing; None where it does not belong to the sequence."""
        state, self._state = self._state, ""
        if character in {"\n", "\r"}:
            return None
        if state == "string":
            if character == "\x07":
                return ""
            self._state = "begun" if character == _ESCAPE else "string"
            return ""
        if state == "csi":
            self._state = "csi" if " " <= character <= "?" else ""
            return "" if " " <= character <= "~" else None
        if character == "[":
            self._state = "csi"
        elif character in _STRINGS:
            self._state = "string"
        elif " " <= character <= "/":
            self._state = "begun"
        elif not "0" <= character <= "~":
            return None
        return ""
