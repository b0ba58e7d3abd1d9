"""Cloud Run v2: services, revisions, policies and operations. Leaves out their instances: see runtime/controller.py."""

from bezel_localcloud.core.errors import ApiError, invalid, refuse_unserved
from bezel_localcloud.core.json_types import Json, seconds_of, timestamp, without_zeros
from bezel_localcloud.core.regions import regions
from bezel_localcloud.http.messages import settable_fields
from bezel_localcloud.http.paging import newest_first
from bezel_localcloud.http.update_mask import apply_mask
from bezel_localcloud.routing.context import Context
from bezel_localcloud.routing.iam_policies import serve_policy
from bezel_localcloud.routing.operations_api import serve_operations
from bezel_localcloud.routing.router import Api, Call
from bezel_localcloud.services.cloud_quotas.in_force import value_in
from bezel_localcloud.services.cloud_run import resources, status
from bezel_localcloud.services.cloud_run.checks import violations
from bezel_localcloud.services.cloud_run.egress import egress_violations
from bezel_localcloud.services.cloud_run.quotas import Granted

api = Api(
    "run.googleapis.com",
    "Cloud Run Admin API",
    locations=regions(),
    unserved_locations={"global": "services of several regions"},
)
_SERVICES = resources.LOCATION + "/services"
_SERVICE = _SERVICES + "/{service:id}"
_NAME = resources.PARENT + "/services/{service}"
_DELETE_SECONDS = 5.0  # of the platform's time
_CHANGES = "updateMask validateOnly allowMissing forceNewRevision"
_ALL_TO_LATEST = [{"type": status.LATEST, "percent": 100}]
_DEFAULTS = {"ingress": "INGRESS_TRAFFIC_ALL", "launchStage": "GA", "traffic": _ALL_TO_LATEST}
_MESSAGE = "run.GoogleCloudRunV2Service"
_UNSERVED = frozenset({"multiRegionSettings", "tags"})


@api.route("POST", _SERVICES, needs="run.services.create", query="serviceId validateOnly", body="service")
def create(call: Call) -> Json:
    """Create a service and deploy its first revision."""
    return _create(call, call.query("serviceId"))


def _create(call: Call, service_id: str) -> Json:
    _check(call, call.body, service_id, "CreateServiceRequest")
    name = _name_of(call, service_id)
    resources.check_absent(call, "service", name)
    uri = "" if call.flag("validateOnly") else call.cloud.services.open_ingress(name)
    fields = {"creator": call.caller, "lastModifier": call.caller, "uri": uri, "urls": [uri], "satisfiesPzs": True}
    service = status.new_resource(name, call.cloud.pace.now(), **fields) | _DEFAULTS
    service |= resources.settable(call.body, _MESSAGE)
    if call.flag("validateOnly"):
        return _validation_response(call, service)
    with call.cloud.store.transaction():
        resources.check_absent(call, "service", name)
        return _deploy(call.cloud, service)


@api.route("GET", _SERVICES, needs="run.services.list", query="pageSize pageToken")
def list_services(call: Call) -> Json:
    """Services of a location."""
    rows = call.cloud.store.rows("service", f"{resources.location_name(call)}/services/")
    return call.page([(name, without_zeros(service)) for name, service in rows], "services")


@api.route("GET", _SERVICE, needs="run.services.get", on=_NAME)
def get(call: Call) -> Json:
    """One service."""
    return without_zeros(_service(call))


@api.route("PATCH", _SERVICE, needs="run.services.update", on=_NAME, query=_CHANGES, body="service")
def patch(call: Call) -> Json:
    """Replace the settable fields (or those that the mask names); a changed template makes a new revision."""
    body = call.body
    if call.flag("allowMissing") and call.cloud.store.get("service", call.name(_NAME)) is None:
        call.require("run.services.create", call.name("projects/{project}"))
        return _create(call, call.param("service"))
    with call.cloud.store.transaction():
        old = _service(call)
        resources.check_etag(old, body.get("etag", ""))
        mask = call.mask()
        desired = apply_mask(old, body, mask, _MESSAGE, settable_fields(_MESSAGE)) if mask else body
        _check(call, desired, call.param("service"), "UpdateServiceRequest")
        kept = {key: value for key, value in old.items() if key not in settable_fields(_MESSAGE)}
        service = _DEFAULTS | kept | resources.settable(desired, _MESSAGE)
        service |= {"generation": str(int(old["generation"]) + 1), "updateTime": timestamp(call.cloud.pace.now())}
        service |= {"lastModifier": call.caller, "etag": status.new_etag()}
        if call.flag("validateOnly"):
            return _validation_response(call, service)
        if without_zeros(service["template"]) != without_zeros(old["template"]) or call.flag("forceNewRevision"):
            call.cloud.services.abort_deployment(service["name"])
            return _deploy(call.cloud, service)
        return _settle(call.cloud, service)


@api.route("DELETE", _SERVICE, needs="run.services.delete", on=_NAME, query="etag validateOnly")
def delete(call: Call) -> Json:
    """Delete a service with its revisions; its instances end, its log remains."""
    cloud = call.cloud
    with cloud.store.transaction():
        service = _service(call)
        resources.check_etag(service, call.query("etag"))
        if call.flag("validateOnly"):
            return _validation_response(call, service)
        name = service["name"]
        cloud.services.remove(name)
        for revision, _ in cloud.store.rows("revision", f"{name}/revisions/"):
            cloud.store.delete("revision", revision)
        cloud.store.delete("service", name)
        cloud.store.delete_policy(name)
        cloud.store.set_setting(f"revisions {service['uid']}", None)
        response = status.typed_message("Service", service | {"deleteTime": timestamp(cloud.pace.now())})
        return cloud.operations.begin_timed(call.name(resources.PARENT), _metadata(name), response, _DELETE_SECONDS)


