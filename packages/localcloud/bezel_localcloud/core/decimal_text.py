"""Whole numbers in a caller's text: ASCII digits only, within a bound. Pure.

`str.isdigit` takes superscripts, which `int` refuses; `int` takes the digits of every script, signs, blanks and
underscores, and refuses more than 4,300 digits. So a number of a path, a query, a header or a form is read here.
"""

MOST = 2**63 - 1
_MOST_DIGITS = 19  # of `MOST`


def decimal(text: str, most: int = MOST) -> int | None:
    """The whole number that a text of the digits 0 to 9 is; None for another text, and for a number above `most`."""
    if not (text.isascii() and text.isdigit()) or len(text.lstrip("0")) > _MOST_DIGITS:
        return None
    number = int(text.lstrip("0") or "0")
    return number if number <= most else None
