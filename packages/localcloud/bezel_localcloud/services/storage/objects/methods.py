"""Objects read, listed, described, deleted and restored; uploads are in uploads/, copies in copies.py."""

from starlette.responses import Response

from bezel_localcloud.core.errors import invalid
from bezel_localcloud.core.json_types import Json, timestamp
from bezel_localcloud.http.paging import open_token, seal_token
from bezel_localcloud.routing.router import Call
from bezel_localcloud.services.storage.api import BUCKET, OBJECT, OBJECT_NAME, OF_OBJECTS, POLICY, api, bucket_of
from bezel_localcloud.services.storage.conditions import check_etags, check_preconditions
from bezel_localcloud.services.storage.encryption.customer_keys import key_of, unlock
from bezel_localcloud.services.storage.encryption.kms_keys import check_readable
from bezel_localcloud.services.storage.objects.content import describing_headers, download
from bezel_localcloud.services.storage.objects.contexts import with_contexts
from bezel_localcloud.services.storage.objects.generations import Generations
from bezel_localcloud.services.storage.objects.listing import CURRENT, DELETED, VERSIONS, Query, page
from bezel_localcloud.services.storage.objects.metadata import changed_fields, no_such_object, object_json
from bezel_localcloud.services.storage.objects.retention import check_retention

_ONE = f"generation {OF_OBJECTS}"
_LISTED = (
    "prefix delimiter startOffset endOffset includeTrailingDelimiter includeFoldersAsPrefixes matchGlob versions "
    "softDeleted filter maxResults pageToken"
)
_MOST = 1000  # entries of a page


@api.route("GET", BUCKET + "/o", needs="storage.objects.list", on=POLICY, query=_LISTED)
def list_objects(call: Call) -> Json:
    """Objects by prefix; with a delimiter, names below it are folded into `prefixes`."""
    bucket, size = bucket_of(call), int(call.query("maxResults") or 0)
    if size < 0:
        raise invalid(f"maxResults {size} is negative.", ("max_results", "< 0"))
    if call.flag("versions") and call.flag("softDeleted"):
        raise invalid("versions and softDeleted cannot both be set.", ("softDeleted", "with versions"))
    query = Query(
        prefix=call.query("prefix"),
        delimiter=call.query("delimiter"),
        start=call.query("startOffset"),
        end=call.query("endOffset"),
        trailing=call.flag("includeTrailingDelimiter"),
        pattern=call.query("matchGlob"),
        contexts=call.query("filter"),
        kinds=VERSIONS if call.flag("versions") else DELETED if call.flag("softDeleted") else CURRENT,
    )
    if query.pattern and query.delimiter not in {"", "/"}:
        raise invalid("With matchGlob, the delimiter must be '/'.", ("delimiter", query.delimiter))
    if call.flag("softDeleted"):
        generations = Generations(call.cloud, bucket)
        with generations.changing() as dropped:
            generations.purge(dropped)
    path = call.request.url.path
    shown = page(
        call.cloud.store, bucket["name"], query, min(size or _MOST, _MOST), open_token(call.query("pageToken"), path)
    )
    fields = {
        "items": [object_json(call, row) for row in shown.items],
        "prefixes": shown.prefixes,
        "nextPageToken": seal_token(shown.after, path) if shown.after else "",
    }
    return {"kind": "storage#objects"} | {key: value for key, value in fields.items() if value}


@api.route("GET", OBJECT, needs="storage.objects.get", on=OBJECT_NAME, query=f"softDeleted {_ONE}")
@api.route("GET", "/download" + OBJECT, needs="storage.objects.get", on=OBJECT_NAME, query=_ONE)
def get_object(call: Call) -> Json | Response:
    """An object's metadata, or with alt=media its bytes (ranges too)."""
    row = find_object(call)
    check_preconditions(call.arguments, row, reads=True)
    check_etags(call.request.headers, row["etag"], reads=True)
    key = key_of(call.request.headers)
    if call.query("alt") == "media" or call.request.scope["path"].startswith("/download/"):
        check_readable(call.cloud, row)
        row, cipher = unlock(row, key)
        return download(call, row, describing_headers(row, row["etag"]), cipher)
    return object_json(call, unlock(row, key)[0] if key else row)


@api.route("PATCH", OBJECT, needs="storage.objects.update", on=OBJECT_NAME, query=f"overrideUnlockedRetention {_ONE}")
def patch_object(call: Call) -> Json:
    """Merge into an object's metadata; null removes."""
    return _change(call, replaces=False)


@api.route("PUT", OBJECT, needs="storage.objects.update", on=OBJECT_NAME, query=f"overrideUnlockedRetention {_ONE}")
def update_object(call: Call) -> Json:
    """Replace an object's metadata."""
    return _change(call, replaces=True)


@api.route("DELETE", OBJECT, needs="storage.objects.delete", on=OBJECT_NAME, query=_ONE)
def delete_object(call: Call) -> Response:
    """Delete an object, or one generation of it."""
    bucket, row = bucket_of(call), find_object(call)
    check_preconditions(call.arguments, row)
    check_etags(call.request.headers, row["etag"], reads=False)
    generations = Generations(call.cloud, bucket)
    with generations.changing(row["name"]) as dropped:
        generations.delete(row, dropped, exactly=bool(call.query("generation")))
    return Response(status_code=204)


@api.route("POST", OBJECT + "/restore", needs="storage.objects.restore", on=OBJECT_NAME, query=_ONE)
def restore_object(call: Call) -> Json:
    """Make a soft-deleted generation the live object again."""
    generations = Generations(call.cloud, bucket_of(call))
    row = generations.soft_deleted(call.param("object"), call.query("generation"))
    if row is None:
        raise no_such_object(call.param("bucket"), call.param("object"))
    call.require("storage.objects.create", call.name(OBJECT_NAME))
    check_preconditions(call.arguments, generations.live(row["name"]))
    with generations.changing(row["name"]) as dropped:
        restored = generations.restore(row, dropped)
    return object_json(call, restored)


def find_object(call: Call) -> Json:
    """Return the object of the path, live, or of the generation that the query names.

    Raises:
        ApiError: NOT_FOUND.
    """
    generations, name = Generations(call.cloud, bucket_of(call)), call.param("object")
    if call.flag("softDeleted"):
        if not call.query("generation"):
            raise invalid("A soft-deleted object is read by its generation.", ("generation", "is required"))
        row = generations.soft_deleted(name, call.query("generation"))
    else:
        row = generations.find(name, call.query("generation"))
    if row is None:
        raise no_such_object(call.param("bucket"), name)
    return row


def _change(call: Call, *, replaces: bool) -> Json:
    with call.cloud.store.transaction():
        bucket, row = bucket_of(call), find_object(call)
        check_preconditions(call.arguments, row)
        check_etags(call.request.headers, row["etag"], reads=False)
        now = call.cloud.pace.now()
        changed, needed = with_contexts(row, changed_fields(row, call.body, replaces=replaces), timestamp(now))
        for permission in needed:
            call.require(permission, call.name(OBJECT_NAME))
        if (row.get("retention") or {}) != (changed.get("retention") or {}):
            call.require("storage.objects.setRetention", call.name(OBJECT_NAME))
            check_retention(bucket, row, changed, now, override=call.flag("overrideUnlockedRetention"))
        if row.get("eventBasedHold") and not changed.get("eventBasedHold"):
            changed["_released"] = timestamp(now)  # the bucket's retention period begins again
        return object_json(call, Generations(call.cloud, bucket).describe(changed))
