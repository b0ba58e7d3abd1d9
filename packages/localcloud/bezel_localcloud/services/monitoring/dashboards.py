"""Monitoring v1: projects.dashboards, stored and shown. Their charts draw nothing; their PromQL must be queries."""

import re
import uuid

from bezel_localcloud.core.errors import ApiError, invalid
from bezel_localcloud.core.json_types import Json
from bezel_localcloud.core.paths import PROJECT_NUMBER
from bezel_localcloud.routing.router import Api, Call
from bezel_localcloud.services.monitoring.numbered import by_id
from bezel_localcloud.services.monitoring.written_metrics.alert_queries import dashboard_query_problems

api = Api("monitoring.googleapis.com", "Cloud Monitoring API")
KIND = "dashboard"
_ROOT = "/monitoring/v1/projects/{project:id}/dashboards"
_ONE = _ROOT + "/{dashboard:id}"
_LAYOUTS = ("gridLayout", "mosaicLayout", "rowLayout", "columnLayout")
_ID = re.compile(r"[A-Za-z0-9-]{1,64}")
_MOST_COLUMNS = 48


@api.route("POST", _ROOT, needs="monitoring.dashboards.create", query="validateOnly")
def create(call: Call) -> Json:
    """Create a dashboard, with the id of its name or one that Google chooses; names have the project's number."""
    store = call.cloud.store
    dashboard = _settable_fields(call.body)
    with store.transaction():
        sent_name = by_id(str(call.body.get("name", "")))
        parent, _, dashboard_id = sent_name.rpartition("/")
        if sent_name and (parent != call.name("projects/{project}/dashboards") or not _ID.fullmatch(dashboard_id)):
            raise invalid(
                f"Field name had an invalid value of {sent_name!r}.", ("name", "expected a dashboard of this project")
            )
        name = f"projects/{PROJECT_NUMBER}/dashboards/{dashboard_id or uuid.uuid4()}"
        if store.get(KIND, name) is not None:
            raise ApiError("ALREADY_EXISTS", f"Dashboard {name} already exists.")
        return _store(call, dashboard | {"name": name})


@api.route("GET", _ROOT, needs="monitoring.dashboards.list", query="pageSize pageToken")
def list_dashboards(call: Call) -> Json:
    """Dashboards of the project."""
    return call.page(call.cloud.store.rows(KIND), "dashboards")


@api.route("GET", _ONE, needs="monitoring.dashboards.get")
def get(call: Call) -> Json:
    """One dashboard."""
    return _dashboard(call)


@api.route("PATCH", _ONE, needs="monitoring.dashboards.update", query="validateOnly")
def patch(call: Call) -> Json:
    """Replace a dashboard; an etag in the body must be the current one."""
    with call.cloud.store.transaction():
        old = _dashboard(call)
        if call.body.get("etag", "") not in {"", old["etag"]}:
            raise ApiError("ABORTED", "Etag mismatch: the dashboard was changed concurrently. Read it again.")
        return _store(call, _settable_fields(call.body) | {"name": old["name"]})


@api.route("DELETE", _ONE, needs="monitoring.dashboards.delete")
def delete(call: Call) -> Json:
    """Delete a dashboard."""
    with call.cloud.store.transaction():
        call.cloud.store.delete(KIND, _dashboard(call)["name"])
    return {}


def _dashboard(call: Call) -> Json:
    name = f"projects/{PROJECT_NUMBER}/dashboards/{call.param('dashboard')}"
    return call.row_of(KIND, name, f"Requested entity was not found: dashboard {name}")


def _store(call: Call, dashboard: Json) -> Json:
    dashboard = dashboard | {"etag": f"{call.cloud.store.next_number('dashboard-etag'):032x}"}
    if not call.flag("validateOnly"):
        call.cloud.store.put(KIND, dashboard["name"], dashboard)
    return dashboard


def _settable_fields(body: Json) -> Json:
    """The settable part of a dashboard.

    Raises:
        ApiError: INVALID_ARGUMENT.
    """
    if not body.get("displayName"):
        raise invalid("Field displayName must not be empty.", ("display_name", "is required"))
    layouts = [layout for layout in _LAYOUTS if body.get(layout) is not None]
    if len(layouts) > 1:
        raise invalid(f"A dashboard has one layout: {', '.join(layouts)} are set.", ("layout", "is set twice"))
    mosaic = body.get("mosaicLayout") or {}
    columns, tiles = mosaic.get("columns", 0), mosaic.get("tiles") or []
    if tiles and not 1 <= columns <= _MOST_COLUMNS:
        raise invalid(
            f"Field mosaicLayout.columns must be 1 to {_MOST_COLUMNS}.", ("mosaic_layout.columns", str(columns))
        )
    for index, tile in enumerate(tiles):
        if tile.get("xPos", 0) + tile.get("width", 0) > columns or min(tile.get("width", 0), tile.get("height", 0)) < 1:
            where = f"mosaicLayout.tiles[{index}]"
            raise invalid(f"Field {where} does not fit into {columns} columns.", (where, "has no place"))
    if problems := list(dashboard_query_problems(body)):
        lines = "; ".join(f"Field {where} had an invalid value: {why}" for where, why in problems)
        raise invalid(f"{lines}.", *problems)
    return {key: value for key, value in body.items() if key not in {"name", "etag"} and value not in ("", None)}
