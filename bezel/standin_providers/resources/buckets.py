"""Resource types of Cloud Storage: buckets, and members of their policies."""

from collections.abc import Collection, Mapping
from typing import Any
from urllib.parse import quote

from bezel.standin_providers.google.errors import GoogleError, ProviderError, not_created
from bezel.standin_providers.lifecycle.fields import (
    COMPUTED,
    LOCAL,
    NEW,
    NULL,
    OUTPUT,
    REFUSED,
    REQUIRED,
    SET,
    UNSENT,
    ZERO,
    Fields,
    big,
    block,
    blocks,
    flag,
    items,
    same_letters,
    text,
    whole,
)
from bezel.standin_providers.lifecycle.labels import LABELS
from bezel.standin_providers.lifecycle.mapping import body
from bezel.standin_providers.lifecycle.resource import GO_CLIENT, Operations, ResourceType, fill
from bezel.standin_providers.lifecycle.values import Properties, unknown
from bezel.standin_providers.resources.iam_members import member_type


def _any_state(left: object, right: object) -> bool:
    """Whether two states of a rule's condition are equal: the provider writes ANY or nothing for any state."""
    return (left or "ANY") == (right or "ANY")


_RULE: Fields = (
    block("action", text("type", REQUIRED), text("storageClass"), marks=REQUIRED | SET),
    block(
        "condition",
        whole("age"),
        text("createdBefore"),
        text("customTimeBefore"),
        whole("daysSinceCustomTime"),
        whole("daysSinceNoncurrentTime"),
        items("matchesPrefixes", wire="matchesPrefix"),
        items("matchesStorageClasses", wire="matchesStorageClass"),
        items("matchesSuffixes", wire="matchesSuffix"),
        text("noncurrentTimeBefore"),
        whole("numNewerVersions"),
        flag("sendAgeIfZero", UNSENT | REFUSED),
        flag("sendDaysSinceCustomTimeIfZero", UNSENT | REFUSED),
        flag("sendDaysSinceNoncurrentTimeIfZero", UNSENT | REFUSED),
        flag("sendNumNewerVersionsIfZero", UNSENT | REFUSED),
        big("sizeAboveBytes"),
        big("sizeBelowBytes"),
        text("withState", UNSENT | COMPUTED | REFUSED, same=_any_state),
        marks=REQUIRED | SET,
    ),
)

_FIELDS: Fields = (
    text("name", REQUIRED | NEW),
    text("location", REQUIRED | NEW, same=same_letters),
    text("project", NEW | UNSENT | COMPUTED),
    text("storageClass", default="STANDARD"),
    *LABELS,
    flag("forceDestroy", LOCAL, default=False),
    flag("uniformBucketLevelAccess", COMPUTED, wire="iamConfiguration.uniformBucketLevelAccess.enabled"),
    text("publicAccessPrevention", COMPUTED, wire="iamConfiguration.publicAccessPrevention"),
    block("versioning", flag("enabled", REQUIRED | ZERO)),
    blocks("lifecycleRules", *_RULE, wire="lifecycle.rule"),
    blocks(
        "cors",
        items("origins", wire="origin"),
        items("methods", wire="method"),
        items("responseHeaders", wire="responseHeader"),
        whole("maxAgeSeconds"),
    ),
    block("website", text("mainPageSuffix"), text("notFoundPage"), marks=COMPUTED),
    block("logging", text("logBucket", REQUIRED), text("logObjectPrefix", COMPUTED)),
    block("encryption", text("defaultKmsKeyName")),
    block("retentionPolicy", big("retentionPeriod", REQUIRED), flag("isLocked", UNSENT | REFUSED)),
    block("autoclass", flag("enabled", REQUIRED | ZERO), text("terminalStorageClass", COMPUTED)),
    block(
        "softDeletePolicy",
        big("retentionDurationSeconds", ZERO),
        text("effectiveTime", OUTPUT),
        marks=COMPUTED,
    ),
    block("hierarchicalNamespace", flag("enabled", REQUIRED | NEW), marks=NEW),
    block("customPlacementConfig", items("dataLocations", REQUIRED | NEW)),
    block("ipFilter", text("mode", REQUIRED)),
    flag("defaultEventBasedHold"),
    flag("requesterPays", wire="billing.requesterPays"),
    flag("enableObjectRetention", NEW | UNSENT | REFUSED),
    text("rpo", COMPUTED | NULL),
    text("deletionPolicy", LOCAL, default="DELETE"),
    big("projectNumber", OUTPUT),
    text("selfLink", OUTPUT),
    text("timeCreated", OUTPUT),
    text("updated", OUTPUT),
    text("url", OUTPUT),
)


