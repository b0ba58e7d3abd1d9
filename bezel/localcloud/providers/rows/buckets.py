"""Cloud Storage: buckets, objects and who may read them."""

import base64
import json
import mimetypes
import secrets
from collections.abc import Collection, Mapping
from hashlib import md5
from pathlib import Path
from typing import Any
from urllib.parse import quote

from bezel.localcloud.providers.errors import GoogleError, ProviderError
from bezel.localcloud.providers.fields import (
    COMPUTED,
    LOCAL,
    NEW,
    OUTPUT,
    REQUIRED,
    SECRET,
    SET,
    UNSENT,
    ZERO,
    Fields,
    asset,
    big,
    block,
    blocks,
    flag,
    items,
    same_letters,
    table,
    text,
    whole,
)
from bezel.localcloud.providers.labels import LABELS
from bezel.localcloud.providers.mapping import body
from bezel.localcloud.providers.policies import member_type
from bezel.localcloud.providers.resource import GO_CLIENT, Operations, ResourceType, fill
from bezel.localcloud.providers.wire import Properties, unknown

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
        flag("sendAgeIfZero", UNSENT),
        flag("sendDaysSinceCustomTimeIfZero", UNSENT),
        flag("sendDaysSinceNoncurrentTimeIfZero", UNSENT),
        flag("sendNumNewerVersionsIfZero", UNSENT),
        big("sizeAboveBytes"),
        big("sizeBelowBytes"),
        text("withState", UNSENT | COMPUTED),
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
    block("retentionPolicy", big("retentionPeriod", REQUIRED), flag("isLocked")),
    block("autoclass", flag("enabled", REQUIRED | ZERO), text("terminalStorageClass", COMPUTED)),
    block(
        "softDeletePolicy",
        big("retentionDurationSeconds", ZERO),
        text("effectiveTime", OUTPUT),
        marks=COMPUTED,
    ),
    block("hierarchicalNamespace", flag("enabled", REQUIRED | NEW), marks=NEW),
    block("customPlacementConfig", items("dataLocations")),
    block("ipFilter", text("mode", REQUIRED)),
    flag("defaultEventBasedHold"),
    flag("requesterPays", wire="billing.requesterPays"),
    flag("enableObjectRetention", NEW | UNSENT),
    text("rpo", COMPUTED),
    text("deletionPolicy", LOCAL, default="DELETE"),
    big("projectNumber", OUTPUT),
    text("selfLink", OUTPUT),
    text("timeCreated", OUTPUT),
    text("updated", OUTPUT),
    text("url", OUTPUT),
)

_OBJECT_FIELDS: Fields = (
    text("name", REQUIRED | NEW),
    text("bucket", REQUIRED | NEW),
    text("content", LOCAL | SECRET),
    asset("source", NEW | LOCAL),
    text("contentType", NEW | COMPUTED),
    text("cacheControl", NEW),
    text("contentDisposition", NEW),
    text("contentEncoding", NEW),
    text("contentLanguage", NEW),
    table("metadata", NEW),
    text("storageClass", NEW | COMPUTED),
    text("kmsKeyName", NEW | COMPUTED),
    flag("eventBasedHold"),
    flag("temporaryHold"),
    flag("forceEmptyContentType", NEW | LOCAL),
    text("sourceMd5hash", UNSENT),
    text("deletionPolicy", LOCAL, default="DELETE"),
    text("detectMd5hash", UNSENT, default="different hash"),
    block("retention", text("mode", REQUIRED), text("retainUntilTime", REQUIRED)),
    block(
        "contexts",
        blocks("customs", text("key", REQUIRED), text("value", REQUIRED), text("createTime", OUTPUT)),
        marks=LOCAL,
    ),
    block("customerEncryption", text("encryptionAlgorithm"), text("encryptionKey", REQUIRED), marks=LOCAL | SECRET),
    text("crc32c", OUTPUT),
    big("generation", OUTPUT),
    text("md5hash", OUTPUT, wire="md5Hash"),
    text("md5hexhash", OUTPUT),
    text("mediaLink", OUTPUT),
    text("outputName", OUTPUT),
    text("selfLink", OUTPUT),
)


class Bucket(Operations):
    """A bucket: posted to its project, patched by what changed, emptied before it goes where `forceDestroy` allows."""

    def create(self, planned: Mapping[str, Any]) -> tuple[str, Properties]:
        """Make the bucket."""
        project = planned.get("project") or self.cloud.project
        query = {**GO_CLIENT, "project": fill("{project}", {"project": project})}
        content = self.body(planned)
        content["location"] = str(content.get("location", "")).upper()
        try:
            self.call("POST", "b", query, content)
        except GoogleError as error:
            raise ProviderError(str(error)) from None
        name = str(planned["name"])
        return name, self.expect(name, {})

    def read(self, resource_id: str, values: Mapping[str, Any]) -> Properties | None:
        """The bucket with the project that owns it."""
        answer = super().read(f"b/{resource_id}", values)
        if answer is None:
            return None
        project = values.get("project")
        if not project or unknown(project):
            project = self.cloud.call("GET", "COMPUTE", f"projects/{answer['projectNumber']}", until=self.until)["name"]
        namespace = answer.get("hierarchicalNamespace") or {"enabled": False}
        return {**answer, "project": project, "url": f"gs://{resource_id}", "hierarchicalNamespace": namespace}

    def update(
        self, resource_id: str, planned: Mapping[str, Any], known: Mapping[str, Any], changed: Collection[str]
    ) -> Properties:
        """Patch what changed; what is no longer wanted is sent as null."""
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


