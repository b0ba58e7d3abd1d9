"""Names and links of Compute Engine: rows hold `projects/P/global/networks/N`, responses show URLs. Pure."""

import re
from typing import Any

from bezel.localcloud.core.paths import PROJECT

_LINK = re.compile(r"(?:https?://[^/]+)?/?(?:compute/(?:v1|beta)/)?(?P<path>.+)")
_FULL = re.compile(r"projects/[^/]+/.+")


def relative(link: str) -> str:
    """The path of a link, from `projects/` on: of a URL, of `projects/...`, of `global/...` and of `regions/...`.

    A text of one word is returned unchanged.
    """
    match = _LINK.fullmatch(link)
    path = match["path"] if match else link
    if _FULL.fullmatch(path):
        return f"projects/{PROJECT}/{path.split('/', 2)[2]}" if _is_own(path) else path
    return f"projects/{PROJECT}/{path}" if "/" in path else path


def _is_own(path: str) -> bool:
    return path.split("/")[1] in {PROJECT, "-", "_"}


def last(link: str) -> str:
    """The last part of a link or name."""
    return link.rpartition("/")[2]


def region_of(name: str) -> str:
    """The region in a name such as `projects/P/regions/R/subnetworks/S`, "" where there is none."""
    match = re.search(r"regions/([^/]+)", name)
    return match[1] if match else ""


def linked(value: Any, root: str) -> Any:
    """A body with every name in it that is a resource of Compute Engine as a URL.

    Args:
        value: JSON.
        root: Base of the URLs, such as `http://127.0.0.1:8080/compute/v1`.
    """
    if isinstance(value, dict):
        return {key: item if key in _OWN_WORDS else linked(item, root) for key, item in value.items()}
    if isinstance(value, list):
        return [linked(item, root) for item in value]
    return (
        f"{root}/{value}"
        if isinstance(value, str) and re.match(r"projects/[^/ ]+/(global|regions|zones)/", value)
        else value
    )


# Values that are the caller's own text and never links.
_OWN_WORDS = frozenset({"labels", "metadata", "description"})
