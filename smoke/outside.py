"""Changes made outside of the program, as a health check finds them: by what the program declares in the same run.

What other stacks declare is not known in a deploy. So of a secret, or of a bucket that the program did not make, only a
grant to everyone counts here; `bezel ci drift`, `bezel status` and `bezel doctor` judge the others too.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bezel.outside_changes.declared import SERVICE, SWITCH, Entry, declared_in
from bezel.outside_changes.reading import Cloud, outside_changes

if TYPE_CHECKING:
    from bezel.outside_changes.change import Findings
    from bezel.rest import GoogleClient


def changes_of(
    props: Mapping[str, Any], google: "GoogleClient", service: Mapping[str, Any], seconds: float
) -> "Findings":
    """The changes of everything that the program declares.

    Args:
        props: The properties of a `HealthCheck`: service, planned, resources.
        google: Client for the requests.
        service: The checked service in the API's description.
        seconds: Deadline of all requests together.
    """
    entries = [Entry(str(type_), "", inputs, {}) for type_, inputs in props.get("resources") or ()]
    # During a gated rollout the newest revision waits for this very check: which one has the traffic is not judged.
    declared = declared_in([entry for entry in entries if entry.type != SWITCH])
    for entry in entries:
        if entry.type == SWITCH:
            declared.switched[str(entry.inputs.get("service"))] = ""
    name = str(props["service"])
    if any(entry.type == SERVICE for entry in entries):
        declared.services[name] = props.get("planned") or {}
    return outside_changes(declared, Cloud(google, seconds=seconds), services={name: service})
