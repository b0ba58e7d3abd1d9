"""Wrong regions and addresses: the value, what follows from it, how to repair it; each by itself and all at once."""

from typing import Any

import pytest

from bezel.planner import LeasePlan, Plan, make_plan
from tests.support.planner.l4_stack import check_refused, problems_of, with_changes
from tests.support.planner.v6e_stack import V6E4_MOE, lease_problems, with_lease_changes

LIMIT = {"cost": {"max_hourly_usd": 9}}
TWO = {"region": "", "regions": ["us-east4", "europe-west4"], **LIMIT}
DOMAIN = "llm.acme.example"
LONG = ".".join(["a" * 60] * 4)


def several(*regions: str, **changes: Any) -> dict[str, Any]:
    return {**TWO, "regions": [*regions], **changes}


def address(domain: str | None = DOMAIN, **more: Any) -> dict[str, Any]:
    return {"address": {"domain": domain, **more} if domain else more, **LIMIT}


# changes of the L4 stack; the key that is named; what the consequence says; what the repair says
REFUSED: dict[str, tuple[dict[str, Any], str, str, str]] = {
    "both keys": (
        {**TWO, "region": "us-east4"},
        "regions",
        "bezel:region is set too (us-east4)",
        "remove bezel:region",
    ),
    "neither key": ({"region": ""}, "region", "it is required", "or several as `bezel:regions: ["),
    "no region in the list": (
        {"region": "", "regions": []},
        "region",
        "it is required",
        "add `bezel:region: us-east4`",
    ),
    "text for a list": ({"region": "", "regions": "us-east4"}, "regions", "expected a list", "write a list"),
    "a number for a region": (several("us-east4", 7), "regions.1", "expected text", "quote it"),  # type: ignore[arg-type]
    "a number for the region": ({"region": 7}, "region", "expected text", "quote it"),
    "a region twice": (several("us-east4", "us-east4"), "regions.1", "named twice", "remove one of them"),
    "a region without the accelerator": (
        several("us-east4", "us-west1"),
        "regions.1",
        "does not offer nvidia-l4",
        "choose one of asia-southeast1",
    ),
    "an unknown region": (
        several("us-east4", "europe-wset4"),
        "regions.1",
        "does not offer",
        "did you mean europe-west4?",
    ),
    "a region without a price": (
        several("us-east4", "asia-southeast1"),
        "regions.1",
        "price is unknown",
        "region: asia-southeast1, usd_per_unit",
    ),
    "the first as an optional one": (
        {**TWO, "optional_regions": ["us-east4"]},
        "optional_regions.0",
        "checked before the others",
        "put another first",
    ),
    "an optional region of no list": (
        {**TWO, "optional_regions": ["europe-west1"]},
        "optional_regions.0",
        "none of bezel:regions",
        "europe-west4",
    ),
    "all regions optional": (
        {**TWO, "optional_regions": ["europe-west4", "us-east4"]},
        "optional_regions.1",
        "without it nothing",
        "remove it",
    ),
    "an optional region twice": (
        {**TWO, "optional_regions": ["europe-west4", "europe-west4"]},
        "optional_regions.1",
        "twice",
        "remove one",
    ),
    "an optional region of one": (
        {"optional_regions": ["europe-west4"]},
        "optional_regions",
        "cannot be without it",
        "as bezel:regions",
    ),
    "an optional region of a list of one": (
        several("us-east4", optional_regions=["europe-west4"]),
        "optional_regions",
        "cannot be without it",
        "name several as bezel:regions",
    ),
    "copies for one region": (
        {"weights": {"regional_buckets": True}},
        "weights.regional_buckets",
        "have no effect",
        "name several regions",
    ),
    "copies of the hub": (
        {**TWO, "weights": {"regional_buckets": True, "loading": "hub"}},
        "weights.regional_buckets",
        "from a bucket",
        "remove",
    ),
    "a bucket whose regions have no name": (
        {**TWO, "weights": {"regional_buckets": True, "bucket": "b" * 55}},
        "weights.bucket",
        "(64 characters)",
        "at most 54 characters",
    ),
    "a subnetwork of one region": (
        {**TWO, "vpc": {"subnetwork": "projects/host-1/regions/us-east4/subnetworks/llm"}},
        "vpc.subnetwork",
        "those in europe-west4 are refused",
        "that each region has",
    ),
    "a zone without a domain": (
        address(None, zone="acme"),
        "address.domain",
        "zone acme alone",
        "domain: llm.acme.example",
    ),
    "a zone of another project": (
        address(zone="projects/dns-1/managedZones/acme"),
        "address.zone",
        "of the project dns-1",
        "a zone of this project",
    ),
    "a zone of this project by its path": (
        address(zone="projects/bezel-local/managedZones/acme"),
        "address.zone",
        "it is a path",
        "write `zone: acme`",
    ),
    "a zone by a path of no project": (address(zone="/acme"), "address.zone", "no zone of this name", "the name"),
    "a domain without an owner": (address("llm.corp.internal"), "address.domain", "have no owner", "the host alone"),
    "a domain of Google's": (
        address("bezel-1234.us-east4.run.app"),
        "address.domain",
        "run.app is Google's",
        "the host alone",
    ),
    "a top-level domain with a digit": (
        address("llm.acme.c0m"),
        "address.domain",
        "with a top-level domain",
        "the host alone",
    ),
    "a zone by its DNS name": (
        address(zone="acme.example."),
        "address.zone",
        "no zone of this name",
        "managed-zones list",
    ),
    "a wildcard": (address("*.acme.example"), "address.domain", "for one host", "write the host alone"),
    "an IP address": (address("203.0.113.7"), "address.domain", "no authority issues", "write the host alone"),
    "a URL": (address("https://llm.acme.example"), "address.domain", "without scheme", "write the host alone"),
    "a domain with the dot of the root": (
        address(f"{DOMAIN}."),
        "address.domain",
        "without the dot",
        "remove the last dot",
    ),
    "a domain in upper case": (
        address("LLM.acme.example"),
        "address.domain",
        "come back in lower case",
        "in lower case",
    ),
    "a domain in other letters": (address("größe.example"), "address.domain", "only ASCII letters", "in punycode"),
    "a domain that is too long": (
        address(f"{LONG}.example"),
        "address.domain",
        "at most 63 characters each and 237",
        "the host alone",
    ),
    "a single label": (address("llm"), "address.domain", "no authority issues", "write the host alone"),
    "a domain that is no text": (address(7), "address.domain", "expected text", 'quote it: `"7"`'),  # type: ignore[arg-type]
    "ingress from inside": (
        {**address(), "access": {"ingress": "internal"}, "smoke": {"inside": True}},
        "access.ingress",
        "outside of the project's networks",
        "write all",
    ),
    "everyone behind an address": (
        {**address(), "access": {"public": True}},
        "access.public",
        "everyone on the internet",
        "bezel:access.invokers",
    ),
    "a key that is not there": (
        {"address": {"name": DOMAIN}},
        "address.name",
        "does not exist",
        "Known here: domain, zone",
    ),
}


