"""The container of a leased machine, stopped and started by the command on a deployed stack: what callers see of it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from localcloud_support.client import until
from tests.support.e2e.lease_harness import STACK, LeaseFaultHarness

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.e2e.rehearsal import Run

pytestmark = pytest.mark.slow
SECONDS = 60.0


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LeaseFaultHarness]:
    with LeaseFaultHarness.deploy(tmp_path_factory.mktemp("container")) as made:
        yield made


def container(stage: LeaseFaultHarness, *arguments: str) -> Run:
    return stage.rehearsal.bezel("container", *arguments, **stage.rehearsal.variables())


@pytest.mark.wide
def test_a_stopped_container_serves_nobody_and_no_deploy_sees_a_change(
    stage: LeaseFaultHarness,
) -> None:
    with stage.invoker() as caller:
        assert caller.get("/v1/models").status_code == 200

        # Without its name nothing is stopped.
        refused = container(stage, "stop", STACK, "--yes")
        assert (refused.code, "nothing was changed" in refused.text) == (3, True), refused.text
        assert caller.get("/v1/models").status_code == 200

        stopped = container(stage, "stop", STACK, "--name", STACK)
        assert stopped.code == 0, stopped.text
        assert "is billed as before while it is stopped" in stopped.text
        assert "the server works on 0 requests now, and 0 wait" in stopped.text
        until(lambda: caller.get("/v1/models").status_code == 503, SECONDS)
        status = stage.rehearsal.bezel("status", STACK, **stage.rehearsal.variables())
        assert status.code == 1
        assert "container exited" in status.text, status.text
        assert f"`bezel container start {STACK}` starts it" in status.text
        stage.nothing_left()
        assert stage.one_lease()

        again = container(stage, "stop", STACK, "--name", STACK, "--json")
        assert json.loads(again.text[again.text.index("{\n") :])["outcome"]["verdict"] == "unchanged", again.text

        for action in ("start", "restart"):
            done = container(stage, action, STACK, "--yes")
            assert done.code == 0, done.text
            assert "running, serves" in done.text
            until(lambda: caller.get("/v1/models").status_code == 200, SECONDS)
        stage.nothing_left()

    # What was preempted takes no request, and the command says what to do.
    stage.add("lease-preempted")
    until(lambda: "ACTIVE" not in stage.there(), SECONDS)
    ended = container(stage, "start", STACK, "--yes")
    assert ended.code == 1, ended.text
    assert "its machine does not run, so there is no container" in ended.text
    assert "{renew: true}" in ended.text
