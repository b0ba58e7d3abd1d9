"""IAM v1: keys of service accounts. A key that is made here works as one of Google's: its account signs with it.

Leaves out uploaded public keys, and Google's own keys of an account, which rotate and never show.
"""

import json
from functools import partial

from bezel_localcloud.access.credentials import keys
from bezel_localcloud.core.errors import ApiError, unserved_error
from bezel_localcloud.core.json_types import Json, b64, timestamp
from bezel_localcloud.core.paths import PROJECT
from bezel_localcloud.routing.router import Api, Call
from bezel_localcloud.services.iam.api import account_of

api = Api("iam.googleapis.com", "Identity and Access Management (IAM) API")
KIND = "key"
_ALL = "/iam/v1/projects/{project:id}/serviceAccounts/{account:id}/keys"
_ONE = _ALL + "/{key:id}"
_ON = "projects/{project}/serviceAccounts/{account}"
_NEEDS = "iam.serviceAccountKeys"
_MOST = 10
_FILE = "TYPE_GOOGLE_CREDENTIALS_FILE"
_FOREVER = "9999-12-31T23:59:59Z"


@api.route("POST", _ALL, needs=f"{_NEEDS}.create", on=_ON)
def create(call: Call) -> Json:
    """Make a key; its private half is in this response only."""
    account, store = account_of(call), call.cloud.store
    kind = call.body.get("privateKeyType") or _FILE
    if kind not in {_FILE, "TYPE_UNSPECIFIED"}:
        raise unserved_error(f"keys of the type {kind}", "use TYPE_GOOGLE_CREDENTIALS_FILE")
    email = account["email"]
    with store.transaction():
        if len(store.rows(KIND, f"{email}/")) >= _MOST:
            raise ApiError("FAILED_PRECONDITION", "Precondition check failed.")
        key, now = keys.new_key(), timestamp(call.cloud.pace.now())
        row = {"publicKeyPem": keys.public_pem(key), "validAfterTime": now}
        store.put(KIND, f"{email}/{keys.key_id(key)}", row)
    content = keys.key_file(key, email=email, unique_id=account["uniqueId"], project=PROJECT, base=call.cloud.base)
    private = {"privateKeyType": _FILE, "privateKeyData": b64(json.dumps(content).encode())}
    return _key_json(email, keys.key_id(key), row) | private


@api.route("GET", _ALL, needs=f"{_NEEDS}.list", on=_ON, query="keyTypes")
def list_keys(call: Call) -> Json:
    """Keys of an account, without their private halves."""
    email, kinds = account_of(call)["email"], call.request.query_params.getlist("keyTypes")
    if kinds and not {"USER_MANAGED", "KEY_TYPE_UNSPECIFIED"} & set(kinds):
        return {}
    rows = call.cloud.store.rows(KIND, f"{email}/")
    key_list = [_key_json(email, name.rpartition("/")[2], row) for name, row in rows]
    return {"keys": key_list} if key_list else {}


@api.route("GET", _ONE, needs=f"{_NEEDS}.get", on=_ON)
def get(call: Call) -> Json:
    """One key."""
    email, short, row = _find_key(call)
    return _key_json(email, short, row)


@api.route("DELETE", _ONE, needs=f"{_NEEDS}.delete", on=_ON)
def delete(call: Call) -> Json:
    """Delete a key; tokens that were given for it stay valid until they expire."""
    email, short, _ = _find_key(call)
    call.cloud.store.delete(KIND, f"{email}/{short}")
    return {}


def _set_disabled(call: Call, *, disabled: bool) -> Json:
    """Refuse what is signed with a key, or accept it again."""
    email, short, row = _find_key(call)
    kept = {name: value for name, value in row.items() if name != "disabled"}
    call.cloud.store.put(KIND, f"{email}/{short}", kept | ({"disabled": True} if disabled else {}))
    return {}


for _verb in ("disable", "enable"):
    _serves = api.route("POST", f"{_ONE}:{_verb}", needs=f"{_NEEDS}.{_verb}", on=_ON)
    _serves(partial(_set_disabled, disabled=_verb == "disable"))


def _find_key(call: Call) -> tuple[str, str, Json]:
    email, short = str(account_of(call)["email"]), call.param("key")
    name = f"{email}/{short}"
    return email, short, call.row_of(KIND, name, f"Service account key {short} does not exist.")


def _key_json(email: str, short: str, row: Json) -> Json:
    return {
        "name": f"projects/{PROJECT}/serviceAccounts/{email}/keys/{short}",
        "keyType": "USER_MANAGED",
        "keyOrigin": "GOOGLE_PROVIDED",
        "keyAlgorithm": "KEY_ALG_RSA_2048",
        "validAfterTime": row.get("validAfterTime", "2026-01-01T00:00:00Z"),
        "validBeforeTime": _FOREVER,
    } | ({"disabled": True} if row.get("disabled") else {})
