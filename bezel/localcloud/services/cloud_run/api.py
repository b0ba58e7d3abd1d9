"""Cloud Run v2: services, revisions, policies and operations. Leaves out their instances: see runtime/controller.py."""

import uuid

from bezel.localcloud.core.errors import ApiError, invalid, permission_denied
from bezel.localcloud.core.json_types import Json, seconds_of, timestamp, without_zeros
from bezel.localcloud.core.paths import DEFAULT_COMPUTE_ACCOUNT, PROJECT
from bezel.localcloud.core.regions import regions
from bezel.localcloud.http.update_mask import masked
from bezel.localcloud.routing.context import Context
from bezel.localcloud.routing.iam_policies import held_permissions, read_policy, write_policy
from bezel.localcloud.routing.router import Api, Call
from bezel.localcloud.services.cloud_run import status
from bezel.localcloud.services.cloud_run.checks import violations
from bezel.localcloud.services.cloud_run.egress import egress_violations

api = Api("run.googleapis.com", "Cloud Run Admin API", locations=regions())
_LOCATION = "/run/v2/projects/{project:id}/locations/{location:id}"
_SERVICE = _LOCATION + "/services/{service:id}"
_PARENT = "projects/{project}/locations/{location}"
_NAME = _PARENT + "/services/{service}"
_DELETE_SECONDS = 5.0  # of the platform's time
# Fields that a caller may set; the platform sets all others.
_SETTABLE = frozenset(
    {"description", "labels", "annotations", "client", "clientVersion", "ingress", "launchStage", "binaryAuthorization",
     "template", "traffic", "scaling", "invokerIamDisabled", "defaultUriDisabled", "customAudiences", "iapEnabled",
     "buildConfig", "multiRegionSettings", "sshEnabled", "functionalType"}
)  # fmt: skip


@api.route("POST", _LOCATION + "/services", needs="run.services.create", query="serviceId validateOnly", body="service")
def create(call: Call) -> Json:
    """Create a service and deploy its first revision."""
    return _create(call, call.query("serviceId"))


def _create(call: Call, service_id: str) -> Json:
    body = call.body
    _check(call, body, service_id, "CreateServiceRequest")
    name = _name_of(call, service_id)
    _absent(call.cloud, name)
    uri = "" if call.flag("validateOnly") else call.cloud.services.open_front(name)
    now = call.cloud.pace.now()
    service = {
        "name": name,
        "uid": str(uuid.uuid4()),
        "generation": "1",
        "createTime": timestamp(now),
        "updateTime": timestamp(now),
        "creator": call.caller,
        "lastModifier": call.caller,
        "ingress": "INGRESS_TRAFFIC_ALL",
        "launchStage": "GA",
        "traffic": [{"type": status.LATEST, "percent": 100}],
        "uri": uri,
        "urls": [uri],
        "satisfiesPzs": True,
        "etag": _etag(),
    } | {key: value for key, value in body.items() if key in _SETTABLE and value not in (None, [])}
    if call.flag("validateOnly"):
        return _validated(call, service)
    with call.cloud.store.transaction():
        _absent(call.cloud, name)
        return _deploy(call.cloud, service)


@api.route("GET", _LOCATION + "/services", needs="run.services.list", query="pageSize pageToken")
def list_services(call: Call) -> Json:
    """Services of a location.

    Raises:
        ApiError: INVALID_ARGUMENT for "-", which means every location in other APIs.
    """
    if call.param("location") == "-":
        raise invalid("Location must be a region, and cannot be the '-' wildcard.", ("parent", "names no region"))
    prefix = f"{call.name(_PARENT)}/services/"
    return call.page([(n, call.cloud.shown(s)) for n, s in call.cloud.store.rows("service", prefix)], "services")


@api.route("GET", _SERVICE, needs="run.services.get", on=_NAME)
def get(call: Call) -> Json:
    """One service."""
    return call.cloud.shown(_service(call))


