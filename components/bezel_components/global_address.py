"""One address with a name of its own for the Cloud Run services of one or several regions.

Owns a global external Application Load Balancer: address, an endpoint group for each region's service, backend service,
URL map, HTTPS proxy with its TLS policy, forwarding rule; the certificate of the domain (Certificate Manager, proved by
a DNS record); and the records, where the domain's zone is in the project. Where it is elsewhere, `records` are the ones
to set there. Leaves out the services, which check who calls: the balancer passes `Authorization` on and checks nothing.

- A service accepts tokens for the address only with `https://DOMAIN` as one of its `audiences`: then one token is good
  in every region.
- Only port 443 is open. A redirect from port 80 would get each token of a client with a wrong URL in plain text first.
- The nearest region answers. Where there are several, one that fails five times in a row is left out for 30 s, longer
  each time. The balancer's proxies count each for itself, and count answers alone: so a region is in use until each
  proxy saw five failures. That is for services that scale to zero; where each region keeps an instance with a
  readiness probe, Cloud Run reports its health to the balancer, without a setting here.
- No retry policy: a repeated POST is a generation paid twice.
- Names are chosen by the provider (`NAME-1a2b3c4`): a fixed name would be deleted before its successor is made, which
  Google refuses for what is in use. So another domain, service or region passes in one update, with the new one made
  first. Nothing here changes the address itself.
- A service behind it is best deleted some time after the balancer has left it: `ServiceDrain` waits for that.
- A deploy does not wait for the certificate: it is issued minutes to hours after its record is there, and until then
  clients cannot connect.
- A record of the same name and type that was in the zone before is replaced, as the provider does it.

Facts: the limits of serverless endpoint groups, outlier detection and its per-proxy count (docs of Compute and Cloud
Run, November 2026); names and order of replacements as the provider's (recorded in November 2026).

Example:
    ```python
    address = GlobalAddress(
        "address",
        GlobalAddressArgs(project="acme-llm", domain="llm.acme.example", services={"us-east4": "chat"}),
    )
    pulumi.export("address", address.url)
    pulumi.export("records", address.records)
    ```
"""

import re
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

import pulumi
from pydantic import Field, field_validator

from bezel.planner.address.domain import domain_problem
from bezel.planner.address.failover import EJECTION_SECONDS, FAILURES, SWEEP_SECONDS
from bezel_base.errors import Problem
from bezel_components.base.argument_errors import ArgumentsError
from bezel_components.base.arguments import ComponentArgs, child_options
from bezel_components.base.check_resource import CheckResource
from bezel_components.base.dynamic import own_urn
from bezel_components.providers.service_drain import ServiceDrainProvider

APIS = ("compute.googleapis.com", "certificatemanager.googleapis.com", "dns.googleapis.com")
"""APIs that the resources need; the last one only with a zone."""
_RECORD_SECONDS = 300
# Of 63 characters, 8 are for the provider's suffix and 24 for the dash and the longest region's name.
_MAX_LENGTH = 31
_NAME = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_REGION = re.compile(r"[a-z]+-[a-z]+\d+")
_SERVICE = re.compile(r"[a-z]([-a-z0-9]{0,47}[a-z0-9])?")


