"""Which refusals of the engine are because of another engine's lock: what the state has pending is the other's then."""

import pytest

from bezel.engine.changes.locked_run import other_engine
from bezel.engine.events.values import Events
from bezel.engine.run.engine import EngineRun
from bezel.engine.run.process import End

LOCKED = """\
error: the stack is currently locked by 1 lock(s). Either wait for the other process(es) to end or delete the
lock file with `pulumi cancel`.
  file:///state/.pulumi/locks/a.json: created by ann@vm (pid 7) at 2026-11-01T10:00:00Z"""


def run(code: int, text: str) -> EngineRun:
    return EngineRun(End(code, interrupted=False), Events(), 0, text)


def test_run_refused_by_other_engine_names_its_owner() -> None:
    assert other_engine(run(255, LOCKED)) == "ann@vm (pid 7) at 2026-11-01T10:00:00Z"
    assert other_engine(run(255, "the stack is currently locked by 1 lock(s)")) == "another user"


@pytest.mark.parametrize(("code", "text"), [(255, "error: update failed"), (0, LOCKED), (1, "created by ann")])
def test_other_failure_names_no_owner(code: int, text: str) -> None:
    assert other_engine(run(code, text)) == ""
