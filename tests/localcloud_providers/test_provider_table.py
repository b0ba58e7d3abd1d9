"""The table against the installed SDK: no property that the SDK lacks, and no silent gap where it has more."""

import importlib
import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest

from bezel.localcloud.providers.fields import Fields, Mark
from bezel.localcloud.providers.rows import TYPES

# What a program cannot use on localcloud: there is no recording of how it goes over the wire, and Check refuses it by
# name; or it is Google's own, which the SDK lets a program set nevertheless.
LEFT_OUT: dict[str, set[str]] = {
    "gcp:cloudrunv2/service:Service": {
        "-functional_type",
        "-ssh_enabled",
        "-template.containers.build_infos",
        "-template.sandboxes.templates.envs",
        "-template.sandboxes.templates.volume_mounts",
        "-template.sandboxes.templates.working_dir",
        "-template.workload_identity_config",
    },
    "gcp:secretmanager/secret:Secret": {"-secret_type"},
    "gcp:storage/bucket:Bucket": {
        "-enable_object_retention",
        "-encryption.customer_managed_encryption_enforcement_config",
        "-encryption.customer_supplied_encryption_enforcement_config",
        "-encryption.google_managed_encryption_enforcement_config",
        "-ip_filter.allow_all_service_agent_access",
        "-ip_filter.allow_cross_org_vpcs",
        "-ip_filter.public_network_source",
        "-ip_filter.vpc_network_sources",
        "-lifecycle_rules.condition.send_age_if_zero",
        "-lifecycle_rules.condition.send_days_since_custom_time_if_zero",
        "-lifecycle_rules.condition.send_days_since_noncurrent_time_if_zero",
        "-lifecycle_rules.condition.send_num_newer_versions_if_zero",
        "-lifecycle_rules.condition.with_state",
        "-retention_policy.is_locked",
        "-soft_delete_policy.effective_time",
    },
    "gcp:storage/bucketObject:BucketObject": {
        "-contexts",
        "-customer_encryption",
        "-force_empty_content_type",
        "-retention",
    },
}


def snake(name: str) -> str:
    return re.sub(r"[A-Z]", lambda found: "_" + found[0].lower(), name)


def compared(fields: Fields, parameters: dict[str, Any], inputs: Any, path: str = "") -> Iterator[str]:
    """`+path` for a property of ours that the SDK lacks, `-path` for one of the SDK's that we lack."""
    ours = {snake(item.name): item for item in fields if not item.marks & (Mark.OUTPUT | Mark.REFUSED)}
    yield from (f"+{path}{name}" for name in sorted(ours.keys() - parameters.keys()))
    yield from (f"-{path}{name}" for name in sorted(parameters.keys() - ours.keys()))
    for name, item in ours.items():
        nested = re.findall(r"ForwardRef\('(\w+Args)'", str(parameters.get(name)))
        if item.fields and nested:
            inner = dict(inspect.signature(getattr(inputs, nested[0]).__init__).parameters)
            del inner["__self__"]
            yield from compared(item.fields, inner, inputs, f"{path}{name}.")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # the SDK's own, at import
@pytest.mark.parametrize("token", TYPES)
def test_the_row_has_the_properties_of_the_sdk(token: str) -> None:
    found = re.fullmatch(r"gcp:(\w+)/(\w+):(\w+)", token)
    assert found
    package = f"pulumi_gcp.{found[1]}"
    module = importlib.import_module(f"{package}.{snake(found[2]).replace('i_a_m', 'iam')}")
    parameters = dict(inspect.signature(getattr(module, found[3])._internal_init).parameters)
    for name in ("__self__", "resource_name", "opts", "__props__"):
        del parameters[name]
    inputs = importlib.import_module(f"{package}._inputs")
    # The provider's own, between the program's labels and Google's.
    fields = tuple(item for item in TYPES[token].fields if not item.name.startswith("effective"))
    assert set(compared(fields, parameters, inputs)) == LEFT_OUT.get(token, set())
