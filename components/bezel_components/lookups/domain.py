"""Lookup of a domain before anything is declared: its zone, records and certificates. Reads only, within seconds."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from bezel.rest import ApiError, GoogleClient, endpoint

_SECONDS = 10.0
Description = dict[str, Any]


@dataclass(frozen=True)
class DomainState:
    """What a project has of a domain.

    Attributes:
        zone: The zone in Cloud DNS's description; None where there is none, or none was asked for.
        records: Its records of the names that were asked for.
    """

    zone: Description | None
    records: tuple[Description, ...]


def look_up_domain(project: str, zone: str, names: Callable[[Mapping[str, Any]], Iterable[str]]) -> DomainState:
    """A zone with some of its records. A project that has not enabled Cloud DNS has no zone.

    Args:
        project: Id of the project.
        zone: Name of the zone.
        names: Makes the names of the records from the zone.

    Raises:
        RestError: It could not be read.
    """
    with _client() as client:
        address = f"{endpoint('DNS')}projects/{project}/managedZones/{quote(zone, safe='')}"
        try:
            described = client.get(address)
        except ApiError as error:
            if error.status == 404 or error.is_disabled:
                return DomainState(None, ())
            raise
        records = [
            record
            for name in names(described)
            for record in client.pages(f"{address}/rrsets", "rrsets", params={"name": name})
        ]
        return DomainState(described, tuple(records))


def look_up_certificates(project: str) -> tuple[Description, ...]:
    """The certificates of a project in Certificate Manager's description; none where it is not enabled.

    Raises:
        RestError: They could not be read.
    """
    with _client() as client:
        address = f"{endpoint('CERTIFICATE_MANAGER')}projects/{project}/locations/global/certificates"
        try:
            return tuple(client.pages(address, "certificates"))
        except ApiError as error:
            if error.is_disabled:
                return ()
            raise


def _client() -> GoogleClient:
    return GoogleClient(timeout_seconds=_SECONDS, deadline_seconds=_SECONDS)
