"""Interface of an API that grants leases, and the meaning of its refusals; the same for both back ends.

Leaves out the two APIs (`tpu`, `compute_engine`) and what follows from a response (`reconcile`).
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from bezel.leases.state.observation import phases_of
from bezel.rest import ApiError, GoogleClient, RestError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bezel.leases.state.observation import Observation, Phase

NOT_FOUND = 404
CONFLICT = 409
_REFUSALS = frozenset({400, 403, 404, 429})
# A rate limit, which passes by itself; any other quota limits the resources that a project may hold.
_RATE_LIMIT = re.compile(r"per (minute|second|100 seconds)|rate ?limit", re.IGNORECASE)
# About the caller, in every zone.
_NOT_ALLOWED = re.compile(r"permission '[\w.]+' denied|has not been used in project|is disabled", re.IGNORECASE)
_NOT_ENABLED = re.compile(r"has not been used in project \S+ before or it is disabled", re.IGNORECASE)
# About the zone: IAM reports "(or it may not exist)" also for a resource that the caller may not see.
_NO_SUCH_ZONE = re.compile(
    r"permission denied on '(projects/[^/']+/)?locations/[^/']+' \(or it may not exist"
    r"|not found or access is unauthorized|unknown (zone|location)|invalid value for field 'zone'",
    re.IGNORECASE,
)


class BackEnd(ABC):
    """An API that grants leases, for one project. All calls raise `RestError` where the result is unknown.

    Args:
        client: Client for Google's APIs.
        project: The project's id.
    """

    def __init__(self, client: GoogleClient, project: str) -> None:
        self._client = client
        self._project = project

    @abstractmethod
    def request(self, zone: str, name: str, body: Mapping[str, Any], request_id: str) -> str:
        """Request a lease; returns the name of the operation that stores the request, "" without one."""

    @abstractmethod
    def operation_result(self, zone: str, operation: str) -> tuple[bool, str]:
        """Whether an operation is over, and why it failed ("" where it did not)."""

    @abstractmethod
    def observe(self, zone: str, name: str) -> Observation:
        """The observed state of a lease."""

    @abstractmethod
    def delete(self, zone: str, name: str) -> None:
        """Begin to delete it, with all that runs on it; it is no error if it is gone already."""

    @abstractmethod
    def guest_attributes(self, zone: str, name: str) -> Sequence[Mapping[str, Any]]:
        """What its machine wrote below `bezel/`, each as namespace, key and value; empty before the first."""

    def phases(self, zone: str, name: str) -> Mapping[str, Phase]:
        """Boot phases that its machine reports, by name; {} before the first."""
        return phases_of(self.guest_attributes(zone, name))

    @abstractmethod
    def attributes(self, zone: str, name: str) -> Mapping[str, str]:
        """Metadata attributes of its machine, by name; {} where there is none."""

    @abstractmethod
    def set_attribute(self, zone: str, name: str, key: str, value: str) -> str:
        """Set one attribute and leave the others as they are; returns the name of the operation, "" without one."""

    @abstractmethod
    def serial_output(self, zone: str, name: str) -> str:
        """Its console output; "" where the API has none."""

    @abstractmethod
    def list(self, zone: str) -> list[Observation]:
        """All leases in a zone that the API shows, Bezel's or not; an unknown zone is an `ApiError`."""

    @abstractmethod
    def has_hardware(self, zone: str, kind: str) -> bool:
        """Whether the zone has hardware of a kind: an accelerator type or a machine type."""

    def _call(self, method: str, url: str, **options: Any) -> dict[str, Any] | None:
        """The response of a request; None where what it names does not exist."""
        try:
            return self._client.request(method, url, **options)
        except ApiError as error:
            if error.status == NOT_FOUND:
                return None
            raise


def refusal(error: RestError) -> str | None:
    """Why a zone refused a request, in Google's words; None where the failure may pass or is not about the zone."""
    if not isinstance(error, ApiError) or error.status not in _REFUSALS:
        return None
    if _RATE_LIMIT.search(error.message) or (error.status == 403 and _NOT_ALLOWED.search(error.message)):
        return None
    return f"{error.status} {error.reason}: {error.message}".replace(" :", ":")


def no_such_zone(error: ApiError) -> bool:
    """Whether a request failed because the API knows no such zone: no lease can be there."""
    return error.status in {400, 403, 404} and _NO_SUCH_ZONE.search(error.message) is not None


def not_enabled(error: ApiError) -> bool:
    """Whether the project has not enabled the API: it has no leases there."""
    return error.status == 403 and _NOT_ENABLED.search(error.message) is not None


def is_transient(error: RestError) -> bool:
    """Whether the same call may succeed later: no response, a server error, or a rate limit."""
    if not isinstance(error, ApiError):
        return isinstance(error, UnreachableError)
    return error.status in {200, 429} or error.status >= 500


def not_yet_deletable(error: ApiError) -> bool:
    """Whether a deletion was refused for now, as another operation is running (Google's 400, 409 and 412)."""
    return error.status in {400, CONFLICT, 412}
