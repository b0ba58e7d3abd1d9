"""Destruction in two steps: the plan is the state's, by name, and what is protected cannot be confirmed."""

import re
from pathlib import Path
from typing import Any

import pulumi_gcp
import pytest

from bezel.operations.changes.confirmations import ConfirmationError, Confirmations
from bezel.operations.changes.staying import staying
from bezel.operations.context import Context, NotDeployedError
from bezel.operations.destroy.destroy import DestroyArguments, plan_destroy
from tests.support.gitops.pipeline import PLUGINS
from tests.support.operations.deployed import Deployed, service_resource, state_of

pytestmark = pytest.mark.slow  # the engine exports the state
SERVICE = "gcp:cloudrunv2/service:Service"
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


def entry(kind: str, name: str, id_: str, **inputs: Any) -> dict[str, Any]:
    return {"urn": f"urn:pulumi:dev::bezel::{kind}::{name}", "type": kind, "custom": True, "id": id_, "inputs": inputs}


def api(name: str, **inputs: Any) -> dict[str, Any]:
    return entry("gcp:projects/service:Service", name, f"acme/{name}", **{"service": f"{name}.x", **inputs})


def model(bucket: str) -> dict[str, Any]:
    made = entry("pulumi-python:dynamic/components:ModelFiles", "model", f"gs://{bucket}/m", bucket=bucket)
    return {**made, "outputs": {"total_bytes": 2 << 30}}


def check_resource() -> dict[str, Any]:
    return entry("pulumi-python:dynamic/smoke:HealthCheck", "check", "health-check")


# Each way in which a resource stays, and its twin that is deleted.
WAYS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (bucket(retainOnDelete=True), bucket()),
    (bucket(external=True), bucket(external=False)),
    (api("run"), api("run", disableOnDestroy=True)),
    (api("run", disableOnDestroy=False), api("run", disableOnDestroy=True)),
    (bucket(inputs={"deletionPolicy": "ABANDON"}), bucket(inputs={"deletionPolicy": "DELETE"})),
    (bucket(outputs={"deletionPolicy": "ABANDON"}), bucket(outputs={"deletionPolicy": "DELETE"})),
    (entry("gcp:secretmanager/secretVersion:SecretVersion", "v", "1", deletionPolicy="DISABLE"),
     entry("gcp:secretmanager/secretVersion:SecretVersion", "v", "1")),
    *((entry(kind, "k", "k"), entry("gcp:storage/bucketObject:BucketObject", "k", "k")) for kind in (
        "gcp:kms/keyRing:KeyRing", "gcp:kms/cryptoKey:CryptoKey", "gcp:kms/keyRingImportJob:KeyRingImportJob",
        "gcp:cloudquota/sQuotaPreference:SQuotaPreference", "gcp:appengine/application:Application",
        "gcp:identityplatform/config:Config",
    )),
    (model("acme-models"), entry("pulumi-python:dynamic/components:TpuRequest", "request", "r")),
]  # fmt: skip


@pytest.mark.parametrize(("kept", "deleted"), WAYS)
def test_each_way_of_staying_is_told_apart_from_a_deletion(kept: dict[str, Any], deleted: dict[str, Any]) -> None:
    (stay,) = staying([kept])
    assert stay.why
    assert stay.cost == "it costs nothing by itself" or "unknown USD a month" in stay.cost
    assert staying([deleted]) == ()


def test_types_that_google_keeps_are_types_of_the_provider() -> None:
    folder = Path(pulumi_gcp.__file__).parent
    tokens = {
        token
        for file in folder.glob("*/*.py")
        for token in re.findall(r'type_token\("(gcp:[^"]+)"', file.read_text(encoding="utf-8"))
    }
    assert {kept["type"] for kept, _ in WAYS if kept["type"].startswith("gcp:")} <= tokens


def test_a_plan_names_each_resource_with_its_price_and_loss(cloud: Deployed, context: Context) -> None:
    """The plan has everything that the state holds."""
    keep(cloud, bucket(), service_resource())
    plan = plan_destroy(context, DestroyArguments(stack="dev", wait="0s"))
    assert [(change.op, change.name) for change in plan.changes] == [("delete", "data"), ("delete", "service")]
    assert f"data ({BUCKET}): acme-models" in plan.destroyed
    assert "data: every object in it, e.g. a model's files and its compile cache, or a door's keys" in plan.lost
    assert plan.price is not None
    assert plan.price.startswith("1.05 -> 0.00 USD/h (-1.05)")
    assert (plan.refusals, plan.confirm_name) == ((), "dev")


@pytest.mark.parametrize(
    "protected",
    [
        bucket(protect=True),
        service_resource(deletionProtection=True),
        service_resource(deletionPolicy="PREVENT"),
    ],
)
def test_what_is_protected_cannot_be_confirmed(cloud: Deployed, context: Context, protected: dict[str, Any]) -> None:
    keep(cloud, protected)
    plan = plan_destroy(context, DestroyArguments(stack="dev", wait="0s"))
    assert len(plan.refusals) == 1
    with pytest.raises(ConfirmationError, match="nothing was changed"):
        Confirmations().offer(plan, "a")


def test_what_is_retained_is_named_as_staying_and_not_as_destroyed(cloud: Deployed, context: Context) -> None:
    keep(cloud, bucket(retainOnDelete=True), {**service_resource(), "retainOnDelete": True}, api("run"))
    plan = plan_destroy(context, DestroyArguments(stack="dev", wait="0s"))
    assert (plan.destroyed, plan.changes, plan.lost) == ((), (), ())
    assert [line.partition(": ")[0] for line in plan.staying] == [f"data ({BUCKET})", f"service ({SERVICE})", "run.x"]
    assert "unknown USD a month" in plan.staying[0]
    assert re.search(r"[1-9][\d.]+ USD a month at most", plan.staying[1])
    assert plan.price is not None
    assert plan.price.startswith("1.05 USD/h (unchanged)")  # it goes on costing
    assert "stays: run.x: the API stays enabled" in plan.text()
    assert not plan.is_empty  # the state is still to be emptied


def test_the_weights_and_the_apis_of_a_stack_stay(cloud: Deployed, context: Context) -> None:
    apis = [api(name) for name in ("run", "iam", "storage")]
    keep(cloud, model("acme-models"), *apis, service_resource(), check_resource())
    plan = plan_destroy(context, DestroyArguments(stack="dev", wait="0s"))
    assert [change.name for change in plan.changes] == ["service"]
    assert plan.summary == "1 to delete, 4 resources of the state stay in the cloud"
    assert "gs://acme-models/m: the stack checked these files" in plan.staying[0]
    assert "unknown USD a month of Cloud Storage for 2.0 GiB" in plan.staying[0]
    assert "HealthCheck" not in plan.text()


def test_the_weights_go_with_a_bucket_that_is_deleted(cloud: Deployed, context: Context) -> None:
    keep(cloud, bucket(), model("acme-models"))
    plan = plan_destroy(context, DestroyArguments(stack="dev", wait="0s"))
    assert plan.staying == ()
    assert {change.name for change in plan.changes} == {"data", "model"}


def test_a_stack_that_was_never_deployed_is_refused(context: Context) -> None:
    with pytest.raises(NotDeployedError, match="no state"):
        plan_destroy(context, DestroyArguments(stack="dev", wait="0s"))
