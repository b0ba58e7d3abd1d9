"""Generations of objects: a new one supersedes the live one, which its bucket keeps, keeps for a while, or drops.

With object versioning, a superseded or deleted live object becomes a noncurrent one. What is deleted for good stays
restorable for the time of the bucket's soft delete policy, as far as `_KEPT_BYTES` go.
"""

from contextlib import AbstractContextManager
from typing import NamedTuple

from bezel_localcloud.core.files.checksums import Upload
from bezel_localcloud.core.files.objects import LIVE, NONCURRENT, SOFT_DELETED
from bezel_localcloud.core.json_types import Json, b64, timestamp
from bezel_localcloud.routing.context import Context
from bezel_localcloud.services.storage.api import ASIDE, resource_of
from bezel_localcloud.services.storage.encryption.customer_keys import LOCK_FIELDS
from bezel_localcloud.services.storage.objects.retention import check_unprotected, seconds

# Bytes of soft-deleted objects that localcloud keeps; beyond them the oldest are purged before their time. Google keeps
# all of them, on disks of its own.
_KEPT_BYTES = 256 << 20
# Settings of the store: the last generation that was given to an object, and the room that soft-deleted ones take.
_LAST, _KEPT = "generation", "softDeletedBytes"


class Placed(NamedTuple):
    """Content and description of a new generation.

    Attributes:
        upload: Its bytes.
        fields: Fields that the writer set.
        components: Number of joined objects, 0 for an object that was written as one.
        lock: Fields that only an object encrypted with a customer's key has.
    """

    upload: Upload
    fields: Json
    components: int = 0
    lock: Json | None = None


