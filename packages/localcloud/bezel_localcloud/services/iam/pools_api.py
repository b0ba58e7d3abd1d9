"""IAM v1: workload identity pools, and the outside identity providers that they trust.

A deleted pool or provider can be read and restored for 30 days and keeps its name; then it is gone. The time is the
real clock's. Every change is a long-running operation.
"""

from collections.abc import Callable
from datetime import datetime
from functools import partial

from bezel_localcloud.access.principals import POOL, pool_name
from bezel_localcloud.core.errors import ApiError, refuse_unserved, unserved_error
from bezel_localcloud.core.json_types import Json, whole_seconds, without_zeros
from bezel_localcloud.core.paths import PROJECT, PROJECT_NUMBER
from bezel_localcloud.core.store import Store
from bezel_localcloud.http.update_mask import apply_mask
from bezel_localcloud.routing.operations_api import serve_operations
from bezel_localcloud.routing.router import Api, Call
from bezel_localcloud.services.iam.pool_rules import check_id, check_provider, check_texts

PROVIDER = "workloadIdentityPoolProvider"
"""Kind of the rows of providers in the store."""
api = Api("iam.googleapis.com", "Identity and Access Management (IAM) API", locations=frozenset({"global"}))
_ROOT = "/iam/v1/projects/{project:id}/locations/{location:id}/workloadIdentityPools"
_ONE = _ROOT + "/{pool:id}"
_PROVIDERS = _ONE + "/providers"
_ONE_PROVIDER = _PROVIDERS + "/{provider:id}"
_PARENT = "projects/{project}/locations/{location}"
_NAME = _PARENT + "/workloadIdentityPools/{pool}"
_PROVIDER_NAME = _NAME + "/providers/{provider}"
_NEEDS, _PROVIDER_NEEDS = "iam.workloadIdentityPools", "iam.workloadIdentityPoolProviders"
_KEPT_SECONDS = 30 * 86_400.0
_OPERATION_SECONDS = 2.0  # of the platform's time
_TYPE = "type.googleapis.com/google.iam.v1."
_METADATA = {"@type": f"{_TYPE}WorkloadIdentityPoolOperationMetadata"}  # of providers too
_SETTABLE = frozenset({"displayName", "description", "disabled"})
_PROVIDER_SETTABLE = _SETTABLE | {"attributeMapping", "attributeCondition", "oidc"}
# Fields that localcloud does not support.
_UNSERVED = frozenset({"inlineCertificateIssuanceConfig", "inlineTrustConfig"})
_PROVIDER_UNSERVED = frozenset({"aws", "saml", "x509", "actorProviders"})


@api.route("POST", _ROOT, needs=f"{_NEEDS}.create", query="workloadIdentityPoolId", body="workloadIdentityPool")
def create(call: Call) -> Json:
    """Create a pool."""
    pool_id, body = call.query("workloadIdentityPoolId"), call.body
    check_id("workload_identity_pool_id", pool_id)
    refuse_unserved(body, _UNSERVED, "a pool")
    if body.get("mode", "MODE_UNSPECIFIED") not in {"MODE_UNSPECIFIED", "FEDERATION_ONLY"}:
        raise unserved_error(f"the mode {body['mode']} of a pool", "use FEDERATION_ONLY")
    check_texts(body)
    mode = {"mode": body["mode"]} if body.get("mode") == "FEDERATION_ONLY" else {}
    return _make(call, POOL, f"{call.name(_PARENT)}/workloadIdentityPools/{pool_id}", body, _SETTABLE, mode)


@api.route("GET", _ROOT, needs=f"{_NEEDS}.list", query="pageSize pageToken showDeleted")
def list_pools(call: Call) -> Json:
    """Pools of the project."""
    return _list_page(call, POOL, f"{call.name(_PARENT)}/workloadIdentityPools/", "workloadIdentityPools")


@api.route("GET", _ONE, needs=f"{_NEEDS}.get", on=_NAME)
def get(call: Call) -> Json:
    """One pool, also a deleted one."""
    return _row_of(call, POOL, _NAME)


