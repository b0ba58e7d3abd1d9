"""Logging v2: entries.list and entries.write."""

import asyncio
import math

from bezel_localcloud.access.permissions import PROJECT_NAME
from bezel_localcloud.core.decimal_text import decimal
from bezel_localcloud.core.errors import ApiError, NotServedError, invalid, permission_denied
from bezel_localcloud.core.json_types import Json
from bezel_localcloud.core.paths import PROJECT_NUMBER
from bezel_localcloud.core.store import Store
from bezel_localcloud.core.work import TooMuchWorkError, Work
from bezel_localcloud.http.paging import bad_page_token, open_token, seal_token
from bezel_localcloud.routing.router import Api, Call
from bezel_localcloud.services.logging.filters import MOST_STEPS, Filter, parse_filter
from bezel_localcloud.services.logging.written import (
    CREATE,
    check_shared,
    is_kept,
    partial_error,
    time_of,
    written_entry,
)

api = Api("logging.googleapis.com", "Cloud Logging API")
_MAX_PAGE = 1000
_SLICE = 500  # entries read at once
_WRITTEN_AT_ONCE = 50
Entries = list[tuple[float, Json]]  # Unix seconds, and the entry as it is stored
# Steps before other requests get their turn, and those of one request.
_TURN, _REQUEST = 20_000, 2_000_000
_STEPS_OF_AN_ENTRY = 10  # to read it from the store
# Entries show times rounded to microseconds: without this margin a time bound of the filter could lose an entry.
_ROUNDING = 1e-5


@api.route("POST", "/logging/v2/entries:list", needs="logging.logEntries.list", on=PROJECT_NAME)
async def list_entries(call: Call) -> Json:
    """Return the entries that match a filter, in order of time.

    Reads the whole log if necessary (the store keeps the last 50,000 entries), but yields regularly. A search that
    takes too much work ends with what it has found so far, none perhaps, and a token to continue with, as Google's.
    """
    body = call.body
    names = body.get("resourceNames") or []
    if body.get("projectIds"):
        raise NotServedError("localcloud does not serve project_ids (deprecated): use resource_names.")
    if not names:
        raise invalid("At least one resource name is required.", ("resource_names", "is required"))
    for name in names:
        if name not in {PROJECT_NAME, f"projects/{PROJECT_NUMBER}"}:
            raise permission_denied("logging.logEntries.list", name)
    order = body.get("orderBy") or "timestamp asc"
    if order not in {"timestamp asc", "timestamp desc"}:
        raise invalid(f"Unsupported order: {order}", ("order_by", "timestamp asc or timestamp desc"))
    size = body.get("pageSize", 0)
    if size < 0:
        raise invalid(f"page_size {size} is negative.", ("page_size", "must not be negative"))
    return await _page(call, newest_first=order.endswith("desc"), size=min(size or 50, _MAX_PAGE))


@api.route("POST", "/logging/v2/entries:write", needs=CREATE, on=PROJECT_NAME)
async def write_entries(call: Call) -> Json:
    """Store entries; one with the time and the id of an earlier one is that one, sent again."""
    body, now = call.body, call.cloud.pace.now()
    if not body.get("entries"):
        raise invalid("At least one log entry is required.", ("entries", "is required"))
    check_shared(body)
    entries: Entries = []
    errors: dict[int, ApiError] = {}
    for index, sent in enumerate(body["entries"]):
        try:
            entries.append((time_of(sent, now), written_entry(sent, body, now)))
        except ApiError as error:
            if not body.get("partialSuccess"):
                raise
            errors[index] = error
        if index % _WRITTEN_AT_ONCE == _WRITTEN_AT_ONCE - 1:
            await asyncio.sleep(0)
    if not body.get("dryRun"):
        kept = [entry for entry in entries if is_kept(entry[0], now)]
        for begin in range(0, len(kept), _WRITTEN_AT_ONCE):
            _store(call.cloud.store, kept[begin : begin + _WRITTEN_AT_ONCE])
            await asyncio.sleep(0)
    if errors:
        raise partial_error(errors)
    return {}


def _store(store: Store, entries: Entries) -> None:
    """Store those of some entries that are not stored already."""
    with store.transaction():
        new: dict[tuple[float, str], Json] = {}
        for time, entry in entries:
            if (time, entry["insertId"]) not in new and not store.has_log(time, entry["insertId"]):
                new[time, entry["insertId"]] = entry
        store.add_log([(time, entry) for (time, _), entry in new.items()])


async def _page(call: Call, *, newest_first: bool, size: int) -> Json:
    text = call.body.get("filter", "")
    query, owner = parse_filter(text), f"entries {text} {newest_first}"
    after = _position(open_token(call.body.get("pageToken", ""), owner))
    since = None if query.since is None else query.since - _ROUNDING
    until = None if query.until is None else query.until + _ROUNDING
    entries: list[Json] = []
    token, spent, turn = "", 0, 0
    while True:
        rows = call.cloud.store.log_slice(
            newest_first=newest_first, after=after, since=since, until=until, limit=_SLICE
        )
        for position, entry in rows:
            if spent > _REQUEST:
                return ({"entries": entries} if entries else {}) | {"nextPageToken": _seal_position(after, owner)}
            after = position
            holds, steps = _holds(query, entry)
            spent, turn = spent + steps, turn + steps
            if turn > _TURN:
                turn = 0
                await asyncio.sleep(0)
            if not holds:
                continue
            if len(entries) == size:
                return {"entries": entries, "nextPageToken": token}
            entries.append(entry)
            token = _seal_position(position, owner)
        if len(rows) < _SLICE:
            return {"entries": entries} if entries else {}
        await asyncio.sleep(0)


def _holds(query: Filter, entry: Json) -> tuple[bool, int]:
    """(Whether an entry matches, steps that it took).

    Raises:
        ApiError: INVALID_ARGUMENT where it would take too many.
    """
    work = Work(MOST_STEPS)
    try:
        return query.holds(entry, work), work.spent + _STEPS_OF_AN_ENTRY
    except TooMuchWorkError as error:
        text = f"localcloud does not finish this filter on one log entry: {error}. Compare fewer or shorter fields."
        raise invalid(text, ("filter", str(error))) from None


def _seal_position(position: tuple[float, int] | None, owner: str) -> str:
    return seal_token(f"{position[0]!r} {position[1]}", owner) if position else ""


def _position(key: str) -> tuple[float, int] | None:
    """The place in the log that a page token holds; a client can write a token by itself.

    Raises:
        ApiError: INVALID_ARGUMENT.
    """
    if not key:
        return None
    text, _, identifier = key.partition(" ")
    number = decimal(identifier)
    try:
        time = float(text)
    except ValueError:
        time = math.nan
    if number is None or not math.isfinite(time):
        raise bad_page_token()
    return time, number
