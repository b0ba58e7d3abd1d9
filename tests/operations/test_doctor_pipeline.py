"""A pipeline's rights over a door's bucket, by the condition of its role in the project's policy."""

from typing import Any

import pytest

from bezel.operations.doctor.pipeline_checks import named_buckets, pipeline_jobs
from bezel.planner import make_plan
from bezel.rest import GoogleClient
from bezel_bootstrap.access import both, one_of_buckets, only_roles
from tests.support.operations.deployed import Deployed
from tests.support.planner.l4_stack import with_changes
from tests.support.rest.fake_google import Answer

ROLE = "projects/acme/roles/bezelDeployWeights"
DOOR = "acme-bezel-dev-door"


def binding(*buckets: str, role: str = ROLE) -> dict[str, Any]:
    """A grant of the role, as the set-up writes it."""
    return {"role": role, "condition": {"expression": both(one_of_buckets(buckets), only_roles(("roles/x",)))}}


@pytest.mark.parametrize(
    ("bindings", "names"),
    [
        ([binding("acme-models", DOOR)], ("acme-models", DOOR)),
        ([binding(DOOR, role="roles/storage.admin"), {"role": ROLE}], ()),
        ([], ()),
    ],
)
def test_buckets_are_those_that_the_set_up_names(bindings: list[dict[str, Any]], names: tuple[str, ...]) -> None:
    assert named_buckets({"bindings": bindings}, "acme") == names


@pytest.mark.parametrize(
    ("bindings", "states"),
    [([binding("acme-models")], ["warning"]), ([binding("acme-models", DOOR)], ["ok"]), ([], [])],
)
def test_doctor_names_the_command_where_the_bucket_is_missing(
    cloud: Deployed, bindings: list[dict[str, Any]], states: list[str]
) -> None:
    environ: Any = cloud.context.environ
    environ["GOOGLE_RESOURCE_MANAGER_CUSTOM_ENDPOINT"] = f"{cloud.server.url}/crm/"
    path = "/crm/projects/acme:getIamPolicy"
    cloud.server.routes.append(lambda call: Answer(json={"bindings": bindings}) if call.path == path else None)
    changes = {"cost": {"max_hourly_usd": 9}, "access": {"keys": True}}
    plan = make_plan(with_changes(changes), project="acme", stack="dev")
    none = make_plan(with_changes({"cost": {"max_hourly_usd": 9}}), project="acme", stack="bare")
    with GoogleClient(cloud.context.credentials) as client:
        (job,) = pipeline_jobs(cloud.context, client, {"dev": (plan, "acme"), "bare": (none, "acme")})
        checks = list(job.run())
    assert [each.state for each in checks] == states
    if states == ["warning"]:
        options = f"--weights-bucket acme-models --weights-bucket {DOOR}"
        assert checks[0].repair == f"run `bezel init` again, as before, with {options}."