class Object(Operations):
    """An object: small content or a file, uploaded as a whole."""

    @staticmethod
    def foretell(planned: Properties, known: Mapping[str, Any] | None) -> None:
        """The checksum of what would be uploaded, so that a changed file shows as a change and nothing else does."""
        content = _content(planned) if known is not None else None
        if content is not None:
            planned["detectMd5hash"] = base64.b64encode(_md5(content)).decode()

    def create(self, planned: Mapping[str, Any]) -> tuple[str, Properties]:
        """Upload the object."""
        self._upload(planned)
        return fill(self.kind.id, planned), self.expect("", planned)

    def identify(self, resource_id: str, values: Mapping[str, Any]) -> str:
        """The provider cannot import objects: their id does not say where the bucket's name ends."""
        del values
        raise ProviderError(f"object {resource_id!r} cannot be imported: its id does not tell bucket and name apart.")

    def read(self, resource_id: str, values: Mapping[str, Any]) -> Properties | None:
        """What the bucket knows of the object (not its content)."""
        answer = super().read(resource_id, {**values, "name": quote(str(values["name"]), safe="")})
        if answer is None:
            return None
        digest = str(answer.get("md5Hash", ""))
        shown = {
            "md5hexhash": base64.b64decode(digest).hex(),
            "outputName": answer.get("name"),
            "detectMd5hash": digest,
        }
        return {**answer, **shown}

    def update(
        self, resource_id: str, planned: Mapping[str, Any], known: Mapping[str, Any], changed: Collection[str]
    ) -> Properties:
        """Upload again what changed in content."""
        del known
        if {"content", "detectMd5hash", "sourceMd5hash"} & set(changed):
            self._upload(planned)
        if held := {name: bool(planned.get(name)) for name in ("eventBasedHold", "temporaryHold") if name in changed}:
            try:
                self.call("PATCH", self._path(planned), GO_CLIENT, held)
            except GoogleError as error:
                raise ProviderError(f"Error updating object {planned['name']}: {error}") from None
        return self.expect(resource_id, planned)

    def delete(self, resource_id: str, known: Mapping[str, Any]) -> None:
        """Delete the object."""
        del resource_id
        self._delete("DELETE", self._path(known), GO_CLIENT)

    def _path(self, values: Mapping[str, Any]) -> str:
        return f"b/{values['bucket']}/o/{quote(str(values['name']), safe='')}"

    def _upload(self, planned: Mapping[str, Any]) -> None:
        content = _content(planned) or b""
        name = str(planned["name"])
        stated = planned.get("contentType")
        guessed = mimetypes.guess_type(name)[0] or "application/octet-stream"
        kind = (
            stated if stated and not unknown(stated) else "text/plain; charset=utf-8" if _is_text(content) else guessed
        )
        sent = {key: value for key, value in self.body(planned).items() if key not in ("name", "contentType")}
        if stated and not unknown(stated):
            sent["contentType"] = stated
        mark = secrets.token_hex(30)
        data = (
            (
                f"--{mark}\r\nContent-Type: application/json\r\n\r\n{json.dumps(sent)}\r\n"
                f"--{mark}\r\nContent-Type: {kind}\r\n\r\n"
            ).encode()
            + content
            + f"\r\n--{mark}--\r\n".encode()
        )
        query = {**GO_CLIENT, "name": name, "uploadType": "multipart"}
        try:
            self.cloud.upload(
                f"b/{planned['bucket']}/o", query, data, f"multipart/related; boundary={mark}", until=self.until
            )
        except GoogleError as error:
            raise ProviderError(f"Error uploading object {name}: {error}") from None


def _content(values: Mapping[str, Any]) -> bytes | None:
    """The bytes to upload, or None where they are not known (yet)."""
    source, content = values.get("source"), values.get("content")
    if isinstance(source, Mapping):
        content = source.get("text", content)
        source = source.get("path")
    if isinstance(content, str) and not unknown(content):
        return content.encode()
    if isinstance(source, str) and not unknown(source):
        try:
            return Path(source).read_bytes()
        except OSError as error:
            raise ProviderError(
                f"{source} cannot be uploaded: {error.strerror}. Correct the object's source."
            ) from None
    return None


def _is_text(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return b"\0" not in content


def _md5(content: bytes) -> bytes:
    return md5(content, usedforsecurity=False).digest()


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
    ResourceType(
        pulumi_type="gcp:storage/bucketObject:BucketObject",
        title="object",
        api="STORAGE",
        id="{bucket}-{name}",
        path="b/{bucket}/o/{name}",
        query=GO_CLIENT,
        fields=_OBJECT_FIELDS,
        autoname="name",
        longest=1024,
        operations=Object,
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
