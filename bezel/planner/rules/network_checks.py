"""Network access of a service: callers that ingress would shut out, and egress settings without effect.

Facts: internal ingress admits the project's own networks and some of Google's services, whatever the caller's identity;
all others get 404 (Cloud Run's page on ingress). Direct VPC egress takes one network of the service's own project or of
its host project (its page on it), November 2026.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from bezel.planner.base.problems import setting
from bezel_base.errors import Problem
from bezel_base.text.shell import shell_word

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from bezel.planner.base.deployment import ServicePlan
    from bezel.planner.base.settings import Access, Smoke, Vpc, Weights

SMALLEST_RANGE = 26  # Cloud Run reserves addresses by sixteens, two for each instance (its page on direct VPC egress)

_NAME = r"[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?"
_NETWORK = re.compile(rf"(?:projects/[a-z0-9:.-]+/global/networks/)?{_NAME}")
_SUBNETWORK = re.compile(rf"(?:projects/[a-z0-9:.-]+/regions/[a-z0-9-]+/subnetworks/)?{_NAME}")
_SUBNETWORK_REGION = re.compile(r"/regions/([a-z0-9-]+)/")
_TAG = re.compile(_NAME)


def check_ingress(access: Access, smoke: Smoke) -> Iterator[Problem]:
    """Check that ingress admits the checks after a deploy; the stack file declares from where they run."""
    ingress = setting("access.ingress")
    if access.ingress == "all":
        if smoke.inside:
            consequence = f"with {ingress}: all the checks reach the service from anywhere: it has no effect."
            yield Problem(setting("smoke.inside"), True, consequence, "remove it.")
        return
    if not smoke.inside:
        yield Problem(
            ingress,
            access.ingress,
            "requests from outside of the project's networks get 404: the health check after the deploy would fail, "
            "as would `bezel bench`.",
            f"deploy from a machine in a network of the project and set `{setting('smoke')}: {{inside: true}}`, or "
            f"write {ingress}: all; callers need an identity there too.",
        )
    if access.public:
        consequence = f"{ingress} is {access.ingress}: requests from the internet are refused."
        yield Problem(setting("access.public"), True, consequence, "remove one of the two.")


def check_vpc(vpc: Vpc, weights: Weights, regions: Sequence[str]) -> Iterator[Problem]:
    """Check the network of a service's outgoing requests: its names, and what it cannot reach from its regions."""
    match = _SUBNETWORK_REGION.search(vpc.subnetwork or "")
    if match and len(regions) > 1:
        yield Problem(
            setting("vpc.subnetwork"),
            vpc.subnetwork,
            f"it is in {match[1]}, and a service sends from a subnetwork of its own region only: those in "
            f"{', '.join(region for region in regions if region != match[1])} are refused.",
            "name a subnetwork that each region has, e.g. `subnetwork: llm`, and its network.",
        )
    for name, value, form, example in (
        ("network", vpc.network, _NETWORK, "projects/PROJECT/global/networks/NAME"),
        ("subnetwork", vpc.subnetwork, _SUBNETWORK, "projects/PROJECT/regions/R/subnetworks/NAME"),
    ):
        if value is not None and not form.fullmatch(value):
            consequence = f"it is not a valid name of a {name}: Cloud Run would not find it."
            yield Problem(setting(f"vpc.{name}"), value, consequence, f"write its name, or {example}.")
    for number, tag in enumerate(vpc.tags):
        if not _TAG.fullmatch(tag):
            consequence = "it is not a network tag: lower case letters, digits and hyphens, at most 63, a letter first."
            yield Problem(setting(f"vpc.tags.{number}"), tag, consequence, "rewrite it, e.g. llm.")
    if vpc.network is None and vpc.subnetwork is None:
        yield from (
            Problem(
                setting(f"vpc.{name}"),
                value,
                "the service sends through no network: it would have no effect.",
                f"name the network, `{setting('vpc')}: {{network: NAME}}`, or remove it.",
            )
            for name, value, default in (("egress", vpc.egress, "private-ranges-only"), ("tags", vpc.tags, ()))
            if value != default
        )
    elif vpc.egress == "all-traffic" and weights.loading == "hub":
        yield Problem(
            setting("vpc.egress"),
            vpc.egress,
            "the model is loaded from the hub, on the internet, which the network reaches only with a NAT gateway of "
            "its own: without one the start fails.",
            f"copy the weights into the bucket and remove {setting('weights.loading')}, or write private-ranges-only.",
        )


def subnetwork_name(vpc: Vpc, project: str, region: str) -> str:
    """The full name of a service's subnetwork: the one named, or the one with its network's name."""
    name = vpc.subnetwork or vpc.network or ""
    if "/subnetworks/" in name:
        return name
    owner = vpc.network.split("/")[1] if vpc.network and "/" in vpc.network else project
    return f"projects/{owner}/regions/{region}/subnetworks/{name.rpartition('/')[2]}"


def check_subnetwork(name: str, subnetwork: Mapping[str, Any] | None, service: ServicePlan) -> Iterator[Problem]:
    """Check that a service can send from a subnetwork, before any resource is created.

    Args:
        name: its full name.
        subnetwork: as Compute Engine describes it; None where it does not exist.
        service: the one that would use it.
    """
    vpc, in_region = service.vpc, f"--region={shell_word(service.region)}"
    assert vpc is not None  # noqa: S101 - called only with a network
    key, value = setting("vpc.subnetwork" if vpc.subnetwork else "vpc.network"), vpc.subnetwork or vpc.network
    gcloud, short = "gcloud compute networks subnets", name.rpartition("/")[2]
    listing = f"`{gcloud} list --filter={shell_word(f'region:{service.region}')}`"
    if f"/regions/{service.region}/" not in name:
        consequence = f"the service runs in {service.region}, and sends from a subnetwork of its own region only."
        yield Problem(key, value, consequence, f"name one of {service.region} ({listing}).")
        return
    if subnetwork is None:
        yield Problem(
            key,
            value,
            f"{name} does not exist: Cloud Run refuses the service after the resources that it needs are created.",
            f"create it, e.g. `{gcloud} create {shell_word(short)} --network=NETWORK {in_region} --range=10.8.0.0/24 "
            f"--enable-private-ip-google-access`, or name an existing one ({listing}).",
        )
        return
    length = str(subnetwork.get("ipCidrRange") or "").rpartition("/")[2]
    if length.isdecimal() and int(length) > SMALLEST_RANGE:
        yield Problem(
            key,
            value,
            f"its range is a /{length}; Cloud Run needs at least a /{SMALLEST_RANGE}.",
            f"name a larger one, or `{gcloud} expand-ip-range {short} {in_region} --prefix-length={SMALLEST_RANGE}`.",
        )
    if vpc.egress == "all-traffic" and service.weights.bucket and not subnetwork.get("privateIpGoogleAccess"):
        yield Problem(
            setting("vpc.egress"),
            vpc.egress,
            f"{name} has no Private Google Access: the service could not read its weights from the bucket.",
            f"`{gcloud} update {short} {in_region} --enable-private-ip-google-access`, or write private-ranges-only.",
        )
