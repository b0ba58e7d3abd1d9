"""Resource type of Cloud Logging's metrics, which count log entries.

There is no recording of one. The row follows the provider's published source (magic-modules,
mmv1/products/logging/Metric.yaml, read in November 2026): an update replaces the whole metric, and its name is escaped
in paths. A changed name is such an update too: it makes a metric of that name, and leaves the old one. Labels, a set
there, are a list here: another order of them is a change.
"""

from collections.abc import Collection, Mapping
from typing import Any
from urllib.parse import quote

from bezel_pulumi_offline.google.errors import failing
from bezel_pulumi_offline.lifecycle.resource import LOCAL, Operations, fill, go_quote
from bezel_pulumi_offline.lifecycle.values import Properties


class Metric(Operations):
    """Operations of a metric."""

    def read(self, resource_id: str, values: Mapping[str, Any]) -> Properties | None:
        """Read the metric."""
        name = str(values.get("name") or resource_id)
        return super().read(resource_id, {**values, "name": quote(name, safe="")})

    def update(
        self, resource_id: str, planned: Mapping[str, Any], prior: Mapping[str, Any], changed: Collection[str]
    ) -> Properties:
        """Replace the metric."""
        del prior
        if set(changed) - LOCAL:
            with failing(f"Error updating {self.kind.title} {go_quote(resource_id)}"):
                self.call("PUT", self._path(planned), self.kind.query, self.body(planned, updating=True))
        return self.expect(resource_id, planned)

    def delete(self, resource_id: str, prior: Mapping[str, Any]) -> None:
        """Delete the metric."""
        self._delete("DELETE", self._path({"name": resource_id, **prior}), self.kind.query)

    def _path(self, values: Mapping[str, Any]) -> str:
        return fill(self.kind.path, {**values, "name": quote(str(values["name"]), safe="")})
