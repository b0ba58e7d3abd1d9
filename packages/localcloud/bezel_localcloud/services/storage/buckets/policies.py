"""Policies of buckets and of single objects, and the tests of a caller's permissions on them."""

from collections.abc import Iterator

from bezel_localcloud.core.errors import ApiError, anonymous_denied, invalid
from bezel_localcloud.core.json_types import Json
from bezel_localcloud.core.store import Store
from bezel_localcloud.http.update_mask import merge
from bezel_localcloud.routing.iam_policies import check_limit, held_permissions, read_policy, write_policy
from bezel_localcloud.routing.router import Call
from bezel_localcloud.services.storage.api import ASIDE, BUCKET, OBJECT, OBJECT_NAME, POLICY, api, bucket_of
from bezel_localcloud.services.storage.buckets.uniform_access import is_uniform
from bezel_localcloud.services.storage.conditions import stale
from bezel_localcloud.services.storage.objects.methods import find_object

_VERSION = "optionsRequestedPolicyVersion"
_PUBLIC = frozenset({"allUsers", "allAuthenticatedUsers"})


@api.route("GET", BUCKET + "/iam", needs="storage.buckets.getIamPolicy", on=POLICY, query=_VERSION)
def get_policy(call: Call) -> Json:
    """Policy of a bucket."""
    bucket_of(call)
    return _policy_json(call, POLICY, read_policy(call.cloud.store, call.name(POLICY), call.query(_VERSION)))


@api.route("PUT", BUCKET + "/iam", needs="storage.buckets.setIamPolicy", on=POLICY)
def set_policy(call: Call) -> Json:
    """Replace the policy of a bucket."""
    return _replace(call, POLICY, bucket_of(call))


@api.route("GET", BUCKET + "/iam/testPermissions", query="permissions")
async def test_permissions(call: Call) -> Json:
    """The requested permissions that the caller has on a bucket."""
    return await _permissions_answer(call, call.name(POLICY))


@api.route("GET", OBJECT + "/iam", needs="storage.objects.getIamPolicy", on=OBJECT_NAME, query="generation")
def get_object_policy(call: Call) -> Json:
    """Policy of an object, where its bucket has no uniform access."""
    _object_with_policy(call)
    return _policy_json(call, OBJECT_NAME, read_policy(call.cloud.store, call.name(OBJECT_NAME)))


@api.route("PUT", OBJECT + "/iam", needs="storage.objects.setIamPolicy", on=OBJECT_NAME, query="generation")
def set_object_policy(call: Call) -> Json:
    """Replace the policy of an object, where its bucket has no uniform access."""
    return _replace(call, OBJECT_NAME, _object_with_policy(call))


@api.route("GET", OBJECT + "/iam/testPermissions", query="permissions generation")
async def test_object_permissions(call: Call) -> Json:
    """The requested permissions that the caller has on an object, by its policy and that of its bucket."""
    return await _permissions_answer(call, call.name(OBJECT_NAME))


def heed_uniform_access(store: Store, old: Json, new: Json) -> None:
    """Put the policies of a bucket's objects aside when its access becomes uniform, and back when it no longer is."""
    if is_uniform(old) == is_uniform(new):
        return
    prefix = POLICY.format(bucket=new["name"]) + "/objects/"
    source, target = ("", ASIDE) if is_uniform(new) else (ASIDE, "")
    for name, policy in list(_policies(store, source + prefix)):
        store.delete_policy(name)
        store.put_policy(target + name.removeprefix(ASIDE), policy)


def forget_object_policies(store: Store, bucket: str) -> None:
    """Delete the policies of all objects of a bucket that is deleted."""
    for aside in ("", ASIDE):
        for name, _ in list(_policies(store, f"{aside}{POLICY.format(bucket=bucket)}/objects/")):
            store.delete_policy(name)


def _policies(store: Store, prefix: str) -> Iterator[tuple[str, Json]]:
    return ((name, policy) for name, policy in store.policies() if name.startswith(prefix))


def _object_with_policy(call: Call) -> Json:
    bucket = bucket_of(call)
    if is_uniform(bucket):
        text = (
            f"Object policies are disabled for bucket '{bucket['name']}' when uniform bucket-level access is enabled. "
            "Read more at https://cloud.google.com/storage/docs/uniform-bucket-level-access."
        )
        raise invalid(text)
    find_object(call)
    return bucket


def _replace(call: Call, name: str, bucket: Json) -> Json:
    policy = merge({}, call.body)
    members = {member for binding in policy.get("bindings") or [] for member in binding.get("members") or []}
    if _PUBLIC & members and (bucket.get("iamConfiguration") or {}).get("publicAccessPrevention") == "enforced":
        text = (
            "The member bindings allUsers and allAuthenticatedUsers are not allowed since public access prevention is"
        )
        raise ApiError("FAILED_PRECONDITION", f"{text} enforced.", status=412)
    permission = f"storage.{'objects' if name == OBJECT_NAME else 'buckets'}.setIamPolicy"
    check_limit(call, permission, call.name(name), call.name(name), {"policy": policy})
    written = write_policy(call.cloud.store, call.name(name), {"policy": policy}, stale=stale())
    return _policy_json(call, name, written)


async def _permissions_answer(call: Call, resource: str) -> Json:
    bucket_of(call)
    permissions = call.request.query_params.getlist("permissions")
    granted = await held_permissions(call, resource, permissions)
    if not (granted or call.caller):
        raise anonymous_denied((permissions or ["storage.buckets.getIamPolicy"])[0])
    return {"kind": "storage#testIamPermissionsResponse"} | granted


def _policy_json(call: Call, name: str, policy: Json) -> Json:
    return policy | {"kind": "storage#policy", "resourceId": call.name(name)}