class Bucket(Operations):
    """Operations of a bucket: an update sends the changes only, a delete empties it where `forceDestroy` allows it."""

    def create(self, planned: Mapping[str, Any]) -> tuple[str, Properties]:
        """Create the bucket."""
        project = planned.get("project") or self.cloud.project
        query = {**GO_CLIENT, "project": fill("{project}", {"project": project})}
        content = self.body(planned)
        content["location"] = str(content.get("location", "")).upper()
        try:
            self.call("POST", "b", query, content)
        except GoogleError as error:
            raise not_created(str(error), error) from None
        name = str(planned["name"])
        return self.made(name, {})

    def read(self, resource_id: str, values: Mapping[str, Any]) -> Properties | None:
        """Read the bucket, with the project that owns it."""
        answer = super().read(f"b/{resource_id}", values)
        if answer is None:
            return None
        project = values.get("project")
        if not project or unknown(project):
            project = self.cloud.call("GET", "COMPUTE", f"projects/{answer['projectNumber']}", until=self.until)["name"]
        namespace = answer.get("hierarchicalNamespace") or {"enabled": False}
        _name_states(answer, values.get("lifecycleRules") or [])
        return {**answer, "project": project, "url": f"gs://{resource_id}", "hierarchicalNamespace": namespace}

    def update(
        self, resource_id: str, planned: Mapping[str, Any], known: Mapping[str, Any], changed: Collection[str]
    ) -> Properties:
        """Patch the changed properties; a removed one is sent as null."""
        parts = [item for item in self.kind.fields if item.name in changed and item.changeable]
        content = body(tuple(parts), planned, updating=True)
        for part in parts:
            content.setdefault(part.path[0], None)
        gone = (known.get("effectiveLabels") or {}).keys() - (planned.get("effectiveLabels") or {}).keys()
        if gone:
            content["labels"] = {**(content["labels"] or {}), **dict.fromkeys(sorted(gone))}
        if content:
            try:
                self.call("PATCH", f"b/{resource_id}", GO_CLIENT, content)
            except GoogleError as error:
                raise ProviderError(f"Error updating bucket {resource_id!r}: {error}") from None
        return self.expect(resource_id, planned)

    def delete(self, resource_id: str, known: Mapping[str, Any]) -> None:
        """Delete the bucket, with its objects if the program allows it."""
        try:
            self.call("GET", f"b/{resource_id}/anywhereCaches/")
            self._empty(resource_id, allowed=bool(known.get("forceDestroy")))
        except GoogleError as error:
            if error.code != 404:
                raise ProviderError(f"Error deleting contents of bucket {resource_id!r}: {error}") from None
        self._delete("DELETE", f"b/{resource_id}", GO_CLIENT)

    def _empty(self, bucket: str, *, allowed: bool) -> None:
        while items_found := self._objects(bucket):
            if not allowed:
                raise ProviderError(
                    f"Error trying to delete bucket {bucket} containing objects without `force_destroy` set to true"
                )
            for found in items_found:
                path = f"b/{bucket}/o/{quote(str(found['name']), safe='')}"
                generation = {"generation": str(found["generation"])} if found.get("generation") else {}
                self._delete("DELETE", path, {**GO_CLIENT, **generation})

    def _objects(self, bucket: str) -> list[Properties]:
        answer = self.call("GET", f"b/{bucket}/o", {**GO_CLIENT, "versions": "true"})
        return list((answer or {}).get("items") or [])


def _name_states(answer: Properties, known: list[Properties]) -> None:
    """Set the state of each rule's condition, ANY by default; a rule whose known state is empty stays without one."""
    for index, rule in enumerate((answer.get("lifecycle") or {}).get("rule") or []):
        before = known[index].get("condition") or {} if index < len(known) else {}
        state = {True: "LIVE", False: "ARCHIVED", None: "" if before.get("withState") == "" else "ANY"}
        condition = rule.setdefault("condition", {})
        condition["withState"] = state[condition.get("isLive")]


ROWS: tuple[ResourceType, ...] = (
    ResourceType(
        pulumi_type="gcp:storage/bucket:Bucket",
        title="bucket",
        api="STORAGE",
        id="{name}",
        query=GO_CLIENT,
        fields=_FIELDS,
        autoname="name",
        operations=Bucket,
    ),
    member_type(
        "gcp:storage/bucketIAMMember:BucketIAMMember",
        "STORAGE",
        "b/{bucket}",
        text("bucket"),
        get_query={"optionsRequestedPolicyVersion": "3"},
        put="PUT",
        suffixes=("/iam", "/iam"),
    ),
)
