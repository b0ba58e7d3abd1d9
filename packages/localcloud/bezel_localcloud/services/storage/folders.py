"""Folders and managed folders of buckets: none, as in a bucket without a hierarchical namespace.

Clients list them before they delete a bucket's objects. Leaves out what creates one, which is not served.
"""

from bezel_localcloud.core.json_types import Json
from bezel_localcloud.routing.router import Call
from bezel_localcloud.services.storage.api import BUCKET, POLICY, api, bucket_of

_LISTED = "prefix pageSize pageToken"
_OF_FOLDERS = f"{_LISTED} delimiter startOffset endOffset"


@api.route("GET", BUCKET + "/folders", needs="storage.folders.list", on=POLICY, query=_OF_FOLDERS)
def list_folders(call: Call) -> Json:
    """Folders of a bucket: none."""
    return _none(call, "storage#folders")


@api.route("GET", BUCKET + "/managedFolders", needs="storage.managedFolders.list", on=POLICY, query=_LISTED)
def list_managed_folders(call: Call) -> Json:
    """Managed folders of a bucket: none."""
    return _none(call, "storage#managedFolders")


def _none(call: Call, kind: str) -> Json:
    bucket_of(call)
    return {"kind": kind} | call.page([], "items")
