"""Keys of customers, as Cloud Storage takes them in headers."""

import base64
import hashlib


def key_headers(secret: bytes, prefix: str = "x-goog-encryption-") -> dict[str, str]:
    """The three headers of a key, which begin with `prefix`."""
    digest = hashlib.sha256(secret).digest()
    return {
        f"{prefix}algorithm": "AES256",
        f"{prefix}key": base64.b64encode(secret).decode(),
        f"{prefix}key-sha256": base64.b64encode(digest).decode(),
    }