@api.route("GET", f"{_ONE}:listAttestationRules", needs=f"{_NEEDS}.get", on=_NAME, query="pageSize pageToken")
def list_attestation_rules(call: Call) -> Json:
    """Rules for Google's own workloads, of which a pool for federation has none."""
    _row_of(call, POOL, _NAME)
    return call.page([], "attestationRules", default=50)


@api.route("PATCH", _ONE, needs=f"{_NEEDS}.update", on=_NAME, query="updateMask", body="workloadIdentityPool")
def patch(call: Call) -> Json:
    """Change the fields that the mask names (without one, all that can be changed)."""
    refuse_unserved(call.body, _UNSERVED, "a pool")
    if "mode" in call.mask():
        raise ApiError("INVALID_ARGUMENT", "Attempted to update an immutable field.")
    return _change(call, POOL, _NAME, _SETTABLE, check_texts)


@api.route("DELETE", _ONE, needs=f"{_NEEDS}.delete", on=_NAME)
def delete(call: Call) -> Json:
    """Mark a pool as deleted: its tokens and its providers have no effect any more."""
    return _delete(call, POOL, _NAME)


@api.route(
    "POST",
    _PROVIDERS,
    needs=f"{_PROVIDER_NEEDS}.create",
    on=_NAME,
    query="workloadIdentityPoolProviderId",
    body="workloadIdentityPoolProvider",
)
def create_provider(call: Call) -> Json:
    """Create a provider of a pool."""
    provider_id, body = call.query("workloadIdentityPoolProviderId"), call.body
    check_id("workload_identity_pool_provider_id", provider_id)
    _refuse_unserved_provider(body)
    check_provider(body)
    if _row_of(call, POOL, _NAME)["state"] == "DELETED":
        raise _deleted_error(POOL)
    return _make(call, PROVIDER, f"{call.name(_NAME)}/providers/{provider_id}", body, _PROVIDER_SETTABLE, {})


@api.route("GET", _PROVIDERS, needs=f"{_PROVIDER_NEEDS}.list", on=_NAME, query="pageSize pageToken showDeleted")
def list_providers(call: Call) -> Json:
    """Providers of a pool."""
    _row_of(call, POOL, _NAME)
    return _list_page(call, PROVIDER, f"{call.name(_NAME)}/providers/", "workloadIdentityPoolProviders")


@api.route("GET", _ONE_PROVIDER, needs=f"{_PROVIDER_NEEDS}.get", on=_PROVIDER_NAME)
def get_provider(call: Call) -> Json:
    """One provider, also a deleted one."""
    return _row_of(call, PROVIDER, _PROVIDER_NAME)


@api.route(
    "PATCH",
    _ONE_PROVIDER,
    needs=f"{_PROVIDER_NEEDS}.update",
    on=_PROVIDER_NAME,
    query="updateMask",
    body="workloadIdentityPoolProvider",
)
def patch_provider(call: Call) -> Json:
    """Change the fields that the mask names (without one, all that can be changed)."""
    _refuse_unserved_provider(call.body)
    return _change(call, PROVIDER, _PROVIDER_NAME, _PROVIDER_SETTABLE, check_provider)


@api.route("DELETE", _ONE_PROVIDER, needs=f"{_PROVIDER_NEEDS}.delete", on=_PROVIDER_NAME)
def delete_provider(call: Call) -> Json:
    """Mark a provider as deleted: no token is exchanged by it any more."""
    return _delete(call, PROVIDER, _PROVIDER_NAME)


def _undelete(call: Call, kind: str, template: str) -> Json:
    """Restore a deleted pool or provider."""
    with call.cloud.store.transaction():
        row = _row_of(call, kind, template)
        if row["state"] != "DELETED":
            raise ApiError("FAILED_PRECONDITION", f"The {kind} is not deleted.")
        restored = {key: value for key, value in row.items() if key != "expireTime"} | {"state": "ACTIVE"}
        return _put(call, kind, call.name(template), restored)


for _path, _kind, _template, _prefix in (
    (_ONE, POOL, _NAME, _NEEDS),
    (_ONE_PROVIDER, PROVIDER, _PROVIDER_NAME, _PROVIDER_NEEDS),
):
    _serves = api.route("POST", f"{_path}:undelete", needs=f"{_prefix}.undelete", on=_template)
    _serves(partial(_undelete, kind=_kind, template=_template))
    serve_operations(api, _path, _template, "get")


