"""Redaction of credentials in texts that reach a person, a log or a state file.

A second line of defence behind the rule that no message is built from a token: servers and libraries quote the
requests that they got.
"""

import re

PLACEHOLDER = "[redacted]"

_PATTERNS = (
    # JSON Web Tokens (identity tokens, signed assertions): three base64url parts, the first begins with '{"'.
    re.compile(r"eyJ[\w-]{4,}\.[\w-]+(?:\.[\w-]*)?"),
    # Google's access tokens.
    re.compile(r"\bya29\.[\w.-]+"),
    re.compile(r"(?i)(?<=\bbearer )[^\s\"',;]+"),
    re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL),
    # Hugging Face tokens, which a container's own log can hold.
    re.compile(r"\bhf_[A-Za-z0-9]{16,}"),
)


def redact(text: str, *secrets: str) -> str:
    """Replaces every text in the form of a credential, and each of ``secrets``, by a placeholder.

    Args:
        text: Anything that may reach a message.
        secrets: Values known to be secret; those shorter than six characters are left alone, for replacing them
            would eat ordinary words.
    """
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= 6:
            text = text.replace(secret, PLACEHOLDER)
    for pattern in _PATTERNS:
        text = pattern.sub(PLACEHOLDER, text)
    return text
