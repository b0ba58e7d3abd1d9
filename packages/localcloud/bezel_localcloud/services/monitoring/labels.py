"""Labels of users on resources of Monitoring: how many, and of which form."""

import re

from bezel_localcloud.core.json_types import Json

_LABEL = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_MOST = 64


def label_problems(resource: Json) -> list[tuple[str, str]]:
    """(field, reason) of wrong `userLabels`."""
    labels = resource.get("userLabels") or {}
    if len(labels) > _MOST or not all(_LABEL.fullmatch(key) for key in labels):
        return [("userLabels", f"has at most {_MOST} keys of the form {_LABEL.pattern}")]
    return []
