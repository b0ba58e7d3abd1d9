"""State of a stack as a review depends on it: its digest, and the secrets provider that its file may leave out.

Reads what `pulumi stack export` returns. Leaves out every change of a state.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

State = Mapping[str, Any]

# Times at which the engine wrote, not what it wrote.
_TIMES = ("created", "modified")
# Keys of a stack's file that name its secrets provider, and where the state holds their values.
_PROVIDER_KEYS = {
    "passphrase": {"encryptionsalt": "salt"},
    "cloud": {"secretsprovider": "url", "encryptedkey": "encryptedkey"},
}


def resources_of(state: State | None) -> list[dict[str, Any]]:
    """The resources of an exported state; none where there is no stack."""
    return list(((state or {}).get("deployment") or {}).get("resources") or ())


def state_digest(state: State | None) -> str:
    """The digest of a state: of its resources and pending operations, in whatever order.

    A stack without resources has the digest of one that does not exist: the first deploy makes the same of both.
    """
    deployment = (state or {}).get("deployment") or {}
    rows = [_plain(item) for item in resources_of(state)]
    rows += [f"pending: {_plain(item)}" for item in deployment.get("pending_operations") or ()]
    return f"sha256:{hashlib.sha256(json.dumps(sorted(rows)).encode()).hexdigest()}"


def has_pending(state: State | None) -> bool:
    """Whether a run ended in the middle of an operation."""
    return bool(((state or {}).get("deployment") or {}).get("pending_operations"))


def providers_of(state: State | None) -> Mapping[str, Any] | None:
    """What encrypts the secrets of an exported state: `type` and `state`; None without a state."""
    return None if state is None else (state.get("deployment") or {}).get("secrets_providers") or {}


def provider_lines(text: str, state: State | None) -> str:
    """The lines that a stack's file lacks to name the secrets provider of its state; "" where it names one.

    A pipeline's checkout has the file as it was committed, perhaps without what `pulumi stack init` added to it later.
    """
    keys = {line.partition(":")[0] for line in text.splitlines()}
    provider = providers_of(state) or {}
    names = _PROVIDER_KEYS.get(str(provider.get("type")), {})
    values = provider.get("state") or {}
    if keys & {key for row in _PROVIDER_KEYS.values() for key in row}:
        return ""
    return "".join(f"{key}: {json.dumps(values[name])}\n" for key, name in names.items() if values.get(name))


def _plain(resource: Mapping[str, Any]) -> str:
    return json.dumps({key: value for key, value in resource.items() if key not in _TIMES}, sort_keys=True)
