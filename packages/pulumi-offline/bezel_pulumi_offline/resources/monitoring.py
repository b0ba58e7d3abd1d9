"""Resource types of Cloud Monitoring beside the channels: alert policies, uptime checks and dashboards.

All three follow recordings of the published provider. Google chooses the ids. A dashboard is one JSON text, which the
state keeps as Google returned it; what Google has added to it is no difference.
"""

import json
from collections.abc import Collection, Mapping
from typing import Any

from bezel_pulumi_offline.google.errors import ProviderError, RequestError, failing, not_created
from bezel_pulumi_offline.lifecycle.resource import fill, go_quote
from bezel_pulumi_offline.lifecycle.values import Properties, unknown
from bezel_pulumi_offline.resources.billing import Numbered

_JSON = "dashboardJson"


class MonitoringResource(Numbered):
    """Operations of a resource of version 3: the endpoint has no version."""

    version = "v3"

    def call(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        content: object = None,
        limit: float | None = None,
    ) -> Any:
        """Call Monitoring."""
        return super().call(method, f"{self.version}/{path}", query, content, limit)


class UptimeCheck(MonitoringResource):
    """Operations of an uptime check."""

    def delete(self, resource_id: str, prior: Mapping[str, Any]) -> None:
        """Delete the check.

        Raises:
            ProviderError: It was refused, for a policy that uses it, say.
        """
        try:
            super().delete(resource_id, prior)
        except ProviderError as error:
            if "Error 400" not in str(error):
                raise
            hint = "please ensure all associated Alert Policies are deleted."
            raise ProviderError(f"{error} - {hint}", advice=error.advice) from None


class Dashboard(MonitoringResource):
    """Operations of a dashboard, of version 1."""

    version = "v1"

    @staticmethod
    def derive(planned: Properties, prior: Mapping[str, Any] | None) -> None:
        """Write the text as the provider does, with sorted keys; one without a difference stays as it is known."""
        del prior
        if not unknown(planned.get(_JSON)):
            planned[_JSON] = _normal(planned.get(_JSON))

    def create(self, planned: Mapping[str, Any]) -> tuple[str, Properties]:
        """Create the dashboard; its name is in the response."""
        content = json.loads(str(planned[_JSON]))
        try:
            made = self.call("POST", fill(self.kind.collection, planned), self.kind.query, content)
        except RequestError as error:
            raise not_created(f"Error creating {self.kind.title}", error) from None
        return self.read_created(str(made["name"]), planned)

    def read(self, resource_id: str, values: Mapping[str, Any]) -> Properties | None:
        """Read the dashboard as one text."""
        answer = super().read(resource_id, values)
        return None if answer is None else {_JSON: _go_json(answer)}

    def update(
        self, resource_id: str, planned: Mapping[str, Any], prior: Mapping[str, Any], changed: Collection[str]
    ) -> Properties:
        """Replace the dashboard, unless another has changed it meanwhile: the known etag is sent."""
        if _JSON in changed:
            etag = json.loads(str(prior.get(_JSON) or "{}")).get("etag")
            content = {**json.loads(str(planned[_JSON])), "etag": etag}
            with failing(f"Error updating {self.kind.title} {go_quote(resource_id)}"):
                self.call("PATCH", resource_id, self.kind.query, content)
        return self.expect(resource_id, planned)

    def delete(self, resource_id: str, prior: Mapping[str, Any]) -> None:
        """Delete the dashboard."""
        del prior
        with failing(f"Error when reading or editing {self.name_in_messages(resource_id)}", unless_absent=True):
            self.call("DELETE", resource_id, self.kind.query)


def _normal(text: object) -> object:
    try:
        return _go_json(json.loads(str(text)))
    except ValueError:
        return text


def _go_json(value: Any) -> str:
    """JSON as Go writes it."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
