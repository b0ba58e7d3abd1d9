"""Lookups before anything is declared: the project's number, and what an earlier life of the project left behind.

Google keeps key rings for ever and marks pools as deleted for 30 days, so that creating them again fails (409); and it
names budgets and channels itself, so that a killed run leaves ones that no state knows. All of these are found again by
their names and adopted: an import of what the state has already changes nothing. A deleted pool is restored when the
stack is deployed, never in a preview.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from bezel.rest import ApiError, GoogleClient, RestError, endpoint
from bezel_base.errors import Problem, UserError, caused_by
from bezel_bootstrap.forge_identity import POOL_DESCRIPTION

_SECONDS = 30.0
_RESTORE_SECONDS = 120.0
_POLL_SECONDS = 0.5
_ABSENT = frozenset({403, 404})  # 403: the API is not enabled yet, so there is nothing; or it is hidden


@dataclass(frozen=True)
class Existing:
    """Ids of what exists already, "" for what does not."""

    key_ring: str = ""
    pool: str = ""
    provider: str = ""
    channel: str = ""
    budget: str = ""


@dataclass(frozen=True)
class Names:
    """Names under which an earlier life is looked for; "" for what the program does not declare."""

    project: str
    location: str
    key_ring: str
    pool: str
    provider: str
    billing_account: str
    display_name: str


def look_up(names: Names, provider_body: Mapping[str, Any], *, restores: bool) -> Existing:
    """Find what an earlier life left.

    Args:
        names: What is looked for.
        provider_body: The provider as it is to be, for one that is restored.
        restores: Whether a deleted pool and its provider are restored; otherwise they count as absent.

    Raises:
        RestError: The cloud could not be asked.
        UserError: A restored pool did not become active in time.
    """
    with GoogleClient(deadline_seconds=_SECONDS) as client:
        ring = f"projects/{names.project}/locations/{names.location}/keyRings/{names.key_ring}"
        there = _get(client, f"{endpoint('KMS')}{ring}") is not None
        pool = _Pool(client, names).find_ids(provider_body, restores=restores) if names.pool else ("", "")
        spending = (_channel(client, names), _budget(client, names)) if names.billing_account else ("", "")
        return Existing(ring if there else "", *pool, *spending)


class _Pool:
    """The pool with its provider, both perhaps marked as deleted."""

    def __init__(self, client: GoogleClient, names: Names) -> None:
        self._client = client
        self._pool = f"projects/{names.project}/locations/global/workloadIdentityPools/{names.pool}"
        self._provider = f"{self._pool}/providers/{names.provider}"
        self._base = endpoint("IAM_BETA")

    def find_ids(self, provider_body: Mapping[str, Any], *, restores: bool) -> tuple[str, str]:
        """Ids of the pool and of the provider.

        A pool with another description is another owner's, and is left to the error of its creation.
        """
        pool = _get(self._client, f"{self._base}{self._pool}")
        if pool is None or pool.get("description") != POOL_DESCRIPTION:
            return "", ""
        if not self._is_active(pool, self._pool, restores=restores):
            return "", ""
        provider = _get(self._client, f"{self._base}{self._provider}")
        if provider is None:
            return self._pool, ""
        deleted = provider.get("state") == "DELETED"
        if not self._is_active(provider, self._provider, restores=restores):
            return self._pool, ""
        if deleted:
            # Before the import: it refuses a resource that differs from the program.
            query = {"updateMask": ",".join(sorted(provider_body))}
            self._await_operation(
                self._client.request(
                    "PATCH",
                    f"{self._base}{self._provider}",
                    params=query,
                    json=dict(provider_body),
                    idempotent=True,
                )
            )
        return self._pool, self._provider

    def _is_active(self, entry: Mapping[str, Any], name: str, *, restores: bool) -> bool:
        if entry.get("state") != "DELETED":
            return True
        if restores:
            self._await_operation(self._client.post(f"{self._base}{name}:undelete", {}, idempotent=True))
        return restores

    def _await_operation(self, operation: Mapping[str, Any]) -> None:
        """Wait for an operation.

        Raises:
            UserError: It failed, or did not end in time.
        """
        self._wait(operation, time.monotonic() + _RESTORE_SECONDS, time.sleep)

    def _wait(self, operation: Mapping[str, Any], until: float, sleep: Callable[[float], None]) -> None:
        while not operation.get("done"):
            if time.monotonic() > until:
                consequence = f"it is deleted, and was not restored within {_RESTORE_SECONDS:g} s."
                raise UserError(Problem(self._pool, None, consequence, "run the same command again."))
            sleep(_POLL_SECONDS)
            operation = self._client.get(f"{self._base}{operation['name']}")
        if error := operation.get("error"):
            consequence = f"it is deleted, and cannot be restored: {error.get('message')}."
            repair = "restore it: `gcloud iam workload-identity-pools undelete`."
            raise UserError(Problem(self._pool, None, consequence, repair))


def _channel(client: GoogleClient, names: Names) -> str:
    url = f"{endpoint('MONITORING')}v3/projects/{names.project}/notificationChannels"
    return _find_by_display_name(client, url, "notificationChannels", names.display_name)


def _budget(client: GoogleClient, names: Names) -> str:
    url = f"{endpoint('BILLING_BUDGETS')}billingAccounts/{names.billing_account}/budgets"
    return _find_by_display_name(client, url, "budgets", names.display_name)


def _find_by_display_name(client: GoogleClient, url: str, items: str, display_name: str) -> str:
    """Name of the first item with that display name, "" without one."""
    try:
        matches = (item for item in client.pages(url, items) if item.get("displayName") == display_name)
        return str(next((item["name"] for item in matches), ""))
    except ApiError as error:
        if error.status in _ABSENT:
            return ""
        raise


def _get(client: GoogleClient, url: str) -> dict[str, Any] | None:
    try:
        return client.get(url)
    except ApiError as error:
        if error.status in _ABSENT:
            return None
        raise


def lookup_error(error: RestError, project: str) -> UserError:
    """The error of a look-up that failed, with what follows."""
    consequence = "it is unknown what it holds already, so nothing is declared"
    repair = "make Google's APIs reachable with credentials of an owner of the project, then run it again."
    return UserError(caused_by(error, f"project {project}", consequence, repair))
