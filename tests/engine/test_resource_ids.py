"""The id told from the inputs is the one that the provider gives, for every type that the stand-in knows."""

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any

import pytest
from pulumi.dynamic import Resource

import bezel_components
import bezel_smoke
from bezel.engine.state.resource_ids import IDS, MAKES_NOTHING, derived_id
from bezel_plugin.table import CHECKS
from bezel_pulumi_offline.lifecycle.resource import ResourceType, fill
from bezel_pulumi_offline.resources import TYPES
from bezel_pulumi_offline.resources.iam_members import MemberType

# The platform numbers it: nothing but the platform can say which one a killed run made.
NUMBERED = {
    "gcp:billing/budget:Budget",
    "gcp:monitoring/alertPolicy:AlertPolicy",
    "gcp:monitoring/dashboard:Dashboard",
    "gcp:monitoring/notificationChannel:NotificationChannel",
    "gcp:monitoring/uptimeCheckConfig:UptimeCheckConfig",
    "gcp:secretmanager/secretVersion:SecretVersion",
}
NAMED = {
    "project": "acme",
    "location": "us-east4",
    "name": "llm",
    "repositoryId": "images",
    "repository": "images",
    "secretId": "token",
    "service": "run.googleapis.com",
    "accountId": "runner",
    "serviceAccountId": "projects/acme/serviceAccounts/runner@acme.iam.gserviceaccount.com",
    "workloadIdentityPoolId": "bezel",
    "workloadIdentityPoolProviderId": "github",
    "roleId": "deployer",
    "keyRing": "projects/acme/locations/us-east4/keyRings/pulumi",
    "cryptoKeyId": "projects/acme/locations/us-east4/keyRings/pulumi/cryptoKeys/states",
    "email": "runner@acme.iam.gserviceaccount.com",
    "bucket": "models",
    "map": "llm",
    "managedZone": "zone",
    "type": "A",
    "region": "us-east5",
    "router": "nodes",
    "role": "roles/run.invoker",
    "member": "user:a@b.c",
}


@pytest.mark.parametrize("kind", sorted(TYPES.items()), ids=lambda kind: kind[0])
def test_every_type_has_the_id_that_its_provider_gives_it(kind: tuple[str, ResourceType]) -> None:
    token, row = kind
    if token in NUMBERED:
        assert token not in IDS
        return
    # The way of a member's id in the stand-in; everything else is the row's own template.
    expected = fill(row.id, NAMED)
    if isinstance(row, MemberType):
        whole = expected.rpartition("/")[2] if row.parent == "project" else expected
        whole = NAMED[row.parent] if row.parent in ("serviceAccountId", "cryptoKeyId") else whole
        expected = f"{whole}/roles/run.invoker/user:a@b.c"
    assert derived_id(token, NAMED, None) == expected


def _subclasses(base: type) -> Iterator[Any]:
    for each in base.__subclasses__():
        yield each
        yield from _subclasses(each)


def test_of_each_check_of_the_package_it_is_known_too() -> None:
    assert set(CHECKS) == {token for token in MAKES_NOTHING if token.startswith("bezel:")}


def test_of_each_dynamic_resource_it_is_known_what_a_killed_run_leaves() -> None:
    for package in (bezel_components, bezel_smoke):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    prefix = "pulumi-python:dynamic/"
    dynamic_types = {f"pulumi-python:{each._resource_type_name}" for each in _subclasses(Resource)}
    known_types = {token for token in (*IDS, *MAKES_NOTHING) if token.startswith(prefix)}
    bootstraps = {token for token in known_types if token.startswith(f"{prefix}bootstrap:")}
    own_types = {token for token in dynamic_types if token.startswith((f"{prefix}components:", f"{prefix}smoke:"))}
    assert own_types == known_types - bootstraps
    assert len(own_types) >= 8


def test_the_request_for_a_lease_is_named_by_its_lease() -> None:
    token = "pulumi-python:dynamic/components:TpuRequest"
    assert derived_id(token, {"project": "acme", "name": "bezel-v6e4"}, None) == "projects/acme/leases/bezel-v6e4"
    assert derived_id(token, {"project": "acme"}, None) is None


def test_a_project_left_out_is_the_provider_s_own() -> None:
    """A project left out is the provider's own and a parent's path counts for itself."""
    service, member = "gcp:cloudrunv2/service:Service", "gcp:cloudrunv2/serviceIamMember:ServiceIamMember"
    inputs = {"location": "us-east4", "name": "llm"}
    assert derived_id(service, inputs, "acme") == "projects/acme/locations/us-east4/services/llm"
    whole = {
        **NAMED,
        "name": "projects/p/locations/l/services/s",
        "condition": {"title": "soon", "expression": "true"},
    }
    assert (
        derived_id(member, whole, "acme") == "projects/p/locations/l/services/s/roles/run.invoker/user:a@b.c/soon//true"
    )


@pytest.mark.parametrize(
    "inputs",
    [{}, {"location": "us-east4"}, {"location": "us-east4", "name": None}, {"location": "us-east4", "name": {}}],
)
def test_inputs_that_do_not_tell_give_no_id(inputs: dict[str, object]) -> None:
    assert derived_id("gcp:cloudrunv2/service:Service", inputs, "acme") is None
    assert derived_id("gcp:compute/instance:Instance", NAMED, "acme") is None
