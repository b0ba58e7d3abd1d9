"""Parts of a multipart body (RFC 2046, section 5.1), found in time proportional to its length. Pure.

A body in memory has up to 64 MiB, and a caller chooses the boundary: a regular expression tried at every byte takes
seconds for it.
"""

import re

from bezel_localcloud.core.errors import invalid

_REST = re.compile(rb"(?:--)?[ \t]*(?:\r?\n|\Z)")  # of a delimiter's line, behind the boundary
_BLANK_LINE = re.compile(rb"\r?\n\r?\n")
_LONGEST_HEAD = 64 << 10  # bytes of a part's headers, as of a request's
_MOST_CANDIDATES = 100_000  # lines that begin as a delimiter does and go on otherwise


def parts_of(body: bytes, boundary: str, most: int) -> list[bytes]:
    """The parts between the first delimiter and the last one, each without the line's end before its delimiter.

    What follows the last delimiter is no part: a body that is cut off lacks its last one.

    Args:
        body: The whole body; its lines end with a line feed with or without a carriage return.
        boundary: The boundary that its type names.
        most: Parts to look for at most.

    Returns:
        At most `most` + 1 parts: more than `most` mean that there are too many.

    Raises:
        ApiError: INVALID_ARGUMENT for a body with very many lines that only look like delimiters.
    """
    mark = b"\n--" + boundary.encode()
    body = b"\n" + body if body.startswith(mark[1:]) else body  # so that each delimiter has a line's end before it
    parts: list[bytes] = []
    begin, position = -1, body.find(mark)
    for _ in range(_MOST_CANDIDATES):
        if position < 0:
            return parts
        rest = _REST.match(body, position + len(mark))
        if rest is not None:
            if begin >= 0:
                parts.append(body[begin:position].removesuffix(b"\r"))
            if len(parts) > most:
                return parts
            begin = rest.end()
        position = body.find(mark, position + 1 if rest is None else rest.end())
    raise invalid(f"More than {_MOST_CANDIDATES} lines of the body begin with its boundary.")


def head_and_content(part: bytes) -> tuple[bytes, bytes]:
    """What is before and behind the first blank line of a part; without one, all of it is its head.

    Raises:
        ApiError: INVALID_ARGUMENT for a head that is longer than that of a request may be.
    """
    blank = _BLANK_LINE.search(part, 0, _LONGEST_HEAD + 4)
    if blank is None and len(part) > _LONGEST_HEAD:
        raise invalid(f"The headers of a part of the body have more than {_LONGEST_HEAD} bytes.")
    return (part[: blank.start()], part[blank.end() :]) if blank else (part, b"")
