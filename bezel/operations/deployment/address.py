"""Address with a name of its own, as the outputs of a stack record it. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class DnsRecord:
    """A DNS record that the address needs; `name` ends with a dot."""

    name: str
    type: str
    data: str

    def line(self) -> str:
        """The record as a line of a zone file, without its time to live."""
        return f"{self.name} {self.type} {self.data}"


@dataclass(frozen=True)
class DeployedAddress:
    """The address of a stack.

    Attributes:
        domain: Its name.
        ip: IPv4 address of its load balancer, "" if it is not recorded.
        certificate: `projects/P/locations/global/certificates/C`, "" if it is not recorded.
        records: Records that the domain needs.
    """

    domain: str
    ip: str = ""
    certificate: str = ""
    records: tuple[DnsRecord, ...] = ()

    @property
    def url(self) -> str:
        """Its URL, which is the audience of its callers' tokens too."""
        return f"https://{self.domain}"


def address_of(output: object) -> DeployedAddress | None:
    """The address that the output `address` of a stack describes; None where it is another program's output."""
    if not isinstance(output, Mapping) or not output.get("domain"):
        return None
    texts = {name: str(output.get(name) or "") for name in ("domain", "ip", "certificate")}
    return DeployedAddress(**texts, records=tuple(_records(output.get("records"))))


def _records(listed: object) -> Iterator[DnsRecord]:
    for each in listed if isinstance(listed, list) else ():
        if isinstance(each, Mapping):
            yield DnsRecord(*(str(each.get(name) or "") for name in ("name", "type", "data")))
