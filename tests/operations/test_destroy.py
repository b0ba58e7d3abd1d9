"""Destruction in two steps: the plan is the state's, by name, and what is protected cannot be confirmed."""

from pathlib import Path
from typing import Any

import pytest

from bezel.operations.changes.confirmations import ConfirmationError, Confirmations
from bezel.operations.context import Context, NotDeployedError
from bezel.operations.destroy import DestroyArguments, plan_destroy
from tests.support.gitops.pipeline import PLUGINS
from tests.support.operations.deployed import Deployed, service_resource, state_of

pytestmark = pytest.mark.slow  # the engine exports the state
BUCKET = "gcp:storage/bucket:Bucket"


@pytest.fixture
def context(cloud: Deployed) -> Context:
    (cloud.folder / "Pulumi.dev.yaml").write_text("config: {}\n")
    (cloud.folder / "state").mkdir()
    added = {"PULUMI_CONFIG_PASSPHRASE": "not a secret", "HOME": str(cloud.folder), "PATH": f"{PLUGINS}:/usr/bin:/bin"}
    return Context(cloud.folder, {**cloud.context.environ, **added}, show=lambda _line: None)


def keep(cloud: Deployed, *resources: dict[str, Any]) -> Path:
    root = {"urn": "urn:pulumi:dev::bezel::pulumi:pulumi:Stack::bezel-dev", "type": "pulumi:pulumi:Stack"}
    state = state_of()
    state["checkpoint"]["stack"] = "organization/bezel/dev"
    state["checkpoint"]["latest"]["resources"] = [root, *resources]
    return cloud.keep("dev", state)


def bucket(**values: Any) -> dict[str, Any]:
    urn = f"urn:pulumi:dev::bezel::{BUCKET}::data"
    return {"urn": urn, "type": BUCKET, "custom": True, "id": "acme-models", **values}


def test_everything_that_the_state_holds_is_named_with_its_price_and_its_loss(
    cloud: Deployed, context: Context
) -> None:
    keep(cloud, bucket(), service_resource())
    plan = plan_destroy(context, DestroyArguments(stack="dev", wait="0s"))
    assert [(change.op, change.name) for change in plan.changes] == [("delete", "data"), ("delete", "service")]
    assert f"data ({BUCKET}): acme-models" in plan.destroyed
    assert "data: every object in it, e.g. the model's files and the compile cache" in plan.lost
    assert plan.price is not None
    assert plan.price.startswith("1.05 -> 0.00 USD/h (-1.05)")
    assert (plan.refusals, plan.confirm_name) == ((), "dev")


@pytest.mark.parametrize("protected", [bucket(protect=True), service_resource(deletionProtection=True)])
def test_what_is_protected_cannot_be_confirmed(cloud: Deployed, context: Context, protected: dict[str, Any]) -> None:
    keep(cloud, protected)
    plan = plan_destroy(context, DestroyArguments(stack="dev", wait="0s"))
    assert len(plan.refusals) == 1
    with pytest.raises(ConfirmationError, match="nothing was changed"):
        Confirmations().offer(plan, "a")


def test_what_is_retained_is_named_as_staying(cloud: Deployed, context: Context) -> None:
    keep(cloud, bucket(retainOnDelete=True))
    plan = plan_destroy(context, DestroyArguments(stack="dev", wait="0s"))
    assert plan.warnings == ("data stays in the cloud: it is retained on deletion",)


def test_a_stack_that_was_never_deployed_is_refused(context: Context) -> None:
    with pytest.raises(NotDeployedError, match="no state"):
        plan_destroy(context, DestroyArguments(stack="dev", wait="0s"))
