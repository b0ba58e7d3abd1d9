"""`Content-Range` of a chunk of a resumable upload: `bytes 0-9/10`, `bytes 0-9/*`, `bytes 0-*/*`, `bytes */10`. Pure.

Source: Cloud Storage's page on resumable uploads; an end of `*`, "as long as this request", is what its Node.js library
sends for an upload in one request.
"""

import re
from typing import NamedTuple

from bezel_localcloud.core.errors import ApiError, invalid

_SMALLEST_CHUNK = 262_144  # bytes of every chunk but the last
_FORM = re.compile(r"bytes (?:([0-9]{1,15})-([0-9]{1,15}|\*)|\*)/([0-9]{1,15}|\*)")


class Part(NamedTuple):
    """What a request brings of an upload.

    Attributes:
        begin: First byte of its body, None where the request has no part and only asks how much there is.
        total: Bytes of the whole upload, None where it is not known yet.
        last: Whether the upload may be complete with this request.
    """

    begin: int | None
    total: int | None
    last: bool


def content_range(header: str | None, received: int) -> Part:
    """Return what a header says.

    Args:
        header: Its value, None for a request without one, which has the whole upload from its first byte on.
        received: Bytes that are there already.

    Raises:
        ApiError: INVALID_ARGUMENT for a malformed range, one beyond the total size, or a chunk that is too small.
    """
    if header is None:
        return Part(0, None, last=True)
    match = _FORM.fullmatch(header)
    if match is None:
        raise invalid(f"Failed to parse Content-Range header {header!r}.", ("Content-Range", header))
    begin = int(match[1]) if match[1] else None
    end = None if match[2] in {None, "*"} else int(match[2])
    total = None if match[3] == "*" else int(match[3])
    if begin is not None and end is not None and end < begin:
        raise invalid(f"Failed to parse Content-Range header {header!r}.", ("Content-Range", header))
    needed = max(received, -1 if end is None else end + 1)
    if total is not None and total < needed:
        text = f"Content-Range {header!r} ends before byte {needed}, which it must hold."
        raise invalid(text, ("Content-Range", header))
    if begin is not None and end is not None and total != end + 1:
        _check_chunk(end - begin + 1)
    return Part(begin, total, last=total is not None or match[2] == "*")


def _check_chunk(size: int) -> None:
    """Check the size of a chunk that is not the last one.

    Raises:
        ApiError: INVALID_ARGUMENT, it is smaller than Google accepts.
    """
    if size < _SMALLEST_CHUNK:
        text = (
            "Invalid request.  The number of bytes uploaded is required to be equal or greater than "
            f"{_SMALLEST_CHUNK}, except for the final request (it's recommended to be the exact multiple of "
            f"{_SMALLEST_CHUNK}).  The received request contained {size} bytes, which does not meet this requirement."
        )
        raise ApiError("INVALID_ARGUMENT", text)