@pytest.mark.parametrize(("changes", "key", "consequence", "repair"), REFUSED.values(), ids=REFUSED)
def test_a_wrong_region_or_address_is_refused(changes: Any, key: str, consequence: str, repair: str) -> None:
    check_refused(changes, f"bezel:{key}", consequence, repair)


ALLOWED: dict[str, dict[str, Any]] = {
    "an address without a zone": address(),
    "an address in a zone": address(zone="acme-example"),
    "a domain in punycode": address("xn--gre-6ka8i.example"),
    "a domain below a top-level one in punycode": address("llm.xn--p1ai"),
    "a domain with a label that is such a top-level one": address("internal.acme.example"),
    "a domain that ends as one of Google's does": address("myrun.app"),
    "one region as a list": several("us-east4"),
    "a region on invitation": several("us-east4", "us-central1"),
    "an optional region": {**TWO, "optional_regions": ["europe-west4"]},
    "a subnetwork by its name": {**TWO, "vpc": {"network": "own", "subnetwork": "llm"}},
    "copies for two regions": {**TWO, "weights": {"regional_buckets": True, "bucket": "b" * 50}},
    "ingress through the balancer": {
        **address(),
        "access": {"ingress": "internal-and-cloud-load-balancing"},
        "smoke": {"inside": True},
    },
}


@pytest.mark.parametrize("changes", ALLOWED.values(), ids=ALLOWED)
def test_a_right_region_or_address_is_planned(changes: dict[str, Any]) -> None:
    assert isinstance(make_plan(with_changes(changes), project="acme-llm", stack="l4-qat"), Plan)


def test_all_mistakes_are_reported_at_once() -> None:
    changes = {
        **several("us-east4", "us-west1", "us-east4"),
        "optional_regions": ["us-east4", "me-west1"],
        "address": {"domain": "*.acme.example", "zone": "a/b/c"},
    }
    keys = [problem.key.removeprefix("bezel:") for problem in problems_of(changes)]
    assert sorted(keys) == [
        "address.domain", "address.zone", "optional_regions.0", "optional_regions.1", "regions.1", "regions.2",
    ]  # fmt: skip


def test_invited_regions_are_warned_of_one_by_one() -> None:
    plan = make_plan(with_changes(several("us-east4", "us-central1")), project="acme-llm", stack="l4-qat")
    (warning,) = [text for text in plan.warnings if "on invitation only" in text]
    assert warning.startswith("us-central1 offers nvidia-l4 on invitation only")


def test_a_lease_has_an_address_but_one_region() -> None:
    plan = make_plan(with_lease_changes(V6E4_MOE, **address()), project="p", stack="moe")
    assert isinstance(plan, LeasePlan)
    assert plan.address
    assert (plan.address.failover, plan.address.url) == ("none", f"https://{DOMAIN}")
    assert (
        plan.cost.hourly_at_max.usd - plan.cost.machines_hourly.usd - plan.cost.gateway_hourly.usd
        == plan.address.cost.hourly.usd
    )  # type: ignore[union-attr]
    (problem,) = lease_problems(with_lease_changes(V6E4_MOE, region="", regions=["us-east5", "europe-west4"]))
    assert (problem.key, problem.value) == ("bezel:regions", "(set)")
    assert "its gateway runs in one region" in problem.consequence
    assert "name the gateway's region as bezel:region" in problem.repair


def test_all_about_several_regions_of_a_lease_is_refused_with_one_repair() -> None:
    regions = {"regions": ["us-east5", "us-east5"], "optional_regions": ["us-east5"]}
    problems = lease_problems(with_lease_changes(V6E4_MOE, weights={"regional_buckets": True}, **regions))
    assert [problem.key for problem in problems] == [
        "bezel:regions",
        "bezel:optional_regions",
        "bezel:weights.regional_buckets",
    ]
    assert all(problem.repair.startswith("remove it") for problem in problems)
    (missing,) = lease_problems(with_lease_changes(V6E4_MOE, region=""))
    assert (missing.key, missing.repair) == ("bezel:region", "add `bezel:region: us-east4`.")
