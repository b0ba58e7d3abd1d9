"""Drift as a result: bounded, with both values of each property, and never clean where something was not read."""

from dataclasses import replace
from pathlib import Path

import pytest

from bezel.engine.outcomes import Exit
from bezel.operations.drift.drift import DriftArguments, drift, result_of
from bezel.outside_changes.change import NotJudged, OutsideChange
from bezel.upkeep.drift import PropertyDrift, ResourceDrift, StackDrift
from bezel_base.errors import UserError
from tests.support.gitops.pipeline import PLUGINS, STACK
from tests.support.operations.deployed import Deployed
from tests.support.operations.two_steps import TwoSteps

SERVICE = "gcp:cloudrunv2/service:Service"
CHANGED = ResourceDrift("service", SERVICE, "update", True, (PropertyDrift("scaling.min", 2, None),), "ann@example.com")
OUTSIDE = OutsideChange("service llm", "invokerIamDisabled", "true", "not set", "access", "remove it.")


@pytest.mark.parametrize(
    ("stack_drift", "code", "text"),
    [
        (StackDrift("dev", "clean"), Exit.DONE, "no drift"),
        (StackDrift("dev", "not deployed"), Exit.DONE, "not deployed"),
        (StackDrift("dev", "drifted", (CHANGED,), outside=(OUTSIDE,)), Exit.DRIFTED, "changed outside of the program"),
        (StackDrift("dev", "unknown", problems=("no login",)), Exit.FAILED, "no login"),
        (StackDrift("dev", "unknown", not_judged=(NotJudged("grants", "run.get", "denied"),)), Exit.FAILED, "denied"),
    ],
)
def test_verdict_has_its_exit_code_and_reasons(stack_drift: StackDrift, code: Exit, text: str) -> None:
    result = result_of(stack_drift)
    assert (result.verdict, result.exit_code) == (stack_drift.verdict, code)
    assert text in result.text()


def test_each_property_has_both_values_and_the_cause() -> None:
    (resource,) = result_of(StackDrift("dev", "drifted", (CHANGED,))).resources
    assert (resource.cause, resource.changed_by, resource.changed_at) == ("outside", "ann@example.com", None)
    (item,) = resource.properties
    assert (item.path, item.cloud, item.program) == ("scaling.min", "2", "not set")
    follows = replace(CHANGED, is_outside=False, follows=True)
    assert result_of(StackDrift("dev", "drifted", (follows,))).resources[0].cause == "follows"


def test_result_is_bounded_and_hides_credentials() -> None:
    token = "hf_" + "c" * 34
    secret = replace(CHANGED, properties=(PropertyDrift("env", token, "x" * 900),) * 31)
    bare = replace(CHANGED, properties=())
    result = result_of(StackDrift("dev", "drifted", (secret, *[bare] * 100)))
    assert (len(result.resources), len(result.resources[0].properties)) == (100, 30)
    assert token not in result.model_dump_json() + result.text()
    assert len(result.resources[0].properties[0].program) < 200


def test_stack_without_a_file_is_refused(cloud: Deployed) -> None:
    with pytest.raises(UserError, match=r"there is no Pulumi\.dev\.yaml"):
        drift(cloud.context, DriftArguments(stack="dev"))


@pytest.mark.slow  # the engine says that there is no state
def test_stack_that_is_not_deployed_has_no_drift(cloud: Deployed) -> None:
    (cloud.folder / "Pulumi.dev.yaml").write_text("config: {}\n")
    (cloud.folder / "state").mkdir()
    added = {"PULUMI_CONFIG_PASSPHRASE": "not a secret", "HOME": str(cloud.folder), "PATH": f"{PLUGINS}:/usr/bin:/bin"}
    context = replace(cloud.context, environ={**cloud.context.environ, **added})
    assert drift(context, DriftArguments(stack="dev")).verdict == "not deployed"


@pytest.mark.wide
def test_a_change_outside_is_drift_and_a_deploy_is_not(tmp_path: Path) -> None:
    small = TwoSteps.on_a_folder(tmp_path)
    try:
        small.deploy()
        assert drift(small.context(), DriftArguments(stack=STACK)).verdict == "clean"
        (bucket,), cloud = small.buckets(), small.pipeline.cloud
        thing = cloud.get(f"/storage/v1/b/{bucket['name']}/o").json()["items"][0]
        assert cloud.delete(f"/storage/v1/b/{bucket['name']}/o/{thing['name']}").is_success
        report = drift(small.context(), DriftArguments(stack=STACK))
        assert (report.verdict, report.exit_code) == ("drifted", Exit.DRIFTED)
        assert ("create", "outside") in [(each.op, each.cause) for each in report.resources]
    finally:
        small.pipeline.stop()
