"""Network access of a service: callers that ingress would shut out, and egress settings without effect.

Facts: internal ingress admits the project's own networks and some of Google's services, whatever the caller's identity;
all others get 404 (Cloud Run's page on ingress). Direct VPC egress takes one network of the service's own project or of
its host project (its page on it), November 2026.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from bezel.errors import Problem, shown
from bezel.planner.base.problems import setting

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bezel.planner.base.deployment import ServicePlan, VpcPlan
    from bezel.planner.base.settings import Access, Smoke, Vpc, Weights

SMALLEST_RANGE = 26  # Cloud Run reserves addresses by sixteens, two for each instance (its page on direct VPC egress)

_NAME = r"[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?"
_NETWORK = re.compile(rf"(?:projects/[a-z0-9:.-]+/global/networks/)?{_NAME}")
_SUBNETWORK = re.compile(rf"(?:projects/[a-z0-9:.-]+/regions/[a-z0-9-]+/subnetworks/)?{_NAME}")
_TAG = re.compile(_NAME)


def check_way_in(access: Access, smoke: Smoke) -> list[Problem]:
    """Check that ingress admits the checks after a deploy; the stack file declares their place."""
    if access.ingress == "all":
        if not smoke.inside:
            return []
        return [
            Problem(
                setting("smoke.inside"),
                "true",
                f"with {setting('access.ingress')}: all the checks reach the service from anywhere: it has no effect.",
                "remove it.",
            )
        ]
    problems = []
    if not smoke.inside:
        problems.append(
            Problem(
                setting("access.ingress"),
                access.ingress,
                "whoever deploys from outside of the project's networks gets 404: the health check after the deploy "
                "would fail, as would `bezel bench`.",
                f"deploy from a machine in a network of the project and set `{setting('smoke')}: {{inside: true}}`, or "
                f"write {setting('access.ingress')}: all; callers need an identity there too.",
            )
        )
    if access.public:
        problems.append(
            Problem(
                setting("access.public"),
                "true",
                f"{setting('access.ingress')} is {access.ingress}: nobody on the internet gets in.",
                "remove one of the two.",
            )
        )
    return problems


def check_vpc(vpc: Vpc, weights: Weights) -> list[Problem]:
    """Check the network of a service's outgoing requests: its names, and what it cannot reach."""
    problems = [
        Problem(setting(f"vpc.{name}"), shown(value), "Cloud Run finds no such thing.", f"write {example}.")
        for name, value, form, example in (
            ("network", vpc.network, _NETWORK, "its name, or projects/PROJECT/global/networks/NAME"),
            (
                "subnetwork",
                vpc.subnetwork,
                _SUBNETWORK,
                "its name, or projects/PROJECT/regions/R/subnetworks/NAME",
            ),
        )
        if value is not None and not form.fullmatch(value)
    ]
    problems += [
        Problem(
            setting(f"vpc.tags.{number}"),
            shown(tag),
            "it is no network tag: lower case letters, digits and hyphens, at most 63, a letter first.",
            "rewrite it, e.g. llm.",
        )
        for number, tag in enumerate(vpc.tags)
        if not _TAG.fullmatch(tag)
    ]
    if vpc.network is None and vpc.subnetwork is None:
        problems += [
            Problem(
                setting(f"vpc.{name}"),
                shown(value),
                "without a network the service sends through none: it would have no effect.",
                f"name the network, `{setting('vpc')}: {{network: NAME}}`, or remove it.",
            )
            for name, value, default in (("egress", vpc.egress, "private-ranges-only"), ("tags", list(vpc.tags), []))
            if value != default
        ]
    elif vpc.egress == "all-traffic" and weights.loading == "hub":
        problems.append(
            Problem(
                setting("vpc.egress"),
                vpc.egress,
                "the model is loaded from the hub, on the internet, and the network has a way there only with a NAT "
                "gateway of its own: without one the start fails.",
                f"copy the weights into the bucket and remove {setting('weights.loading')}, or write "
                "private-ranges-only.",
            )
        )
    return problems


def subnetwork_name(vpc: VpcPlan, project: str, region: str) -> str:
    """The full name of a service's subnetwork: the one named, or the one with its network's name."""
    if "/" in vpc.subnetwork:
        return vpc.subnetwork
    owner = vpc.network.split("/")[1] if "/" in vpc.network else project
    return f"projects/{owner}/regions/{region}/subnetworks/{vpc.subnetwork or vpc.network.rpartition('/')[2]}"


def check_subnetwork(name: str, found: Mapping[str, Any] | None, service: ServicePlan) -> list[Problem]:
    """Check that a service can send from a subnetwork, before any resource is created.

    Args:
        name: its full name.
        found: as Compute Engine describes it; None where it does not exist.
        service: the one that would use it.
    """
    vpc = service.vpc
    assert vpc is not None  # noqa: S101 - called only with a network
    key = setting("vpc.subnetwork" if vpc.subnetwork else "vpc.network")
    value = vpc.subnetwork or vpc.network
    short = name.rpartition("/")[2]
    region = f"--region={service.region}"
    if f"/regions/{service.region}/" not in name:
        return [
            Problem(
                key,
                value,
                f"the service runs in {service.region}, and sends from a subnetwork of its own region only.",
                f"name one of {service.region} "
                f"(`gcloud compute networks subnets list --filter=region:{service.region}`).",
            )
        ]
    if found is None:
        return [
            Problem(
                key,
                value,
                f"{name} does not exist: Cloud Run refuses the service after all that it stands on was made.",
                f"make it, e.g. `gcloud compute networks subnets create {short} --network=NETWORK {region} "
                "--range=10.8.0.0/24 --enable-private-ip-google-access`, or name one that is there "
                f"(`gcloud compute networks subnets list --filter=region:{service.region}`).",
            )
        ]
    problems = []
    length = str(found.get("ipCidrRange") or "").rpartition("/")[2]
    if length.isdecimal() and int(length) > SMALLEST_RANGE:
        problems.append(
            Problem(
                key,
                value,
                f"its range is a /{length}, and Cloud Run takes none smaller than a /{SMALLEST_RANGE}.",
                f"name a larger one, or `gcloud compute networks subnets expand-ip-range {short} {region} "
                f"--prefix-length={SMALLEST_RANGE}`.",
            )
        )
    if vpc.egress == "all-traffic" and service.weights.bucket and not found.get("privateIpGoogleAccess"):
        problems.append(
            Problem(
                setting("vpc.egress"),
                vpc.egress,
                f"{name} has no Private Google Access: the service could not read its weights from the bucket.",
                f"`gcloud compute networks subnets update {short} {region} --enable-private-ip-google-access`, or "
                "write private-ranges-only.",
            )
        )
    return problems
