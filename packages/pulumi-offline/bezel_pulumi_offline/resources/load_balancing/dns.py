"""Operations of Cloud DNS's types: a zone is one resource, a record set is deleted and added by changes of its zone."""

import re
import time
from collections.abc import Collection, Mapping
from typing import Any

from bezel_pulumi_offline.google.errors import ProviderError, RequestError, failing, prefix_error
from bezel_pulumi_offline.lifecycle.comparisons import relative
from bezel_pulumi_offline.lifecycle.resource import GO_CLIENT, LOCAL, Operations, fill, go_quote
from bezel_pulumi_offline.lifecycle.values import Properties

_ZONE_FIELDS = ("creationTime", "nameServers")


class Zone(Operations):
    """Operations of a managed zone, which are done at once."""

    def body(self, planned: Mapping[str, Any], *, updating: bool = False) -> Properties:
        """Return the JSON of the zone: every body says in which networks it is seen."""
        sent = super().body(planned, updating=updating)
        for network in (sent.get("privateVisibilityConfig") or {}).get("networks", []):
            base = re.sub(r"/compute/\w+/$", "/compute/v1/", self.cloud.endpoint("COMPUTE"))
            network["networkUrl"] = base + relative(
                network["networkUrl"], fill("projects/{project}/global/networks/", planned)
            )
        return {"privateVisibilityConfig": {"networks": []}, **sent}

    def update(
        self, resource_id: str, planned: Mapping[str, Any], prior: Mapping[str, Any], changed: Collection[str]
    ) -> Properties:
        """Send the whole zone, with what Google has set of it."""
        if set(changed) - LOCAL:
            read = {name: prior[name] for name in _ZONE_FIELDS if prior.get(name)}
            content = {**self.body(planned, updating=True), **read, "id": int(prior.get("managedZoneId") or 0)}
            content.setdefault("cloudLoggingConfig", {})
            with failing(f"Error updating {self.kind.title} {go_quote(resource_id)}"):
                self.call("PUT", resource_id, self.kind.query, content)
        return self.expect(resource_id, planned)

    def delete(self, resource_id: str, prior: Mapping[str, Any]) -> None:
        """Delete the zone; one that is to be destroyed by force loses its records first."""
        if prior.get("forceDestroy"):
            records = Records(
                self.cloud, self.kind.api, fill("projects/{project}/managedZones/{name}", prior), self.until
            )
            records.clear()
        super().delete(resource_id, prior)


class Records:
    """Record sets of one zone, by the provider's hand-written calls, which are always of v1."""

    def __init__(self, cloud: Any, api: str, zone: str, until: float) -> None:
        self._cloud, self._api, self.zone, self._until = cloud, api, zone, until

    def call(self, method: str, path: str, query: Mapping[str, str] | None = None, content: object = None) -> Any:
        """Call the API below the zone."""
        base = re.sub(r"(?:dns/)?v\d\w*/$", "", self._cloud.endpoint(self._api))
        url = f"{base}dns/v1/{self.zone}{path}"
        return self._cloud.call_url(method, url, {**GO_CLIENT, **(query or {})}, content, until=self._until)

    def all(self, query: Mapping[str, str] | None = None) -> list[Properties]:
        """Return the record sets, or those of a name and type."""
        sets: list[Properties] = []
        token = ""
        while True:
            page = self.call("GET", "/rrsets", {**(query or {}), **({"pageToken": token} if token else {})}) or {}
            sets += page.get("rrsets", [])
            token = page.get("nextPageToken", "")
            if not token:
                return sets

    def change(self, content: Mapping[str, Any]) -> None:
        """Send a change, and wait until it is served."""
        answer = self.call("POST", "/changes", None, content)
        pause = 2.0
        while True:
            state = self.call("GET", f"/changes/{answer['id']}")
            if state.get("status") == "done":
                return
            if time.monotonic() + pause > self._until:
                raise ProviderError(
                    "Error waiting for Google DNS change: timeout while waiting for state to become 'done'"
                )
            self._cloud.pause_in_platform_seconds(pause)
            pause = min(pause * 2, 10.0)

    def clear(self) -> None:
        """Delete every record set but those that the zone keeps."""
        for record in self.all():
            is_first = record.get("type") == "NS" and self.call("GET", "").get("dnsName") == record.get("name")
            if record.get("type") != "SOA" and not is_first:
                self.change({"deletions": [_plain(record)]})


class RecordSet(Operations):
    """Operations of a record set."""

    def _records(self, values: Mapping[str, Any]) -> Records:
        zone = fill("projects/{project}/managedZones/{managedZone}", values)
        return Records(self.cloud, self.kind.api, zone, self.until)

    def create(self, planned: Mapping[str, Any]) -> tuple[str, Properties]:
        """Add the record set; one of its name and type is replaced without a word."""
        records, added = self._records(planned), self.body(planned)
        with failing(f"Error retrieving record sets for {go_quote(str(planned['managedZone']))}"):
            present = [record for record in records.all() if _key(record) == _key(added)]
        change: Properties = {"additions": [added]}
        if present:
            change["deletions"] = [_plain(record) for record in present]
        with failing("Error creating DNS RecordSet"):
            records.change(change)
        return self.read_created(fill(self.kind.id, planned), planned)

    def read(self, resource_id: str, values: Mapping[str, Any]) -> Properties | None:
        """Read the record set; None where it or its zone is gone."""
        try:
            records = self._records(values).all({"name": str(values["name"]), "type": str(values["type"])})
        except RequestError as error:
            if error.code == 404:
                return None
            raise prefix_error(
                f"Error when reading or editing DNS Record Set {go_quote(str(values['name']))}", error
            ) from None
        if len(records) > 1:
            raise ProviderError(f"Only expected 1 record set, got {len(records)}")
        del resource_id
        return dict(records[0]) if records else None

    def update(
        self, resource_id: str, planned: Mapping[str, Any], prior: Mapping[str, Any], changed: Collection[str]
    ) -> Properties:
        """Replace the record set by one change."""
        if set(changed) - LOCAL:
            change = {"deletions": [self.body(prior)], "additions": [self.body(planned)]}
            with failing("Error changing DNS RecordSet"):
                self._records(planned).change(change)
        return self.expect(resource_id, planned)

    def delete(self, resource_id: str, prior: Mapping[str, Any]) -> None:
        """Delete the record set; those that a zone keeps are left to it."""
        del resource_id
        records = self._records(prior)
        with failing("Error when reading or editing google_dns_record_set", unless_absent=True):
            if prior.get("type") in {"NS", "SOA"}:
                zone = records.call("GET", "")
                if zone.get("dnsName") == prior.get("name"):
                    return
            records.change({"deletions": [self.body(prior)]})


def _key(record: Mapping[str, Any]) -> tuple[object, object]:
    return record.get("name"), record.get("type")


def _plain(record: Mapping[str, Any]) -> Properties:
    return {key: record[key] for key in ("name", "routingPolicy", "rrdatas", "ttl", "type") if record.get(key)}
