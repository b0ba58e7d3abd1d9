"""Resource types of Cloud KMS: key rings and keys. Both stay at Google when they are deleted here."""

import re
from collections.abc import Collection, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from bezel_pulumi_offline.google.errors import ProviderError, failing
from bezel_pulumi_offline.lifecycle.fields import Field
from bezel_pulumi_offline.lifecycle.mapping import body
from bezel_pulumi_offline.lifecycle.resource import GO_CLIENT, Operations, fill
from bezel_pulumi_offline.lifecycle.values import Properties

_MASKS = {
    "rotationPeriod": ("rotationPeriod", "nextRotationTime"),
    "versionTemplate": ("versionTemplate.algorithm",),
}
_KEY = re.compile(
    r"(?:projects/(?P<project>[^/]+)/locations/(?P<location>[^/]+)/keyRings/(?P<ring>[^/]+)/(?:cryptoKeys/)?"
    r"|(?:(?P<project_>[^/]+)/)?(?P<location_>[^/]+)/(?P<ring_>[^/]+)/)(?P<key>[^/]+)"
)


class KeyRing(Operations):
    """Operations of a key ring, which a delete only removes from the state."""

    def post(self, planned: Mapping[str, Any], content: object, query: Mapping[str, str] | None = None) -> Any:
        """Create the ring; it has no properties of its own, so that its create has no body."""
        return super().post(planned, content or None, query)

    def delete(self, resource_id: str, prior: Mapping[str, Any]) -> None:
        """Leave the ring at Google, as the provider does: rings cannot be deleted."""


class CryptoKey(Operations):
    """Operations of a key: a delete destroys its versions and leaves the key, whose name stays taken."""

    _rotates_anew = False  # whether the update under way changes the rotation

    def create(self, planned: Mapping[str, Any]) -> tuple[str, Properties]:
        """Create the key, with its first version unless the program skips it."""
        skips = str(bool(planned.get("skipInitialVersionCreation"))).lower()
        query = {"cryptoKeyId": str(planned["name"]), "skipInitialVersionCreation": skips}
        self.post(planned, self.body(planned) | _rotation(planned), query)
        return self.read_created(fill(self.kind.id, planned), planned)

    def identify(self, resource_id: str, values: Mapping[str, Any]) -> str:
        """Return the whole id for an import, where project and collections may be left out.

        Raises:
            ProviderError: It names no key.
        """
        del values
        match = _KEY.fullmatch(resource_id)
        if match is None:
            long, short = "{projectId}/{locationId}/{KeyringName}/{cryptoKeyName}", "{locationId}/{keyRingName}"
            text = (
                f"Invalid CryptoKey id format, expecting `{long}` or `{short}/{{cryptoKeyName}}`, got id: {resource_id}"
            )
            raise ProviderError(text)
        project = match["project"] or match["project_"] or self.cloud.project
        location, ring = match["location"] or match["location_"], match["ring"] or match["ring_"]
        return f"projects/{project}/locations/{location}/keyRings/{ring}/cryptoKeys/{match['key']}"

    def read(self, resource_id: str, values: Mapping[str, Any]) -> Properties | None:
        """Read the key; its ring and its name are in its id."""
        answer = super().read(resource_id, values)
        ring, _, name = resource_id.rpartition("/cryptoKeys/")
        return None if answer is None else {**answer, "keyRing": values.get("keyRing") or ring, "name": name}

    def body(self, planned: Mapping[str, Any], *, updating: bool = False) -> Properties:
        """Return the JSON of the key; where it rotates, an update sets the time of the next rotation again."""
        content = body(self.kind.fields, planned, updating=updating)
        return content | _rotation(planned) if updating and self._rotates_anew else content

    def update(
        self, resource_id: str, planned: Mapping[str, Any], prior: Mapping[str, Any], changed: Collection[str]
    ) -> Properties:
        """Change labels, rotation and algorithm of the key."""
        self._rotates_anew = "rotationPeriod" in changed
        return super().update(resource_id, planned, prior, changed)

    def mask(self, field: Field) -> Collection[str]:
        """Return the paths of a changed property in the `updateMask` of an update."""
        return _MASKS.get(field.name) or super().mask(field)

    def delete(self, resource_id: str, prior: Mapping[str, Any]) -> None:
        """Destroy the versions of the key and end its rotation."""
        versions: list[Mapping[str, Any]] = []
        with failing(f"Error when reading or editing {self.kind.title}", unless_absent=True):
            answer = self.call("GET", f"{resource_id}/cryptoKeyVersions", GO_CLIENT) or {}
            versions = answer.get("cryptoKeyVersions", [])
            for version in versions:
                if version.get("state") not in {"DESTROYED", "DESTROY_SCHEDULED"}:
                    self.call("POST", f"{version['name']}:destroy", GO_CLIENT, {})
            if prior.get("rotationPeriod"):
                mask = {"updateMask": "rotationPeriod,nextRotationTime"}
                content = {"nextRotationTime": None, "rotationPeriod": None}
                self.call("PATCH", resource_id, {**GO_CLIENT, **mask}, content)


def _rotation(planned: Mapping[str, Any]) -> Properties:
    """The time of the next rotation, which Google needs beside the period."""
    period = planned.get("rotationPeriod")
    if not period:
        return {}
    due = datetime.now(UTC) + timedelta(seconds=float(str(period).removesuffix("s")))
    return {"nextRotationTime": due.strftime("%Y-%m-%dT%H:%M:%S.%fZ")}
