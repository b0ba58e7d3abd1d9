"""Resource type of a budget of a billing account. It follows recordings of the published provider."""

from collections.abc import Collection, Mapping
from typing import Any

from bezel_pulumi_offline.google.errors import failing
from bezel_pulumi_offline.lifecycle.resource import Numbered, go_quote
from bezel_pulumi_offline.lifecycle.values import Properties

_FILTER = "budgetFilter"
_MASKS = {
    "displayName": ("displayName",),
    _FILTER: tuple(
        f"{_FILTER}.{name}"
        for name in (
            *("projects", "resourceAncestors", "labels", "calendarPeriod", "customPeriod"),
            *("services", "creditTypesTreatment", "creditTypes", "subaccounts"),
        )
    ),
    "amount": tuple(f"amount.specifiedAmount.{name}" for name in ("currencyCode", "units", "nanos")),
    "thresholdRules": ("thresholdRules",),
    "allUpdatesRule": tuple(
        f"notificationsRule.{name}"
        for name in (
            *("pubsubTopic", "schemaVersion", "monitoringNotificationChannels"),
            *("disableDefaultIamRecipients", "enableProjectLevelRecipients"),
        )
    ),
    "ownershipScope": ("ownershipScope",),
}
"""Property -> the paths of an update's mask, in the provider's order."""
_SETS = ("projects", "resourceAncestors")


class Budget(Numbered):
    """Operations of a budget: labels are lists of one on the wire, and updates name single values."""

    def body(self, planned: Mapping[str, Any], *, updating: bool = False) -> Properties:
        """Return the JSON of the budget."""
        content = super().body(planned, updating=updating)
        if labels := content.get(_FILTER, {}).get("labels"):
            content[_FILTER]["labels"] = {key: [value] for key, value in labels.items()}
        if content["amount"].get("lastPeriodAmount"):
            content["amount"]["lastPeriodAmount"] = {}
        return content

    def read(self, resource_id: str, values: Mapping[str, Any]) -> Properties | None:
        """Read the budget."""
        answer = super().read(resource_id, values)
        if answer is None:
            return None
        filtered, amount, rule = (dict(answer.get(key) or {}) for key in (_FILTER, "amount", "notificationsRule"))
        if labels := filtered.get("labels"):
            filtered["labels"] = {key: members[-1] for key, members in labels.items() if members}
        amount["lastPeriodAmount"] = "lastPeriodAmount" in amount
        parts = {_FILTER: filtered or None, "amount": amount}
        # The provider reads an empty rule as none, and fills in the version that Google leaves out.
        return answer | parts | {"notificationsRule": {"schemaVersion": "1.0", **rule} if rule else None}

    def expect(self, resource_id: str, values: Mapping[str, Any]) -> Properties:
        """Read the budget after a change: a set is in the state as it was planned, whatever Google made of it."""
        answer = super().expect(resource_id, values)
        planned = values.get(_FILTER) or {}
        kept = {name: planned[name] for name in _SETS if planned.get(name)}
        return answer | {_FILTER: {**(answer.get(_FILTER) or {}), **kept}}

    def update(
        self, resource_id: str, planned: Mapping[str, Any], prior: Mapping[str, Any], changed: Collection[str]
    ) -> Properties:
        """Change the budget; the mask has every value of a changed block."""
        del prior
        if mask := ",".join(path for name, paths in _MASKS.items() if name in changed for path in paths):
            with failing(f"Error updating {self.kind.title} {go_quote(resource_id)}"):
                self.call("PATCH", resource_id, {"updateMask": mask}, self.body(planned, updating=True))
        return self.expect(resource_id, planned)