class GlobalAddressArgs(ComponentArgs):
    """Arguments of `GlobalAddress`."""

    project: str
    domain: str
    """Name of the address, e.g. `llm.acme.example`."""
    services: Mapping[str, str] = Field(min_length=1)
    """Region -> name of the Cloud Run service there, in the same project."""
    zone: str = ""
    """Name of the project's Cloud DNS zone that holds the domain; "" if the records are set elsewhere."""
    labels: Mapping[str, str] = Field(default_factory=dict)
    """Labels of those resources that have any; `VllmService` adds its stack, environment and model."""

    @field_validator("domain")
    @classmethod
    def _is_a_host(cls, domain: str) -> str:
        if problem := domain_problem(domain):
            raise ValueError(f"{domain!r} cannot name an address: {problem}")
        return domain

    @field_validator("zone")
    @classmethod
    def _is_a_zone(cls, zone: str) -> str:
        if zone and not (len(zone) <= 63 and _NAME.fullmatch(zone)):
            raise ValueError(
                f"the project can have no zone of the name {zone!r}, so no record could be made; write the zone's name"
                " (gcloud dns managed-zones list), or omit zone and set `records` where the domain is served"
            )
        return zone

    @field_validator("services")
    @classmethod
    def _are_services(cls, services: Mapping[str, str]) -> Mapping[str, str]:
        for region, service in services.items():
            if not _REGION.fullmatch(region):
                raise ValueError(f"{region!r} is not a region, so no service is there; write one, e.g. us-east4")
            if not _SERVICE.fullmatch(service):
                raise ValueError(
                    f"{service!r} is not a valid name of a Cloud Run service, so {region} would answer nothing; write"
                    " the service's name, without its URL"
                )
        return services


