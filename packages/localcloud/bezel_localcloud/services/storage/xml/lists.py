"""Lists of the XML API: the project's buckets, and the objects of a bucket in both versions of the list."""

import base64
from urllib.parse import quote

from starlette.responses import Response

from bezel_localcloud.core.decimal_text import decimal
from bezel_localcloud.core.errors import invalid
from bezel_localcloud.core.json_types import Json
from bezel_localcloud.core.paths import PROJECT, PROJECT_NUMBER
from bezel_localcloud.http.paging import open_token, seal_token
from bezel_localcloud.routing.router import Call
from bezel_localcloud.services.storage.api import POLICY, bucket_of
from bezel_localcloud.services.storage.objects.listing import CURRENT, VERSIONS, Page, Query, page
from bezel_localcloud.services.storage.xml.documents import Node, document

_MOST = 1000
_LIST = "xml"


def list_buckets(call: Call) -> Response:
    """The project's buckets."""
    call.require("storage.buckets.list", f"projects/{PROJECT}")
    rows = [row for _, row in call.cloud.store.rows("bucket")]
    buckets: list[Node] = [("Bucket", [("Name", row["name"]), ("CreationDate", row["timeCreated"])]) for row in rows]
    return document("ListAllMyBucketsResult", [("Owner", [("ID", PROJECT_NUMBER)]), ("Buckets", buckets)])


def list_objects(call: Call) -> Response:
    """Objects of a bucket, by `marker` or, with list-type=2, by `continuation-token`."""
    bucket, asked = bucket_of(call)["name"], call.request.query_params
    call.require("storage.objects.list", POLICY.format(bucket=bucket))
    second, versions = asked.get("list-type") == "2", "versions" in asked
    size = asked.get("max-keys") or str(_MOST)
    most = decimal(size)
    if most is None:
        raise invalid(f"max-keys {size[:50]!r} is not a positive integer.", ("max-keys", size))
    kinds = VERSIONS if versions else CURRENT
    query = Query(asked.get("prefix", ""), asked.get("delimiter", ""), kinds=kinds)
    token, after = asked.get("continuation-token", ""), asked.get("start-after" if second else "marker", "")
    key = (
        open_token(token, _LIST)
        if token
        else _behind(after, asked.get("version-id-marker" if second else "generation-marker", ""))
    )
    shown = page(call.cloud.store, bucket, query, min(most, _MOST), key) if most else Page([], [])
    encoded = asked.get("encoding-type") == "url"

    def name_of(name: str) -> str:
        return quote(name, safe="/~") if encoded else name

    nodes: list[Node] = [("Name", bucket), ("Prefix", name_of(query.prefix))]
    nodes += [("StartAfter" if second else "Marker", name_of(after))]
    nodes += [("Delimiter", name_of(query.delimiter))] if query.delimiter else []
    nodes += [("EncodingType", "url")] if encoded else []
    nodes += [("MaxKeys", size), ("IsTruncated", str(bool(shown.after)).lower())]
    if shown.after:
        last = name_of(shown.after.partition("\n")[0])
        nodes += [("NextContinuationToken", seal_token(shown.after, _LIST))] if second else [("NextMarker", last)]
    if second:
        nodes += [("KeyCount", str(len(shown.items) + len(shown.prefixes)))]
    nodes += [
        ("Version" if versions else "Contents", _item(row, name_of(row["name"]), versions)) for row in shown.items
    ]
    nodes += [("CommonPrefixes", [("Prefix", name_of(prefix))]) for prefix in shown.prefixes]
    return document("ListBucketResult", nodes)


def quoted_etag(row: Json) -> str:
    """The etag of the XML API: the MD5 in hexadecimal, or for joined contents a mark of the generation."""
    if row.get("md5Hash"):
        return f'"{base64.b64decode(row["md5Hash"]).hex()}"'
    return f'"-{base64.b64encode(row["etag"].encode()).decode()}"'


def _item(row: Json, name: str, versions: bool) -> list[Node]:
    item: list[Node] = [
        ("Key", name),
        ("Generation", row["generation"]),
        ("MetaGeneration", row["metageneration"]),
        ("LastModified", row["updated"]),
        ("ETag", quoted_etag(row)),
        ("Size", row["size"]),
        ("StorageClass", row["storageClass"]),
    ]
    if versions:
        item += [("IsLatest", str("timeDeleted" not in row).lower())]
        item += [("DeletedTime", row["timeDeleted"])] if "timeDeleted" in row else []
    return item


def _behind(name: str, generation: str) -> str:
    """The key of a list behind all generations of a name, or behind one of them."""
    return f"{name}\n{generation:0>20}" if generation else f"{name}\n:" if name else ""  # ":" sorts after all digits