@api.route(
    "PATCH",
    _SERVICE,
    needs="run.services.update",
    on=_NAME,
    query="updateMask validateOnly allowMissing forceNewRevision",
    body="service",
)
def patch(call: Call) -> Json:
    """Replace the settable fields (or those that the mask names); a changed template makes a new revision."""
    body = call.body
    if call.flag("allowMissing") and call.cloud.store.get("service", call.name(_NAME)) is None:
        if not call.cloud.access.allows(call.caller, "run.services.create", call.name("projects/{project}")):
            raise permission_denied("run.services.create", call.name("projects/{project}"))
        return _create(call, call.param("service"))
    with call.cloud.store.transaction():
        old = _service(call)
        _check_etag(call, old, body.get("etag", ""))
        mask = call.mask()
        wanted = masked(old, body, mask, "run.GoogleCloudRunV2Service", _SETTABLE) if mask else body
        _check(call, wanted, call.param("service"), "UpdateServiceRequest")
        kept = {key: value for key, value in old.items() if key not in _SETTABLE}
        service = kept | {key: value for key, value in wanted.items() if key in _SETTABLE and value not in (None, [])}
        service = {"ingress": "INGRESS_TRAFFIC_ALL", "launchStage": "GA"} | service
        service.setdefault("traffic", [{"type": status.LATEST, "percent": 100}])
        service |= {
            "generation": str(int(old["generation"]) + 1),
            "updateTime": timestamp(call.cloud.pace.now()),
            "lastModifier": call.caller,
            "etag": _etag(),
        }
        if call.flag("validateOnly"):
            return _validated(call, service)
        if without_zeros(service["template"]) != without_zeros(old["template"]) or call.flag("forceNewRevision"):
            call.cloud.services.superseded(service["name"])
            return _deploy(call.cloud, service)
        return _settle(call.cloud, service)


@api.route("DELETE", _SERVICE, needs="run.services.delete", on=_NAME, query="etag validateOnly")
def delete(call: Call) -> Json:
    """Delete a service with its revisions; its instances end, its log remains."""
    cloud = call.cloud
    with cloud.store.transaction():
        service = _service(call)
        _check_etag(call, service, call.query("etag"))
        if call.flag("validateOnly"):
            return _validated(call, service)
        name = service["name"]
        cloud.services.removed(name)
        for revision, _ in cloud.store.rows("revision", f"{name}/revisions/"):
            cloud.store.delete("revision", revision)
        cloud.store.delete("service", name)
        cloud.store.set_setting(f"revisions {service['uid']}", None)
        shown = cloud.shown(service | {"deleteTime": timestamp(cloud.pace.now())})
        response = {"@type": status.SERVICE_TYPE} | shown
        return cloud.operations.timed(call.name(_PARENT), _metadata(name), response, _DELETE_SECONDS)


@api.route(
    "GET",
    _SERVICE + ":getIamPolicy",
    needs="run.services.getIamPolicy",
    on=_NAME,
    query="options.requestedPolicyVersion",
)
def get_policy(call: Call) -> Json:
    """Policy of a service."""
    return read_policy(call.cloud.store, _service(call)["name"], call.query("options.requestedPolicyVersion"))


@api.route("POST", _SERVICE + ":setIamPolicy", needs="run.services.setIamPolicy", on=_NAME)
def set_policy(call: Call) -> Json:
    """Replace the policy of a service."""
    return write_policy(call.cloud.store, _service(call)["name"], call.body)


@api.route("POST", _SERVICE + ":testIamPermissions")
def test_permissions(call: Call) -> Json:
    """The requested permissions that the caller has on a service."""
    return held_permissions(call, _service(call)["name"], call.body.get("permissions") or [])


@api.route("GET", _SERVICE + "/revisions", needs="run.revisions.list", on=_NAME, query="pageSize pageToken")
def list_revisions(call: Call) -> Json:
    """Revisions of a service, newest first."""
    found = call.cloud.store.rows("revision", f"{_service(call)['name']}/revisions/")
    newest_first = sorted(found, key=lambda item: item[1]["createTime"], reverse=True)
    return call.page([(f"{n:06d}", without_zeros(body)) for n, (_, body) in enumerate(newest_first)], "revisions")


@api.route("GET", _SERVICE + "/revisions/{revision:id}", needs="run.revisions.get", on=_NAME)
def get_revision(call: Call) -> Json:
    """One revision."""
    name = call.name(_NAME + "/revisions/{revision}")
    found = call.cloud.store.get("revision", name)
    if found is None:
        raise ApiError(
            "NOT_FOUND",
            _missing("REVISION", call.param("revision"), call.param("location")),
        )
    return without_zeros(found)


@api.route("GET", _LOCATION + "/operations/{operation:id}", needs="run.operations.get")
def get_operation(call: Call) -> Json:
    """An operation."""
    return call.cloud.operations.get(call.name(_PARENT + "/operations/{operation}"))


@api.route("POST", _LOCATION + "/operations/{operation:id}:wait", needs="run.operations.get")
async def wait_operation(call: Call) -> Json:
    """Return an operation when it is done, or its state when the given time is over."""
    try:
        timeout = min(seconds_of(call.body.get("timeout"), 30.0), 300.0)
    except ValueError as error:
        raise invalid(str(error), ("timeout", str(error))) from None
    return await call.cloud.operations.wait(call.name(_PARENT + "/operations/{operation}"), timeout)