class GlobalAddress(pulumi.ComponentResource):
    """A load balancer with a certificate in front of Cloud Run services.

    Attributes:
        url: `https://DOMAIN`, known in every preview; the audience of identity tokens.
        address: IPv4 address that the domain must lead to.
        records: DNS records that the domain needs, each with `name`, `type` and `data`; with `zone` they are made.
        certificate: `projects/P/locations/global/certificates/C`: its state says why it is not issued.
    """

    def __init__(self, name: str, args: GlobalAddressArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("bezel:address:GlobalAddress", name, None, opts)
        if len(name) > _MAX_LENGTH or not _NAME.fullmatch(name):
            consequence = "names in Google Cloud begin with it, and must be lower-case letters, digits and dashes."
            raise ArgumentsError(
                Problem("GlobalAddress name", name, consequence, f"shorten it to {_MAX_LENGTH} such characters.")
            )
        self._prefix, self._args, self._opts = name, args, opts
        self.url = f"https://{args.domain}"
        ip = self._make("compute/globalAddress:GlobalAddress", "ip", {"address": None, "labels": dict(args.labels)})
        self.address = _output(ip, "address")
        certificates = self._certificates()
        rule = self._forward(certificates)
        if args.zone:
            self._record("record", f"{args.domain}.", "A", self.address, wait=[rule])
        self.register_outputs({key: getattr(self, key) for key in ("url", "address", "records", "certificate")})

    def _certificates(self) -> pulumi.CustomResource:
        """Declare the map with the domain's certificate."""
        domain, labels = self._args.domain, dict(self._args.labels)
        proof = self._make(
            "certificatemanager/dnsAuthorization:DnsAuthorization",
            "proof",
            {"domain": domain, "labels": labels, "dnsResourceRecords": None},
        )
        record = _output(proof, "dnsResourceRecords").apply(lambda records: records[0])
        made: list[pulumi.Resource] = []
        if self._args.zone:
            made.append(self._record("proof-record", record["name"], record["type"], record["data"]))
        host = self.address.apply(lambda ip: {"name": f"{domain}.", "type": "A", "data": ip})
        self.records = pulumi.Output.all(host, record)
        certificate = self._make(
            "certificatemanager/certificate:Certificate",
            "certificate",
            {"managed": {"domains": [domain], "dnsAuthorizations": [proof.id]}, "labels": labels},
            wait=made,
        )
        self.certificate = certificate.id
        certificates = self._make(
            "certificatemanager/certificateMap:CertificateMap", "certificates", {"labels": labels, "name": None}
        )
        self._entry = self._make(
            "certificatemanager/certificateMapEntry:CertificateMapEntry",
            "entry",
            {
                "map": _output(certificates, "name"),
                "hostname": domain,
                "certificates": [certificate.id],
                "labels": labels,
            },
        )
        return certificates

    def _forward(self, certificates: pulumi.CustomResource) -> pulumi.Resource:
        """Declare what leads from the address to the services."""
        groups = [
            self._make(
                "compute/regionNetworkEndpointGroup:RegionNetworkEndpointGroup",
                region,
                {"region": region, "networkEndpointType": "SERVERLESS", "cloudRun": {"service": service}},
            )
            for region, service in sorted(self._args.services.items())
        ]
        backend = {
            "loadBalancingScheme": "EXTERNAL_MANAGED",
            "protocol": "HTTPS",
            "backends": [{"group": group.id} for group in groups],
            **({"outlierDetection": _outlier_detection(len(groups))} if len(groups) > 1 else {}),
        }
        service = self._make("compute/backendService:BackendService", "backend", backend)
        routes = self._make("compute/uRLMap:URLMap", "routes", {"defaultService": service.id})
        tls = self._make("compute/sSLPolicy:SSLPolicy", "tls", {"profile": "MODERN", "minTlsVersion": "TLS_1_2"})
        proxy = self._make(
            "compute/targetHttpsProxy:TargetHttpsProxy",
            "proxy",
            {
                "urlMap": routes.id,
                "sslPolicy": tls.id,
                "certificateMap": pulumi.Output.concat("//certificatemanager.googleapis.com/", certificates.id),
            },
            wait=[self._entry],
        )
        return self._make(
            "compute/globalForwardingRule:GlobalForwardingRule",
            "rule",
            {
                "loadBalancingScheme": "EXTERNAL_MANAGED",
                "ipAddress": self.address,
                "portRange": "443",
                "target": proxy.id,
                "labels": dict(self._args.labels),
            },
        )

    def _record(
        self, role: str, name: Any, kind: Any, data: Any, wait: Sequence[pulumi.Resource] = ()
    ) -> pulumi.CustomResource:
        inputs = {
            "managedZone": self._args.zone,
            "name": name,
            "type": kind,
            "ttl": _RECORD_SECONDS,
            "rrdatas": [data],
        }
        return self._make("dns/recordSet:RecordSet", role, inputs, wait)

    def _make(
        self, token: str, role: str, inputs: Mapping[str, Any], wait: Sequence[pulumi.Resource] = ()
    ) -> pulumi.CustomResource:
        options = child_options(self, self._opts, depends_on=wait, version=version("pulumi-gcp"))
        props = {"project": self._args.project, **inputs}
        return pulumi.CustomResource(f"gcp:{token}", f"{self._prefix}-{role}", props, options)


def _output(resource: pulumi.Resource, key: str) -> pulumi.Output[Any]:
    """An output of a resource that is declared by its token, with None as its input."""
    output: pulumi.Output[Any] = vars(resource)[key]
    return output


def _outlier_detection(regions: int) -> dict[str, Any]:
    """The rule by which a failing region is left out, never the last one."""
    return {
        "consecutiveErrors": FAILURES,
        "enforcingConsecutiveErrors": 100,
        "interval": {"seconds": SWEEP_SECONDS},
        "baseEjectionTime": {"seconds": EJECTION_SECONDS},
        "maxEjectionPercent": 100 * (regions - 1) // regions,
    }


class ServiceDrainArgs(ComponentArgs):
    """Arguments of `ServiceDrain`."""

    project: str
    service: str
    """`projects/P/locations/L/services/S`; another one replaces the wait, so the former service has its own."""
    stack_label: str
    """Value of the label `stack` of the address's forwarding rule."""
    seconds: float = Field(300, ge=0)
    """Length of the wait: as long as the provider lets connections of a backend service drain."""


class ServiceDrain(CheckResource, module="components", name="ServiceDrain"):
    """Wait before a service behind an address is deleted, in which requests that it has begun may end.

    The balancer was updated before: a service of another name or region has taken over. Its proxies hear of that one
    after the other. Make this depend on the service, and the address depend on this. In a destroy no rule of the stack
    is left by then, so it does not wait.
    """

    def __init__(self, name: str, args: ServiceDrainArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        token = "pulumi-python:dynamic/components:ServiceDrain"  # noqa: S105 - a type token
        super().__init__(ServiceDrainProvider(), name, {**args.model_dump(), "urn": own_urn(name, token, opts)}, opts)
