"""Operations of Certificate Manager's types: a change sends all that can change, and its mask names what has."""

from collections.abc import Collection, Mapping
from typing import Any

from bezel_pulumi_offline.lifecycle.fields import Field, Mark
from bezel_pulumi_offline.lifecycle.resource import Operations
from bezel_pulumi_offline.lifecycle.values import Properties


class ManagerOperations(Operations):
    """Create, read, update and delete as in Certificate Manager's API."""

    def body(self, planned: Mapping[str, Any], *, updating: bool = False) -> Properties:
        """Return the JSON of the resource; a change has only what can change."""
        sent = super().body(planned, updating=updating)
        if not updating:
            return sent
        fixed = {item.path[0] for item in self.kind.fields if item.marks & Mark.NEW}
        return {key: value for key, value in sent.items() if key not in fixed}

    def mask(self, field: Field) -> Collection[str]:
        """Return the path of a property in the mask."""
        return (field.path[0],)
