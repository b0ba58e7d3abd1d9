"""Comparisons of two values of a property, by the names that the tables of properties use for them. Pure."""

import ipaddress
import json
import re
from collections.abc import Callable, Mapping
from typing import Any


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
    shorter = min(len(segments) for segments in parts)
    return shorter > 1 and parts[0][-shorter:] == parts[1][-shorter:]


def launch_stage(left: object, right: object) -> bool:
    """Whether two launch stages of a role are equal: Google leaves ALPHA out of its answers."""
    return (left or "ALPHA") == (right or "ALPHA")


def reducer(left: object, right: object) -> bool:
    """Whether two reducers of time series are equal: Google leaves REDUCE_NONE out of its answers."""
    return (left or "REDUCE_NONE") == (right or "REDUCE_NONE")


def slash(old: object, new: object) -> bool:
    """Whether a path is the known one without the slash that Google adds at its begin."""
    return old == f"/{new}"


def last_slash(left: object, right: object) -> bool:
    """Whether two addresses differ in a slash at the end only."""
    return str(left).removesuffix("/") == str(right).removesuffix("/")


def default_scope(old: object, new: object) -> bool:
    """Whether a token's scope is Google's default, which the program has left out."""
    return old == "https://www.googleapis.com/auth/cloud-platform" and not new


def default_audience(old: object, new: object) -> bool:
    """Whether a token's audience is an address that the program has left out: Google fills in the target's."""
    return str(old).startswith(("http://", "https://")) and not new


def known_part(old: object, new: object) -> bool:
    """Whether a JSON text holds the known values of its keys; what Google has added does not count."""
    try:
        before, after = json.loads(str(old)), json.loads(str(new))
    except ValueError:
        return False
    return bool(_restrict(before, after) == after)


def _restrict(old: Any, new: Any) -> Any:
    """A known value without the keys that the new one does not have."""
    if isinstance(old, dict) and isinstance(new, dict):
        return {key: _restrict(value, new[key]) for key, value in old.items() if new.get(key) is not None}
    if isinstance(old, list) and isinstance(new, list):
        pairs = [_restrict(value, new[index]) for index, value in enumerate(old) if index < len(new)]
        return [*pairs, *old[len(new) :]]
    return old


def attempt_deadline(left: object, right: object) -> bool:
    """Whether two deadlines of a job's attempts are equal: none is Google's default."""
    return (left or "180s") == (right or "180s")


def case_matters(member: str) -> bool:
    """Whether the name of a policy's member has upper and lower case, as the principals of federated identities do."""
    return member in ("allUsers", "allAuthenticatedUsers") or member.startswith(
        ("principal:", "principalSet:", "principalHierarchy:")
    )


def member(left: object, right: object) -> bool:
    """Whether two members of a policy are the same one."""
    one, other = str(left), str(right)
    return one == other if case_matters(one) or case_matters(other) else one.lower() == other.lower()


_UNIT_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def in_seconds(text: str) -> str:
    """Return a duration as the provider sends it, 7d as 604800s; a text that is no such duration as it is."""
    match = re.fullmatch(r"([+-]?\d+)([smhd])", text)
    return f"{int(match[1]) * _UNIT_SECONDS[match[2]]}s" if match else text


def duration(left: object, right: object) -> bool:
    """Whether two durations of whole seconds, minutes, hours or days are equally long."""
    return in_seconds(str(left)) == in_seconds(str(right))


def both_unspecified(left: object, right: object) -> bool:
    """Whether neither of two values of an enum says anything: none, or its name ends in _UNSPECIFIED."""
    return all(not value or str(value).endswith("_UNSPECIFIED") for value in (left, right))


def maven(left: object, right: object) -> bool:
    """Whether two configurations of a Maven repository are both the default one: missing, empty or spelled out."""
    blocks = [block if isinstance(block, Mapping) else {} for block in (left, right)]
    snapshots = any(block.get("allowSnapshotOverwrites") for block in blocks)
    return not snapshots and both_unspecified(*(block.get("versionPolicy") for block in blocks))


def upstreams(left: object, right: object) -> bool:
    """Whether two lists have the same policies of a virtual repository, in any order."""
    names = ("id", "priority", "repository")
    sets = [
        {tuple(str(item.get(name) or "") for name in names) for item in policies if isinstance(item, Mapping)}
        for policies in (left, right)
        if isinstance(policies, list)
    ]
    return len(sets) == 2 and sets[0] == sets[1]


def place(left: object, right: object) -> bool:
    """Whether two spellings name the same location of a bucket, which Google writes in upper case."""
    return letters(left, right)


