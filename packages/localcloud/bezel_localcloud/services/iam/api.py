"""IAM v1: service accounts."""

import random
import re
from functools import partial

from bezel_localcloud.core.errors import invalid
from bezel_localcloud.core.json_types import Json, without_zeros
from bezel_localcloud.core.paths import PROJECT
from bezel_localcloud.http.update_mask import apply_mask
from bezel_localcloud.routing.iam_policies import forget_member, serve_policy
from bezel_localcloud.routing.router import Api, Call

api = Api("iam.googleapis.com", "Identity and Access Management (IAM) API")
_ROOT = "/iam/v1/projects/{project:id}/serviceAccounts"
_ONE = _ROOT + "/{account:id}"
_NAME = "projects/{project}/serviceAccounts/{account}"
_SETTABLE = frozenset({"displayName", "description"})


def new_account(email: str, display_name: str = "", description: str = "") -> Json:
    """A service account as the API shows it."""
    unique = str(random.randint(10**20, 10**21 - 1))  # noqa: S311 - a name, not a secret
    return without_zeros(
        {
            "name": f"projects/{PROJECT}/serviceAccounts/{email}",
            "projectId": PROJECT,
            "uniqueId": unique,
            "email": email,
            "displayName": display_name,
            "etag": "MDEwMjE5MjA=",
            "description": description,
            "oauth2ClientId": unique,
        }
    )


@api.route("POST", _ROOT, needs="iam.serviceAccounts.create")
def create(call: Call) -> Json:
    """Create an account."""
    body = call.body
    account_id, account_fields = str(body.get("accountId", "")), body.get("serviceAccount") or {}
    if not re.fullmatch(r"[a-z](?:[-a-z0-9]{4,28}[a-z0-9])", account_id):
        text = f'The account ID "{account_id}" is not of 6 to 30 characters of the form [a-z]([-a-z0-9]*[a-z0-9]).'
        raise invalid(text, ("account_id", "6 to 30 lower case letters, digits and hyphens"))
    email = f"{account_id}@{PROJECT}.iam.gserviceaccount.com"
    with call.cloud.store.transaction():
        taken = f"Service account {account_id} already exists within project projects/{PROJECT}."
        call.check_absent("account", email, taken)
        account = new_account(email, account_fields.get("displayName", ""), account_fields.get("description", ""))
        call.cloud.store.put("account", email, account)
    return account


@api.route("GET", _ROOT, needs="iam.serviceAccounts.list", query="pageSize pageToken")
def list_accounts(call: Call) -> Json:
    """Accounts of the project."""
    return call.page(call.cloud.store.rows("account"), "accounts", default=20, max_size=100)


@api.route("GET", _ONE, needs="iam.serviceAccounts.get", on=_NAME)
def get(call: Call) -> Json:
    """One account, by e-mail or unique id."""
    return account_of(call)


@api.route("PATCH", _ONE, needs="iam.serviceAccounts.update", on=_NAME)
def patch(call: Call) -> Json:
    """Change display name or description: only the fields that the mask names."""
    mask = [path for path in call.body.get("updateMask", "").split(",") if path]
    if not mask:
        raise invalid("Update mask must be provided.", ("update_mask", "is required"))
    account_fields = call.body.get("serviceAccount") or {}
    with call.cloud.store.transaction():
        account = account_of(call)
        changed = apply_mask(account, account_fields, mask, "iam.ServiceAccount", _SETTABLE)
        account = {key: value for key, value in account.items() if key not in _SETTABLE} | without_zeros(changed)
        call.cloud.store.put("account", account["email"], account)
    return account


@api.route("DELETE", _ONE, needs="iam.serviceAccounts.delete", on=_NAME)
def delete(call: Call) -> Json:
    """Delete an account; its grants stay in the policies as a deleted member's, without effect."""
    store = call.cloud.store
    with store.transaction():
        account = account_of(call)
        store.delete("account", account["email"])
        store.delete_policy(account["name"])
        forget_member(store, account)
        for name, _ in store.rows("key", f"{account['email']}/"):
            store.delete("key", name)
    return {}


serve_policy(api, _ONE, _NAME, "iam.serviceAccounts", lambda call: str(account_of(call)["name"]), read="POST")


def _set_disabled(call: Call, *, disabled: bool) -> Json:
    """Reject the tokens of an account, or accept them again."""
    with call.cloud.store.transaction():
        account = account_of(call)
        account.pop("disabled", None)
        call.cloud.store.put("account", account["email"], account | ({"disabled": True} if disabled else {}))
    return {}


for _verb in ("disable", "enable"):
    _serves = api.route("POST", f"{_ONE}:{_verb}", needs=f"iam.serviceAccounts.{_verb}", on=_NAME)
    _serves(partial(_set_disabled, disabled=_verb == "disable"))


def account_of(call: Call) -> Json:
    """The account that the path names by its e-mail or unique id.

    Raises:
        ApiError: NOT_FOUND.
    """
    key, rows = call.param("account"), call.cloud.store.rows("account")
    email = next((email for email, body in rows if body["uniqueId"] == key), key)
    return call.row_of("account", email, f"Unknown service account: {key}")
