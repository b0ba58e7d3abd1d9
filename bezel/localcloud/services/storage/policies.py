"""IAM policies of buckets, and the permissions that a caller has on buckets and objects."""

from bezel.localcloud.core.errors import ApiError, anonymous_denied
from bezel.localcloud.core.json_types import Json
from bezel.localcloud.http.update_mask import merged
from bezel.localcloud.routing.iam_policies import held_permissions, read_policy, write_policy
from bezel.localcloud.routing.router import Call
from bezel.localcloud.services.storage.api import BUCKET, OBJECT, OBJECT_NAME, POLICY, api, bucket_of
from bezel.localcloud.services.storage.conditions import stale

_VERSION = "optionsRequestedPolicyVersion"
_PUBLIC = frozenset({"allUsers", "allAuthenticatedUsers"})


@api.route("GET", BUCKET + "/iam", needs="storage.buckets.getIamPolicy", on=POLICY, query=_VERSION)
def get_policy(call: Call) -> Json:
    """Policy of a bucket."""
    bucket_of(call)
    return _policy_json(call, read_policy(call.cloud.store, call.name(POLICY), call.query(_VERSION)))


@api.route("PUT", BUCKET + "/iam", needs="storage.buckets.setIamPolicy", on=POLICY)
def set_policy(call: Call) -> Json:
    """Replace the policy of a bucket."""
    bucket = bucket_of(call)
    policy = merged({}, call.body)
    members = {member for binding in policy.get("bindings") or [] for member in binding.get("members") or []}
    if _PUBLIC & members and (bucket.get("iamConfiguration") or {}).get("publicAccessPrevention") == "enforced":
        text = (
            "The member bindings allUsers and allAuthenticatedUsers are not allowed since public access prevention is"
        )
        raise ApiError("FAILED_PRECONDITION", f"{text} enforced.", status=412)
    return _policy_json(call, write_policy(call.cloud.store, call.name(POLICY), {"policy": policy}, stale=stale()))


@api.route("GET", BUCKET + "/iam/testPermissions", query="permissions")
def test_permissions(call: Call) -> Json:
    """The requested permissions that the caller has on a bucket."""
    return _held(call, call.name(POLICY))


@api.route("GET", OBJECT + "/iam/testPermissions", query="permissions generation")
def test_object_permissions(call: Call) -> Json:
    """The requested permissions that the caller has on an object, by the policy of its bucket."""
    return _held(call, call.name(OBJECT_NAME))


def _held(call: Call, resource: str) -> Json:
    bucket_of(call)
    permissions = call.request.query_params.getlist("permissions")
    held = held_permissions(call, resource, permissions)
    if not (held or call.caller):
        raise anonymous_denied((permissions or ["storage.buckets.getIamPolicy"])[0])
    return {"kind": "storage#testIamPermissionsResponse"} | held


def _policy_json(call: Call, policy: Json) -> Json:
    return policy | {"kind": "storage#policy", "resourceId": call.name(POLICY)}
