"""Detection of secrets in plain text, by name or by shape: one rule for plan and policies.

A value under a secret's name passes only where it is known not to be a secret: a switch, the resource name of a secret,
a reference to another variable, the file of a credential. Leaves the places of such values to the callers.
"""

from __future__ import annotations

import re
from itertools import pairwise

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
# A word with this ending names a secret anywhere in a name, also without a separator as in PGPASSWORD.
_SECRET = re.compile(
    r"\w*(?:passwords?|passwd|passphrases?|secrets?|credentials?|apikeys?|accesskeys?|privatekeys?)|pwd"
)
_OF_KEY = re.compile(r"\w*(?:access|api|auth|encryption|license|master|private|signing|ssh)")
# As the last word, these make the name describe a secret instead of holding it.
_ABOUT = re.compile(
    "algorithm|backend|class|count|dir|enabled|endpoint|expiration|expiry|field|file|folder|format|header|ids?|kind"
    "|length|lifetime|limit|manager|mode|names?|namespace|parser|path|policy|prefix|provider|ref|regex|required"
    "|rotation|scope|size|store|strategy|suffix|timeout|ttl|type|uri|url|version"
)
# Words that make `token` a token of text, or a number of them.
_OF_TEXT = re.compile("bos|budget|cls|count|eos|limit|mask|max|min|num|pad|per|sep|special|stop|unk")
# Trailing words that select one of several secrets or its form: ignored.
_WHICH = re.compile(
    r"\d+|b64|base64|current|data|default|dev|env|json|main|old|plain|primary|prod|production|raw|read|ro|rw"
    "|secondary|staging|string|test|text|value|write"
)
_VALUE = re.compile(
    r"(?<![A-Za-z0-9])(?:hf_[A-Za-z0-9]{16,}|gh[opsu]_[A-Za-z0-9]{16,}|github_pat_\w{16,}|glpat-[\w-]{16,}"
    r"|sk-[A-Za-z0-9_-]{16,}|xox[abprs]-[\w-]{10,}|AKIA[0-9A-Z]{16}|AIza[\w-]{30,}|ya29\.[\w-]{10,}"
    r"|eyJ[\w-]{8,}\.eyJ[\w-]{8,}|pul-[0-9a-f]{40})"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----|\"private_key\"\s*:"
)
_NO_SECRET = re.compile(
    r"|true|false|yes|no|on|off|none|null|[01]|projects/[^/]+/secrets/.*|\$[({]\w+[)}]", re.IGNORECASE
)
_FILE = re.compile(r"/(?:[\w.-]+/)+[\w.-]+|/[\w-]+\.\w+")


def names_secret(name: str) -> bool:
    """Whether a variable, an option or an attribute of this name holds a secret."""
    if name in ("PWD", "OLDPWD"):
        return False
    words = [word.lower() for word in _WORDS.findall(name)]
    while words and _WHICH.fullmatch(words[-1]):
        words.pop()
    if not words or _ABOUT.fullmatch(words[-1]):
        return False
    if words[-1].endswith("token"):
        return not any(_OF_TEXT.fullmatch(word) for word in words)
    of_a_key = any(_OF_KEY.fullmatch(first) and second == "key" for first, second in pairwise(words))
    return of_a_key or any(_SECRET.fullmatch(word) for word in words)


def is_secret(name: str, value: str) -> bool:
    """Whether a value under this name is a secret in plain text."""
    if _VALUE.search(value):
        return True
    if not names_secret(name) or _NO_SECRET.fullmatch(value):
        return False
    return not (re.search(r"credentials?", name, re.IGNORECASE) and _FILE.fullmatch(value))