def usable_provider(store: Store, now: float, pool: str, provider: str) -> Json | None:
    """The provider of a pool where tokens can be exchanged now: both exist, and neither is deleted or disabled."""
    purge(store, now)
    name = pool_name(pool)
    rows = store.get(POOL, name), store.get(PROVIDER, f"{name}/providers/{provider}")
    return rows[1] if all(row and row["state"] == "ACTIVE" and not row.get("disabled") for row in rows) else None


def purge(store: Store, now: float) -> None:
    """Remove the pools and providers that were deleted 30 days ago, with the providers of such pools."""
    for kind in (POOL, PROVIDER):
        gone = [name for name, row in store.rows(kind) if _is_expired(row, now)]
        for name in gone:
            with store.transaction():
                store.delete(kind, name)
                for inner, _ in store.rows(PROVIDER, f"{name}/providers/") if kind == POOL else []:
                    store.delete(PROVIDER, inner)


def _is_expired(row: Json, now: float) -> bool:
    moment = str(row.get("expireTime") or "")
    return bool(moment) and datetime.fromisoformat(moment).timestamp() <= now


def _make(call: Call, kind: str, name: str, body: Json, settable: frozenset[str], more: Json) -> Json:
    purge(call.cloud.store, call.cloud.pace.now())
    row = {"name": _with_number(name)} | {key: value for key, value in body.items() if key in settable}
    with call.cloud.store.transaction():
        call.check_absent(kind, name, "Requested entity already exists")
        return _put(call, kind, name, without_zeros(row | more) | {"state": "ACTIVE"})


def _change(call: Call, kind: str, template: str, settable: frozenset[str], check: Callable[[Json], None]) -> Json:
    with call.cloud.store.transaction():
        old = _row_of(call, kind, template)
        if old["state"] == "DELETED":
            raise _deleted_error(kind)
        message = f"iam.{kind[0].upper()}{kind[1:]}"
        changed = apply_mask(old, call.body, call.mask() or ["*"], message, settable)
        check(changed)
        kept = {key: value for key, value in old.items() if key not in settable}
        return _put(call, kind, call.name(template), kept | without_zeros(changed))


def _delete(call: Call, kind: str, template: str) -> Json:
    with call.cloud.store.transaction():
        row = _row_of(call, kind, template)
        if row["state"] == "DELETED":
            raise _deleted_error(kind)
        expires = whole_seconds(call.cloud.pace.now() + _KEPT_SECONDS)
        return _put(call, kind, call.name(template), row | {"state": "DELETED", "expireTime": expires})


def _put(call: Call, kind: str, name: str, row: Json) -> Json:
    """Store a row; return the operation that has done so."""
    call.cloud.store.put(kind, name, row)
    message = f"{_TYPE}{kind[0].upper()}{kind[1:]}"
    return call.cloud.operations.begin_timed(name, _METADATA, {"@type": message} | row, _OPERATION_SECONDS)


def _row_of(call: Call, kind: str, template: str) -> Json:
    purge(call.cloud.store, call.cloud.pace.now())
    return call.row_of(kind, call.name(template), "Requested entity was not found.")


def _list_page(call: Call, kind: str, prefix: str, key: str) -> Json:
    purge(call.cloud.store, call.cloud.pace.now())
    rows = call.cloud.store.rows(kind, prefix)
    shown = [(name, row) for name, row in rows if row["state"] == "ACTIVE" or call.flag("showDeleted")]
    return call.page(shown, key, default=50, max_size=1000)


def _deleted_error(kind: str) -> ApiError:
    return ApiError("FAILED_PRECONDITION", f"The {kind} is deleted: restore it with undelete first.")


def _refuse_unserved_provider(body: Json) -> None:
    refuse_unserved(body, _PROVIDER_UNSERVED, "a provider")
    refuse_unserved(body.get("oidc") or {}, {"discoveryUri"}, "an OpenID Connect provider")


def _with_number(name: str) -> str:
    return name.replace(f"projects/{PROJECT}/", f"projects/{PROJECT_NUMBER}/", 1)
