"""Content hashes: SHA-256 and git blob SHA-1 of the hub's files, and MD5 of Cloud Storage's objects."""

import base64
import hashlib
from dataclasses import dataclass

# Keys of an object's custom metadata under which a verified hash is stored.
SHA256 = "bezel-sha256"
GIT_BLOB = "bezel-git-sha1"


@dataclass(frozen=True, slots=True)
class Expected:
    """Size and hash that a file must have.

    Attributes:
        kind: SHA256 of the content (large files), or GIT_BLOB, git's SHA-1 of a blob (all others).
        value: In hexadecimal digits.
        size: Bytes.
    """

    kind: str
    value: str
    size: int


class Digest:
    """Incremental hash of a content, as the hub and as Cloud Storage compute it."""

    def __init__(self, expected: Expected) -> None:
        self._expected = expected
        self._own = hashlib.sha256() if expected.kind == SHA256 else hashlib.sha1(usedforsecurity=False)
        if expected.kind == GIT_BLOB:
            self._own.update(b"blob %d\0" % expected.size)
        self._md5 = hashlib.md5(usedforsecurity=False)

    def update(self, content: bytes) -> None:
        """Adds the next bytes."""
        self._own.update(content)
        self._md5.update(content)

    @property
    def matches(self) -> bool:
        """Whether the bytes added so far are the whole expected content."""
        return self._own.hexdigest() == self._expected.value

    @property
    def md5(self) -> str:
        """The MD5 as Cloud Storage writes it: Base64."""
        return base64.b64encode(self._md5.digest()).decode()