class Generations:
    """The objects of one bucket."""

    def __init__(self, cloud: Context, bucket: Json) -> None:
        self._cloud = cloud
        self._bucket = bucket
        self._store = cloud.store
        self._now = cloud.pace.now()

    def changing(self, *names: str) -> AbstractContextManager[list[Json]]:
        """A transaction that changes objects; the list that it yields goes to `place` and `delete`."""
        return self._cloud.objects.transaction(self._bucket["name"], *names)

    def live(self, name: str) -> Json | None:
        """The live object of a name."""
        return self._store.get(LIVE, f"{self._bucket['name']}/{name}")

    def find(self, name: str, generation: str = "") -> Json | None:
        """The live object of a name, or the generation that is asked for."""
        row = self.live(name)
        if generation in {"", (row or {}).get("generation")}:
            return row
        return self._store.get(NONCURRENT, self._key(name, generation))

    def soft_deleted(self, name: str, generation: str) -> Json | None:
        """A soft-deleted generation."""
        with self.changing() as dropped:
            self.purge(dropped)
        return self._store.get(SOFT_DELETED, self._key(name, generation))

    def is_live(self, row: Json) -> bool:
        """Whether a generation is the live one."""
        return bool((self.live(row["name"]) or {}).get("generation") == row["generation"])

    def place(self, name: str, placed: Placed, dropped: list[Json]) -> Json:
        """Make an upload the live object of a name and return its row."""
        previous = self.live(name)
        self._forget_policy(name)
        check_unprotected(self._bucket, previous, self._now)
        if previous:
            self._supersede(previous, dropped)
        now, upload = timestamp(self._now), placed.upload
        row = {
            "kind": "storage#object",
            "name": name,
            "bucket": self._bucket["name"],
            "generation": next_generation(self._cloud),
            "metageneration": "1",
            "size": str(upload.size),
            "timeCreated": now,
            "updated": now,
            "timeStorageClassUpdated": now,
            "timeFinalized": now,
        }
        row |= placed.lock or {"crc32c": upload.crc32c} | ({"md5Hash": upload.md5} if upload.md5 else {})
        row |= {"componentCount": placed.components} if placed.components else {}
        row |= placed.fields | self._cloud.objects.adopt(upload)
        return self._put(row)

    def describe(self, row: Json) -> Json:
        """Store changed metadata of a generation and return its row."""
        row["metageneration"] = str(int(row["metageneration"]) + 1)
        row["updated"] = timestamp(self._now)
        if not self.is_live(row):
            row["etag"] = _etag(row)
            self._store.put(NONCURRENT, self._key(row["name"], row["generation"]), row)
            return row
        return self._put(row)

    def delete(self, row: Json, dropped: list[Json], *, exactly: bool) -> None:
        """Delete a generation; a live one of a bucket with versions becomes noncurrent unless it was named exactly."""
        check_unprotected(self._bucket, row, self._now)
        if not self.is_live(row):
            self._store.delete(NONCURRENT, self._key(row["name"], row["generation"]))
            self._drop(row, dropped)
            return
        self._store.delete(LIVE, f"{self._bucket['name']}/{row['name']}")
        self._forget_policy(row["name"])
        if exactly:
            self._drop(row, dropped)
        else:
            self._supersede(row, dropped)

    def restore(self, row: Json, dropped: list[Json]) -> Json:
        """Make a soft-deleted generation the live object again, as a new generation."""
        copied = {key: value for key, value in row.items() if key not in {"softDeleteTime", "hardDeleteTime"}}
        upload = self._cloud.objects.copy(row)
        own_fields = {"generation", "metageneration", "etag", "timeCreated", "updated", "timeDeleted", "timeFinalized"}
        fields = {key: value for key, value in copied.items() if key not in own_fields and not key.startswith("_")}
        lock = {key: row[key] for key in LOCK_FIELDS if key in row}
        return self.place(row["name"], Placed(upload, fields, lock=lock), dropped)

    def purge(self, dropped: list[Json]) -> None:
        """Delete the soft-deleted objects whose time has come, and the oldest ones beyond what localcloud keeps."""
        rows = sorted(self._store.rows(SOFT_DELETED), key=lambda item: str(item[1]["softDeleteTime"]), reverse=True)
        kept = 0
        for name, row in rows:
            if kept + _room(row) > _KEPT_BYTES or seconds(row["hardDeleteTime"]) <= self._now:
                self._store.delete(SOFT_DELETED, name)
                dropped.append(row)
            else:
                kept += _room(row)
        self._store.set_setting(_KEPT, str(kept))

    def _supersede(self, row: Json, dropped: list[Json]) -> None:
        if (self._bucket.get("versioning") or {}).get("enabled"):
            row = row | {"timeDeleted": timestamp(self._now)}
            self._store.put(NONCURRENT, self._key(row["name"], row["generation"]), row)
        else:
            self._drop(row, dropped)

    def _drop(self, row: Json, dropped: list[Json]) -> None:
        kept = int((self._bucket.get("softDeletePolicy") or {}).get("retentionDurationSeconds") or 0)
        if not kept or int(row["size"]) > _KEPT_BYTES:
            dropped.append(row)
            return
        times = {"softDeleteTime": timestamp(self._now), "hardDeleteTime": timestamp(self._now + kept)}
        self._store.put(SOFT_DELETED, self._key(row["name"], row["generation"]), row | times)
        total = int(self._store.setting(_KEPT) or 0) + _room(row)
        self._store.set_setting(_KEPT, str(total))
        if total > _KEPT_BYTES:
            self.purge(dropped)

    def _forget_policy(self, name: str) -> None:
        """Delete the policy of a live object, which ends with its generation."""
        for aside in ("", ASIDE):
            self._store.delete_policy(aside + resource_of(self._bucket["name"], name))

    def _put(self, row: Json) -> Json:
        row["etag"] = _etag(row)
        self._store.put(LIVE, f"{self._bucket['name']}/{row['name']}", row)
        return row

    def _key(self, name: str, generation: str) -> str:
        return f"{self._bucket['name']}/{name}\n{generation:0>20}"  # no name has a line break


def next_generation(cloud: Context) -> str:
    """A generation, of a bucket or of an object, larger than every earlier one."""
    number = max(int(cloud.pace.now() * 1_000_000), int(cloud.store.setting(_LAST) or 0) + 1)
    cloud.store.set_setting(_LAST, str(number))
    return str(number)


def _room(row: Json) -> int:
    return int(row["size"]) + 4096  # a block for the file, and its row


def _etag(row: Json) -> str:
    return b64(f"{int(row['generation']):x}/{row['metageneration']}".encode())
