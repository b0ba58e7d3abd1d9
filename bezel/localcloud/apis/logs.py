"""Logging v2: entries.list."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bezel.localcloud.access import PROJECT_NAME
from bezel.localcloud.api import Api
from bezel.localcloud.errors import ApiError, invalid, permission_denied
from bezel.localcloud.filters import parse_filter
from bezel.localcloud.layout import PROJECT_NUMBER

if TYPE_CHECKING:
    from bezel.localcloud.api import Call
    from bezel.localcloud.filters import Term
    from bezel.localcloud.shapes import Json

api = Api("logging.googleapis.com", "Cloud Logging API")
_MAX_PAGE = 1000


@api.route("POST", "/logging/v2/entries:list", needs="logging.logEntries.list", on=PROJECT_NAME)
def list_entries(call: Call) -> Json:
    """Entries that fulfil a filter, in order of time."""
    body = call.body
    names = body.get("resourceNames") or []
    if not names:
        raise invalid("At least one resource name is required.", ("resource_names", "is required"))
    for name in names:
        if name not in {PROJECT_NAME, f"projects/{PROJECT_NUMBER}"}:
            raise permission_denied("logging.logEntries.list", name)
    order = body.get("orderBy") or "timestamp asc"
    if order not in {"timestamp asc", "timestamp desc", "timestamp"}:
        raise invalid(f"Unsupported order: {order}", ("order_by", "timestamp asc or timestamp desc"))
    size = min(int(body.get("pageSize") or 50), _MAX_PAGE)
    return _page(
        call,
        parse_filter(body.get("filter", "")),
        newest_first=order.endswith("desc"),
        size=size,
        token=body.get("pageToken", ""),
    )


def _page(call: Call, terms: list[Term], *, newest_first: bool, size: int, token: str) -> Json:
    if token and not token.isdigit():
        raise ApiError("INVALID_ARGUMENT", "page_token is not one that this method gave out.")
    after = int(token or 0)
    entries: list[Json] = []
    last = 0
    for identifier, entry in call.cloud.store.log(newest_first=newest_first):
        if after and (identifier >= after if newest_first else identifier <= after):
            continue
        if not all(term.holds(entry) for term in terms):
            continue
        if len(entries) == size:
            return {"entries": entries, "nextPageToken": str(last)}
        entries.append(entry)
        last = identifier
    return {"entries": entries} if entries else {}
