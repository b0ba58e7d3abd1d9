"""Expiry as a result: what is over, until when the rest stays, and what was not looked at."""

from dataclasses import replace

import pytest

from bezel.engine.outcomes import Exit
from bezel.operations.context import Context
from bezel.operations.expiry.expiry import Expiry, ExpiryArguments, expiry
from tests.support.gitops.pipeline import PLUGINS
from tests.support.operations.deployed import Deployed, service_resource, state_of

pytestmark = pytest.mark.slow  # the engine lists the stacks


def context_of(cloud: Deployed) -> Context:
    added = {"PULUMI_CONFIG_PASSPHRASE": "not a secret", "HOME": str(cloud.folder), "PATH": f"{PLUGINS}:/usr/bin:/bin"}
    return replace(cloud.context, environ={**cloud.context.environ, **added})


def report_of(cloud: Deployed) -> Expiry:
    return expiry(context_of(cloud), ExpiryArguments())


def test_stacks_that_are_over_and_those_that_stay_are_named(cloud: Deployed) -> None:
    for stack, day in (("old", "2026-09-20"), ("new", "2026-09-21")):
        (cloud.folder / f"Pulumi.{stack}.yaml").write_text(f'config:\n  bezel:labels: {{expires-at: "{day}"}}\n')
        state = state_of(service_resource())
        state["checkpoint"]["stack"] = f"organization/bezel/{stack}"
        cloud.keep(stack, state)
    report = report_of(cloud)
    assert [(each.name, each.kind) for each in report.over] == [("old", "stack")]
    assert "expires-at 2026-09-20 is over" in report.over[0].why
    assert report.over[0].kept_because
    assert [(each.stack, each.expires_at) for each in report.needed] == [("new", "2026-09-21")]
    assert "bezel stack edit STACK --set labels.expires-at=" in report.text()
    assert any("leases and labelled resources were not looked at" in each for each in report.problems)
    assert report.exit_code == Exit.FAILED
    assert [call.path for call in cloud.server.calls] == []


def test_backend_that_cannot_be_read_is_a_problem_and_never_an_empty_list(cloud: Deployed) -> None:
    (cloud.folder / "state").write_text("no folder")
    report = report_of(cloud)
    assert report.over == ()
    assert any("the backend's stacks were not looked at" in each for each in report.problems)
