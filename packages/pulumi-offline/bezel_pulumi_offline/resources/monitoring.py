"""Resource types of Cloud Monitoring: alert policies, notification channels, uptime checks and dashboards.

They follow recordings of the published provider. There is none of a channel: its row follows the provider's published
source (services/monitoring/resource_monitoring_notification_channel.go). Google chooses the ids. A dashboard is one
JSON text, which the state keeps as Google returned it; what Google has added to it is no difference.
"""

import json
from collections.abc import Collection, Mapping
from typing import Any

from bezel_pulumi_offline.google.errors import ProviderError, failing
from bezel_pulumi_offline.lifecycle.resource import Numbered, go_quote
from bezel_pulumi_offline.lifecycle.values import Properties, unknown

_JSON = "dashboardJson"


class MonitoringResource(Numbered):
    """Operations of a resource of version 3: the endpoint has no version."""

    version = "v3/"


class Channel(MonitoringResource):
    """Operations of a notification channel: an update sends the whole channel."""

    def body(self, planned: Mapping[str, Any], *, updating: bool = False) -> Properties:
        """Return the JSON of the channel: labels are always there."""
        return {"labels": {}, **super().body(planned, updating=updating)}

    def delete(self, resource_id: str, prior: Mapping[str, Any]) -> None:
        """Delete the channel."""
        force = "true" if prior.get("forceDelete") else "false"
        self._delete("DELETE", resource_id, {"force": force})


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

    version = "v1/"

    @staticmethod
    def derive(planned: Properties, prior: Mapping[str, Any] | None) -> None:
        """Write the text as the provider does, with sorted keys; one without a difference stays as it is known."""
        del prior
        if not unknown(planned.get(_JSON)):
            planned[_JSON] = _normal(planned.get(_JSON))

    def body(self, planned: Mapping[str, Any], *, updating: bool = False) -> Properties:
        """Return the JSON of the dashboard, which the program writes itself."""
        del updating
        return dict(json.loads(str(planned[_JSON])))

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
            content = {**self.body(planned), "etag": etag}
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