def places(left: object, right: object) -> bool:
    """Whether two lists name the same locations of a bucket, however they are spelled and ordered."""
    named = [
        sorted(str(item).upper() for item in locations) for locations in (left, right) if isinstance(locations, list)
    ]
    return len(named) == 2 and named[0] == named[1]


def key_version(old: object, new: object) -> bool:
    """Whether a key is the one whose version Google shows."""
    return str(old).partition("/cryptoKeyVersions")[0] == new


def is_left_out(old: object, new: object) -> bool:
    """Whether a text is left out of the program, where the provider leaves Google's as it is."""
    return bool(old) and not new


def disabled_filter(old: object, new: object) -> bool:
    """Whether a filter of addresses is left out that is disabled."""
    return not new and isinstance(old, Mapping) and old.get("mode") == "Disabled"


def path(left: object, right: object) -> bool:
    """Whether two links of Compute name the same resource by their paths; a bare name equals only itself."""
    return left == right or (
        "/" in str(left) and "/" in str(right) and relative(str(left), "") == relative(str(right), "")
    )


def each_link(left: object, right: object) -> bool:
    """Whether two lists of references to Compute have the same resources in the same order."""
    return _pairwise(link, left, right)


def project_number(left: object, right: object) -> bool:
    """Whether two names, or lists of names, differ in the project at most: Google writes its number."""
    if isinstance(left, list) or isinstance(right, list):
        return _pairwise(project_number, left, right)
    names = [re.sub("projects/[^/]+", "projects/-", str(name)) for name in (left, right)]
    return names[0] == names[1]


def each_last_segment(left: object, right: object) -> bool:
    """Whether two lists of references have the same last segments in the same order."""
    return _pairwise(last_segment, left, right)


def absolute_domains(left: object, right: object) -> bool:
    """Whether two lists of domains are the same but for dots at their ends."""
    return _pairwise(lambda one, other: str(one).rstrip(".") == str(other).rstrip("."), left, right)


def _pairwise(same: Callable[[object, object], bool], left: object, right: object) -> bool:
    if not isinstance(left, list) or not isinstance(right, list):
        return left == right
    return len(left) == len(right) and all(same(one, other) for one, other in zip(left, right, strict=True))


def port_range(left: object, right: object) -> bool:
    """Whether two ranges of ports are the same: `443` is `443-443`."""
    ranges = [text if "-" in text else f"{text}-{text}" for text in (str(left), str(right))]
    return ranges[0] == ranges[1]


def ip_version(left: object, right: object) -> bool:
    """Whether two versions of the Internet Protocol are equal: none is IPV4."""
    return (left or "IPV4") == (right or "IPV4")


def ip_address(left: object, right: object) -> bool:
    """Whether two addresses are the same; a reference to an address is the one that Google shows in its place."""
    if not left or not right:
        return left == right
    texts = [str(left), str(right)]
    named = [text for text in texts if not re.fullmatch(r"[0-9a-fA-F.:]+", text)]
    return len(named) == 1 or texts[0] == texts[1]


def address_type(left: object, right: object) -> bool:
    """Whether two types of an address are equal: none is EXTERNAL."""
    return (left or "EXTERNAL") == (right or "EXTERNAL")


def certificate_scope(left: object, right: object) -> bool:
    """Whether two scopes of a certificate are equal: none is DEFAULT."""
    return (left or "DEFAULT") == (right or "DEFAULT")


def balancer_type(left: object, right: object) -> bool:
    """Whether two types of a load balancer are equal: none is `none`."""
    return (left or "none") == (right or "none")


def record_data(left: object, right: object) -> bool:
    """Whether two lists have the same values of a record set, in any order."""
    lists = [sorted(map(str, values)) for values in (left, right) if isinstance(values, list)]
    return len(lists) == 2 and lists[0] == lists[1]


COMPARISONS: dict[str, Callable[[object, object], bool]] = {
    "removed": is_left_out,
    "unspecified": both_unspecified,
    **{
        function.__name__: function
        for function in (
            *(last_segment, letters, link, state, month, asset, shrinks, document, key_path, launch_stage),
            *(reducer, slash, last_slash, default_scope, default_audience, known_part, attempt_deadline, member),
            *(duration, maven, upstreams, place, places, key_version, disabled_filter),
            *(path, each_link, project_number, each_last_segment, absolute_domains, port_range, ip_version, ip_address),
            *(address_type, certificate_scope, balancer_type, record_data),
        )
    },
}
KEPT = (known_part, place)
"""Comparisons under which a refresh leaves the program's value as it is."""
