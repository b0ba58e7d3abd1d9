"""Resource types of Cloud Storage: buckets, and members of their policies."""

from collections.abc import Collection, Mapping
from typing import Any
from urllib.parse import quote

from bezel_pulumi_offline.google.errors import ProviderError, RequestError, not_created, prefix_error
from bezel_pulumi_offline.lifecycle.mapping import body
from bezel_pulumi_offline.lifecycle.resource import GO_CLIENT, LOCAL, Operations, fill
from bezel_pulumi_offline.lifecycle.values import Properties, unknown

# What an update sends for a property that has become empty; null for the others.
_EMPTIED: dict[str, Any] = {
    "lifecycleRules": {"rule": []},
    "autoclass": {"enabled": False},
    "defaultEventBasedHold": False,
    "requesterPays": {"requesterPays": False},
}
_KEPT = frozenset({"softDeletePolicy", "storageClass", "versioning", "website"})  # not sent when it has become empty
_ACCESS = frozenset({"uniformBucketLevelAccess", "publicAccessPrevention"})  # sent together


class Bucket(Operations):
    """Operations of a bucket: an update sends the changes only, a delete empties it where `forceDestroy` allows it."""

    def create(self, planned: Mapping[str, Any]) -> tuple[str, Properties]:
        """Create the bucket."""
        project = planned.get("project") or self.cloud.project
        query = {**GO_CLIENT, "project": fill("{project}", {"project": project})}
        # An empty list of rules and a disabled uniform access are sent as well.
        content = {"lifecycle": {"rule": []}, **self.body(planned), "iamConfiguration": _access(planned)}
        try:
            self.call("POST", "b", query, content)
        except RequestError as error:
            raise not_created("", error) from None
        name = str(planned["name"])
        return self.read_created(name, {})

    def read(self, resource_id: str, values: Mapping[str, Any]) -> Properties | None:
        """Read the bucket, with the project that owns it."""
        answer = super().read(f"b/{resource_id}", values)
        if answer is None:
            return None
        project = values.get("project")
        if not project or unknown(project):
            project = self.cloud.call("GET", "COMPUTE", f"projects/{answer['projectNumber']}", until=self.until)["name"]
        access = {"publicAccessPrevention": "inherited", **(answer.get("iamConfiguration") or {})}
        namespace = answer.get("hierarchicalNamespace") or {"enabled": False}
        _name_states(answer, values.get("lifecycleRules") or [])
        made = {"project": project, "url": f"gs://{resource_id}"}
        return {**answer, **made, "iamConfiguration": access, "hierarchicalNamespace": namespace}

    def name_in_messages(self, resource_id: str) -> str:
        """Return the bucket's name in messages, without the first part of its path."""
        return super().name_in_messages(resource_id.removeprefix("b/"))

    def update(
        self, resource_id: str, planned: Mapping[str, Any], prior: Mapping[str, Any], changed: Collection[str]
    ) -> Properties:
        """Patch the changed properties; the request has no content where only the provider's own have changed."""
        parts = [item for item in self.kind.fields if item.name in changed and item.changeable]
        content = body(tuple(parts), planned, updating=True)
        for part in parts:
            if part.name not in _KEPT:
                content.setdefault(part.path[0], _EMPTIED.get(part.name))
        if _ACCESS & set(changed):
            content["iamConfiguration"] = _access(planned)
        gone = (prior.get("effectiveLabels") or {}).keys() - (planned.get("effectiveLabels") or {}).keys()
        if gone:
            content["labels"] = {**(content["labels"] or {}), **dict.fromkeys(sorted(gone))}
        if set(changed) - LOCAL:
            self.call("PATCH", f"b/{resource_id}", GO_CLIENT, content)
        return self.expect(resource_id, planned)

    def delete(self, resource_id: str, prior: Mapping[str, Any]) -> None:
        """Delete the bucket, with its objects if the program allows it.

        Where they cannot be listed or deleted, it is tried all the same: the bucket may be empty.
        """
        self._stage = "listing"
        failed: RequestError | None = None
        try:
            self.call("GET", f"b/{resource_id}/anywhereCaches/")
            self._empty(resource_id, allowed=bool(prior.get("forceDestroy")))
        except RequestError as error:
            failed = error
        try:
            self.call("DELETE", f"b/{resource_id}", GO_CLIENT)
        except RequestError as error:
            if failed is not None and error.code == 409 and "not empty" in str(error):
                text = f"could not delete non-empty bucket due to error when {self._stage} contents"
                raise prefix_error(text, failed) from None
            if error.code != 404:
                raise

    def _empty(self, bucket: str, *, allowed: bool) -> None:
        while items_found := self._objects(bucket):
            if not allowed:
                raise ProviderError(
                    f"Error trying to delete bucket {bucket} containing objects without `force_destroy` set to true"
                )
            self._stage = "deleting"
            for item in items_found:
                path = f"b/{bucket}/o/{quote(str(item['name']), safe='')}"
                generation = {"generation": str(item["generation"])} if item.get("generation") else {}
                try:
                    self.call("DELETE", path, {**GO_CLIENT, **generation})
                except RequestError as error:
                    if error.code != 404:
                        raise
            self._stage = "listing"

    _stage = "listing"

    def _objects(self, bucket: str) -> list[Properties]:
        answer = self.call("GET", f"b/{bucket}/o", {**GO_CLIENT, "versions": "true"})
        return list((answer or {}).get("items") or [])


def _access(planned: Mapping[str, Any]) -> Properties:
    """Return the part of the body about access; a property that Google chooses is unknown or absent here."""
    uniform = {"uniformBucketLevelAccess": {"enabled": planned.get("uniformBucketLevelAccess") is True}}
    prevention = planned.get("publicAccessPrevention")
    return {**uniform, **({"publicAccessPrevention": prevention} if prevention else {})}


def _name_states(answer: Properties, prior: list[Properties]) -> None:
    """Set the state of each rule's condition, ANY by default; a rule whose known state is empty stays without one."""
    for index, rule in enumerate((answer.get("lifecycle") or {}).get("rule") or []):
        before = prior[index].get("condition") or {} if index < len(prior) else {}
        state = {True: "LIVE", False: "ARCHIVED", None: "" if before.get("withState") == "" else "ANY"}
        condition = rule.setdefault("condition", {})
        condition["withState"] = state[condition.get("isLive")]
