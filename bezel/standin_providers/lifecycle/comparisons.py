"""Comparisons of two values of a property, by the names that the tables of properties use for them. Pure."""

import ipaddress
import json
import re
from collections.abc import Callable, Mapping


def last_segment(left: object, right: object) -> bool:
    """Whether two references have the same last segment: `b/models` and `models`, or a full path and a name."""
    return str(left).rsplit("/", 1)[-1] == str(right).rsplit("/", 1)[-1]


def letters(left: object, right: object) -> bool:
    """Whether two values differ in upper and lower case only."""
    return str(left).lower() == str(right).lower()


def link(left: object, right: object) -> bool:
    """Whether two references name the same resource of Compute: links by their path, a bare name by the last part."""
    if "/" in str(left) and "/" in str(right):
        return relative(str(left), "") == relative(str(right), "")
    return last_segment(left, right)


def relative(reference: str, collection: str) -> str:
    """Return a reference as `projects/P/...`, from a link, such a path or a bare name."""
    path = re.search(r"projects/.+", reference)
    return path[0] if path else collection + reference


def state(left: object, right: object) -> bool:
    """Whether two states of a lifecycle rule's condition are equal: the provider writes ANY or "" for any state."""
    return (left or "ANY") == (right or "ANY")


def month(left: object, right: object) -> bool:
    """Whether two calendar periods of a budget are equal: none means a month."""
    return (left or "MONTH") == (right or "MONTH")


def asset(left: object, right: object) -> bool:
    """Whether two assets have the same content, by the engine's hash; the place of a file does not matter."""
    digests = [item.get("hash") if isinstance(item, Mapping) else None for item in (left, right)]
    return digests[0] is not None and digests[0] == digests[1]


def shrinks(old: object, new: object) -> bool:
    """Whether the new range does not contain the whole old one, which requires a new subnetwork."""
    try:
        return not ipaddress.ip_network(str(old)).subnet_of(ipaddress.ip_network(str(new)))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return True


def document(left: object, right: object) -> bool:
    """Whether two texts hold the same JSON, however it is written; an empty text equals only itself."""
    try:
        return bool(left and right) and json.loads(str(left)) == json.loads(str(right))
    except ValueError:
        return False


def key_path(left: object, right: object) -> bool:
    """Whether two references name the same ring or key of Cloud KMS; a short one leaves out project or collections."""
    collections = {"projects", "locations", "keyRings", "cryptoKeys"}
    parts = [[part for part in str(text).split("/") if part not in collections] for text in (left, right)]
    shorter = min(len(found) for found in parts)
    return shorter > 1 and parts[0][-shorter:] == parts[1][-shorter:]


def launch_stage(left: object, right: object) -> bool:
    """Whether two launch stages of a role are equal: Google leaves ALPHA out of its answers."""
    return (left or "ALPHA") == (right or "ALPHA")


COMPARISONS: dict[str, Callable[[object, object], bool]] = {
    function.__name__: function
    for function in (last_segment, letters, link, state, month, asset, shrinks, document, key_path, launch_stage)
}