def _name_of(call: Call, service_id: str) -> str:
    """Full name of a service in the path's location."""
    return f"{call.name(_PARENT)}/services/{service_id}"


def _check(call: Call, body: Json, service_id: str, message: str) -> None:
    region, template = call.param("location"), body.get("template") or {}
    found = [*violations(body, service_id, region), *egress_violations(call.cloud.store, template, region)]
    if found:
        raise invalid("\n".join(f"Violation in {message}.{field}: {text}" for field, text in found), *found)
    revisions = {status.short(name) for name, _ in call.cloud.store.rows("revision", f"{_name_of(call, service_id)}/")}
    for target in body.get("traffic") or []:
        if target.get("revision") and status.short(target["revision"]) not in revisions:
            raise invalid(
                f"Revision '{target['revision']}' of the traffic does not exist.", ("service.traffic", "revision")
            )
    account = body["template"].get("serviceAccount") or DEFAULT_COMPUTE_ACCOUNT
    name = f"projects/{PROJECT}/serviceAccounts/{account}"
    exists = call.cloud.store.get("account", account) is not None
    if not exists or not call.cloud.access.allows(call.caller, "iam.serviceAccounts.actAs", name):
        raise permission_denied("iam.serviceaccounts.actAs", f"service account {account}")


def _deploy(cloud: Context, service: Json) -> Json:
    name, now = service["name"], cloud.pace.now()
    wanted = service["template"].get("revision")
    number = cloud.store.next_number(f"revisions {service['uid']}")
    revision = f"{name}/revisions/{wanted or status.revision_id(status.short(name), number)}"
    if cloud.store.get("revision", revision):
        raise ApiError("ALREADY_EXISTS", f"Revision named '{wanted}' with different configuration already exists.")
    service |= status.pending_status(now) | {"latestCreatedRevision": revision}
    cloud.store.put("revision", revision, status.new_revision(revision, service, now))
    cloud.store.put("service", name, service)
    operation = cloud.operations.begin(name.partition("/services/")[0], _metadata(name))
    cloud.services.deploy(name, operation, revision)
    return cloud.operations.get(operation)


def _settle(cloud: Context, service: Json) -> Json:
    """Apply a change that makes no revision; the state of a failed or unfinished newest revision is unchanged."""
    name, now = service["name"], cloud.pace.now()
    parent = name.partition("/services/")[0]
    operation = cloud.operations.begin(parent, _metadata(name))
    if service.get("latestReadyRevision") == service["latestCreatedRevision"]:
        service |= status.ready_status(service, now)
    service |= cloud.services.routing(service)
    cloud.store.put("service", name, service)
    terminal = service["terminalCondition"]
    if terminal["state"] == "CONDITION_FAILED":
        error = ApiError("FAILED_PRECONDITION", terminal.get("message", "The newest revision is not ready."))
        cloud.operations.finish(operation, error=error)
    else:
        cloud.operations.finish(operation, response={"@type": status.SERVICE_TYPE} | cloud.shown(service))
    cloud.services.rescaled(service)
    return cloud.operations.get(operation)


def _service(call: Call) -> Json:
    found = call.cloud.store.get("service", call.name(_NAME))
    if found is None:
        raise ApiError("NOT_FOUND", _missing("SERVICE", call.param("service"), call.param("location")))
    return found


def _check_etag(call: Call, service: Json, given: str) -> None:
    if given not in {"", service["etag"]}:
        text = f"Conflict for resource '{call.param('service')}': the etag given is not the current one."
        raise ApiError("ABORTED", text)


def _validated(call: Call, service: Json) -> Json:
    """Response to validateOnly: the result of the call, without storing it or its operation."""
    response = {"@type": status.SERVICE_TYPE} | call.cloud.shown(service)
    operation = {"name": f"{call.name(_PARENT)}/operations/{uuid.uuid4()}", "done": True, "response": response}
    return operation | {"metadata": _metadata(service["name"])}


def _missing(kind: str, name: str, location: str) -> str:
    return f"Resource '{name}' of kind '{kind}' in region '{location}' in project '{PROJECT}' does not exist."


def _absent(cloud: Context, name: str) -> None:
    if cloud.store.get("service", name):
        raise ApiError("ALREADY_EXISTS", f"Resource '{status.short(name)}' already exists.")


def _metadata(name: str) -> Json:
    return {"@type": status.SERVICE_TYPE, "name": name}


def _etag() -> str:
    return f'"{uuid.uuid4().hex[:12]}"'
