"""Names, links and fingerprints of Compute Engine: rows hold `projects/P/global/networks/N`, responses URLs. Pure."""

import hashlib
import json
import re
from typing import Any

from bezel_localcloud.core.json_types import b64
from bezel_localcloud.core.paths import PROJECT, with_project_id

_LINK = re.compile(r"(?:https?://[^/]+/|/)?(?:compute/(?:v1|beta)/)?(?P<path>.+)")
_FULL = re.compile(r"projects/[^/]+/.+")


def relative(link: str) -> str:
    """The path of a link, from `projects/` on: of a URL, of `projects/...`, of `global/...` and of `regions/...`.

    A text of one word is returned unchanged.
    """
    match = _LINK.fullmatch(link)
    path = with_project_id(match["path"] if match else link)
    if _FULL.fullmatch(path):
        _, project, rest = path.split("/", 2)
        return f"projects/{PROJECT}/{rest}" if project in {PROJECT, "-", "_"} else path
    return f"projects/{PROJECT}/{path}" if "/" in path else path


def full_name(link: str, collection: str) -> str:
    """The name that a link, or the last part of one, stands for; "" for "".

    Args:
        link: A link, or a name without slashes.
        collection: The collection of such a name, such as "global/networks".
    """
    return relative(link if "/" in link else f"{collection}/{link}") if link else ""


def fingerprint(value: Any) -> str:
    """A digest that changes with some JSON."""
    return b64(hashlib.sha256(json.dumps(value, sort_keys=True).encode()).digest()[:8])


def last(link: str) -> str:
    """The last part of a link or name."""
    return link.rpartition("/")[2]


def region_of(name: str) -> str:
    """The region in a name such as `projects/P/regions/R/subnetworks/S`, "" where there is none."""
    match = re.search(r"regions/([^/]+)", name)
    return match[1] if match else ""


def with_links(value: Any, root: str) -> Any:
    """A body with every name in it that is a resource of Compute Engine as a URL.

    Args:
        value: JSON.
        root: Base of the URLs, such as `http://127.0.0.1:8080/compute/v1`.
    """
    if isinstance(value, dict):
        return {key: item if key in _OWN_WORDS else with_links(item, root) for key, item in value.items()}
    if isinstance(value, list):
        return [with_links(item, root) for item in value]
    named = isinstance(value, str) and re.match(r"projects/[^/ ]+/(global|regions|zones)/", value)
    return f"{root}/{value}" if named else value


# Values that are the caller's own text and never links.
_OWN_WORDS = frozenset({"labels", "metadata", "description"})