serve_policy(api, _SERVICE, _NAME, "run.services", lambda call: str(_service(call)["name"]))


@api.route("GET", _SERVICE + "/revisions", needs="run.revisions.list", on=_NAME, query="pageSize pageToken")
def list_revisions(call: Call) -> Json:
    """Revisions of a service, newest first."""
    rows = call.cloud.store.rows("revision", f"{_service(call)['name']}/revisions/")
    return call.page_in_order([without_zeros(body) for body in newest_first(rows)], "revisions")


@api.route("GET", _SERVICE + "/revisions/{revision:id}", needs="run.revisions.get", on=_NAME)
def get_revision(call: Call) -> Json:
    """One revision."""
    return without_zeros(resources.row_of(call, "revision", _NAME + "/revisions/{revision}"))


serve_operations(
    api, resources.LOCATION, resources.PARENT, "get list delete", needs="run.operations", of="google.cloud.run."
)


@api.route("POST", resources.LOCATION + "/operations/{operation:id}:wait", needs="run.operations.get")
async def wait_operation(call: Call) -> Json:
    """Return an operation when it is done, or its state when the given time is over."""
    try:
        timeout = min(seconds_of(call.body.get("timeout"), 30.0), 300.0)
    except ValueError as error:
        raise invalid(str(error), ("timeout", str(error))) from None
    return await call.cloud.operations.wait(call.name(resources.PARENT + "/operations/{operation}"), timeout)


def _name_of(call: Call, service_id: str) -> str:
    """Full name of a service in the path's location."""
    return f"{call.name(resources.PARENT)}/services/{service_id}"


def _check(call: Call, body: Json, service_id: str, message: str) -> None:
    refuse_unserved(body, _UNSERVED, "a service")
    region, template = call.param("location"), body.get("template") or {}
    egress = egress_violations(call.cloud.store, template, region)
    resources.check_violations(message, [*violations(body, service_id, region, _granted_values(call, region)), *egress])
    revisions = {status.short(name) for name, _ in call.cloud.store.rows("revision", f"{_name_of(call, service_id)}/")}
    for target in body.get("traffic") or []:
        if target.get("revision") and status.short(target["revision"]) not in revisions:
            text = f"Revision '{target['revision']}' of the traffic does not exist."
            raise invalid(text, ("service.traffic", "revision"))
        if target.get("revision") and target.get("percent"):
            _check_ready(call, f"{_name_of(call, service_id)}/revisions/{status.short(target['revision'])}")
    resources.check_account(call, template)


def _check_ready(call: Call, name: str) -> None:
    """Check that a revision which is to get traffic has become ready.

    Raises:
        ApiError: FAILED_PRECONDITION.
    """
    revision = call.cloud.store.get("revision", name)
    if revision is not None and not status.is_ready(revision):
        text = f"Revision '{status.short(name)}' is not ready and cannot serve traffic."
        raise ApiError("FAILED_PRECONDITION", text)


def _granted_values(call: Call, region: str) -> Granted:
    """The values of the region's quotas."""
    store, now = call.cloud.store, call.cloud.pace.now()
    return lambda quota, initial: value_in(store, now, api.service, quota, region, initial)


def _deploy(cloud: Context, service: Json) -> Json:
    name, now = service["name"], cloud.pace.now()
    revision_name = service["template"].get("revision")
    number = cloud.store.next_number(f"revisions {service['uid']}")
    revision = f"{name}/revisions/{revision_name or status.revision_id(status.short(name), number)}"
    if cloud.store.get("revision", revision):
        raise ApiError(
            "ALREADY_EXISTS", f"Revision named '{revision_name}' with different configuration already exists."
        )
    service |= status.pending_status(now) | {"latestCreatedRevision": revision}
    cloud.store.put("revision", revision, status.new_revision(revision, service, now))
    cloud.store.put("service", name, service)
    operation = cloud.operations.begin(name.partition("/services/")[0], _metadata(name))
    cloud.services.deploy(name, operation, revision)
    return cloud.operations.get(operation)


def _settle(cloud: Context, service: Json) -> Json:
    """Apply a change that makes no revision; the state of a failed or unfinished newest revision is unchanged."""
    name, now = service["name"], cloud.pace.now()
    operation = cloud.operations.begin(name.partition("/services/")[0], _metadata(name))
    if service.get("latestReadyRevision") == service["latestCreatedRevision"]:
        service |= status.ready_status(service, now)
    service |= cloud.services.routing(service)
    cloud.store.put("service", name, service)
    terminal = service["terminalCondition"]
    if terminal["state"] == "CONDITION_FAILED":
        error = ApiError("FAILED_PRECONDITION", terminal.get("message", "The newest revision is not ready."))
        cloud.operations.finish(operation, error=error)
    else:
        cloud.operations.finish(operation, response=status.typed_message("Service", service))
    cloud.services.apply_scaling(service)
    return cloud.operations.get(operation)


def _service(call: Call) -> Json:
    return resources.row_of(call, "service", _NAME)


def _validation_response(call: Call, service: Json) -> Json:
    return resources.validation_response(call, _metadata(service["name"]), status.typed_message("Service", service))


def _metadata(name: str) -> Json:
    return status.typed_message("Service", {"name": name})
