"""Names of buckets: which ones Cloud Storage takes.

Source: Cloud Storage's page on bucket names, and its refusal of a generated name that contained `g00gl3`
(googleapis/google-cloud-cpp issue 9106). Names with dots count as domains that were verified.
"""

import re

_WHOLE = re.compile(r"[a-z0-9](?:[a-z0-9_.-]*[a-z0-9])?")
_LONGEST, _LONGEST_DOTTED, _SHORTEST = 63, 222, 3
_ADDRESS = re.compile(r"(?:[0-9]+\.){3}[0-9]+")
# "google" itself, and spellings that read like it.
_MISSPELT = re.compile(r"g[o0]{2}g[l1i][e3]")


def is_bucket_name(name: str) -> bool:
    """Whether a bucket may have this name."""
    parts = name.split(".")
    longest = _LONGEST if len(parts) == 1 else _LONGEST_DOTTED
    return (
        _SHORTEST <= len(name) <= longest
        and _WHOLE.fullmatch(name) is not None
        and all(part and len(part) <= _LONGEST for part in parts)
        and _ADDRESS.fullmatch(name) is None
        and not name.startswith("goog")
        and _MISSPELT.search(name) is None
    )
