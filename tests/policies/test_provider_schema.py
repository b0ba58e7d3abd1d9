"""The packs against every input of the installed provider's SDK: no accelerator and no member is left unseen."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from bezel.resource_cost.detection.accelerators import requested_by
from bezel.resource_cost.inputs import UNKNOWN, Inputs
from bezel.resource_cost.nested_values import describes_only
from bezel_policies.config import PolicyConfig
from bezel_policies.security.access import no_public_invoker
from pulumi_offline_support.schema import properties, whole

if TYPE_CHECKING:
    from pulumi_offline_support.schema import Property

MACHINE = re.compile(r"machine_?(type|famil|serie)|instance_types?$|node_types?$|vm_size")
HARDWARE = re.compile(r"accelerator|gpu|(^|_)tpus?(_|$)|nvidia")
SAID = re.compile(r"accelerator|\bGPUs?\b|\bTPUs?\b|nvidia|machine[- ]?types?\b|machine series", re.IGNORECASE)
# Inputs that a name or the documentation brings up, and that hold no accelerator: read one by one.
HARMLESS = {
    "a kind of confidential computing": r".*\.confidential_instance_type",
    "how a GPU is kept ready, beside the input that asks for it": r"cloudrunv2\..*\.gpu_zonal_redundancy_disabled",
    "about the machine type in an input beside it": r".*\.(rank|enable_nested_virtualization|min_node_cpus|disk_type)",
    "shares of a sole-tenant node": r"compute\.NodeTemplate\.node_type_flexibility",
    "how many of what is asked for beside it": r"vertex\..*\.(max_replica_count|autoscaling_metric_specs|metric_name)",
    "told by Google": r"memorystore\.InstanceStateInfoUpdateInfo\.target_node_type",
    "a recommendation, which buys nothing": r"migrationcenter\..*",
    "a speed": r"vpcaccess\.Connector\.m(ax|in)_throughput",
    "nodes of VMware, which have none": r"vmwareengine\..*",
}
SWITCH = re.compile(r"public_access|unauthenticated|iam_disabled|system_authenticated")
MEMBER = re.compile(r"(^|_)members?$|^policy_data$|^(predefined|default)_acl$|^role_entities$|^special_group$")
NO_MEMBER = re.compile(
    r".*\.(exempted_members|denied_principals|excluded_principals)|accesscontextmanager\..*|gkehub\..*"
)


def token(each: Property) -> str:
    """The resource type of a property; of one that is nested, a type of the same package."""
    name = each.holder.removesuffix("Args")
    return f"gcp:{each.package}/{name[:1].lower()}{name[1:]}:{name}"


def nested_name(each: Property) -> str:
    """The class inside of a property, in the spelling of names."""
    return re.sub(r"(?<!^)([A-Z])", r"_\1", each.nested_class).lower()


def is_public(each: Property, value: object) -> bool:
    """Whether the security pack refuses a property with this value."""
    problems = no_public_invoker(token(each), Inputs(each.holding(value)), PolicyConfig())
    return next(problems, None) is not None


@pytest.fixture(scope="module")
def holding() -> list[Property]:
    """Properties that can hold an accelerator, by name, type or documentation."""
    harmless = re.compile("|".join(HARMLESS.values()))
    places = []
    for each in properties():
        name = f"{each.name} {nested_name(each)}"
        if (MACHINE.search(name) or HARDWARE.search(name) or SAID.search(each.documentation)) and not harmless.match(
            str(each)
        ):
            places.append(each)
    return places


@pytest.mark.slow
def test_every_property_that_can_hold_an_accelerator_is_seen(holding: list[Property]) -> None:
    unseen = set()
    for each in holding:
        machine = MACHINE.search(f"{each.name} {nested_name(each)}")
        for sample in ("a3-highgpu-8g", "z99-standard-4", UNKNOWN) if machine else ("nvidia-l4", "tpu-v9"):
            if not all(requested_by(token(each), inputs) for inputs in whole(each, each.holding(sample))):
                unseen.add(f"{each} = {sample}")
    assert not unseen
    assert len(holding) > 200  # the walk found the SDK


@pytest.mark.slow
def test_a_machine_without_accelerators_is_none_of_them(holding: list[Property]) -> None:
    machines = [each for each in holding if re.fullmatch(r"(instance_)?machine_types?", each.name)]
    assert len(machines) > 40
    by_path = "projects/p/zones/z/machineTypes/n1-standard-1"
    for each in machines:
        for plain in ("e2-standard-4", "n2d-highmem-8", "c4a-standard-1", by_path):
            assert requested_by(token(each), each.holding(plain)) is None, each


@pytest.mark.slow
def test_every_harmless_property_still_exists() -> None:
    names = [str(each) for each in properties()]
    for reason, pattern in HARMLESS.items():
        assert any(re.match(pattern, name) for name in names), reason


@pytest.mark.slow
def test_everybody_is_refused_in_every_text_of_every_type() -> None:
    unseen = set()
    for each in properties():
        if "_builtins.str" not in each.kind or describes_only(token(each)):
            continue
        about = re.search(r"labels$|^(annotations|description|display_name|metadata)$", each.name)
        refused_to = re.search(r"^(denied_principals|excluded_principals|public_access_prevention)$", each.name)
        if is_public(each, "allUsers") == bool(about or refused_to):
            unseen.add(str(each))
    assert not unseen


@pytest.mark.slow
def test_a_member_that_a_preview_cannot_know_is_refused() -> None:
    members = [each for each in properties() if MEMBER.search(each.name) and not NO_MEMBER.match(str(each))]
    unseen = [str(each) for each in members if not describes_only(token(each)) and not is_public(each, UNKNOWN)]
    assert len(members) > 300
    assert not unseen


@pytest.mark.slow
def test_every_switch_that_opens_a_resource_is_seen() -> None:
    switches = [each for each in properties() if "_builtins.bool" in each.kind and SWITCH.search(each.name)]
    assert len(switches) >= 5
    assert [str(each) for each in switches if not is_public(each, True)] == []
    closed = [no_public_invoker(token(each), Inputs({each.camel: False}), PolicyConfig()) for each in switches]
    assert [str(problem) for problems in closed for problem in problems] == []
