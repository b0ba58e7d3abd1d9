"""Deploy in two steps on a real engine: what was confirmed is made, and after any change nothing is."""

import json

import pytest

from bezel.engine.outcomes import LockedError
from bezel.engine.run.command import CommandError
from bezel.engine.run.engine import exported_state
from bezel.operations.changes.basis import ChangedError
from bezel.operations.deploy.deploy import apply_deploy
from bezel.operations.deployment.state_reader import printed_by_engine
from bezel.operations.destroy.destroy import DestroyArguments, apply_destroy, plan_destroy
from bezel.operations.scale.scale import ScaleArguments, plan_scale
from tests.support.gitops.pipeline import STACK
from tests.support.operations.two_steps import TwoSteps

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    made = TwoSteps.on_a_folder(tmp_path_factory.mktemp("two-steps"))
    yield made
    made.pipeline.stop()


def test_life_of_a_stack_in_two_steps(small):
    pipeline = small.pipeline

    # On the command line without a terminal the plan is shown, and nothing is done.
    run = pipeline.bezel("deploy", STACK)
    assert run.code == 3
    assert "3 to create" in run.text
    assert "nothing was changed: there is no terminal to confirm it; add --yes" in run.text
    assert small.buckets() == []

    plan = small.plan()
    assert [(row.op, row.name) for row in plan.changes] == [
        ("create", "data"),
        ("create", "first"),
        ("create", "hidden"),
    ]
    assert (plan.refusals, plan.confirm_name, plan.destroyed) == ((), None, ())
    assert plan.price.startswith("0.00 USD/h")
    outcome = apply_deploy(small.context(), plan)
    assert (outcome.verdict, outcome.exit_code) == ("done", 0)
    assert "smoke check: passed (health) (simulated)" in outcome.details
    assert any(line.startswith("  done: creating") for line in small.shown_lines)
    (bucket,) = small.buckets()

    # The state that is read without a start of the engine is the one that the engine exports.
    context = small.context()
    read = exported_state(context.project, STACK, context.environ)
    text = printed_by_engine(["stack", "export", "--stack", STACK], context.folder, context.environ)
    assert read == json.loads(text)
    state = pipeline.folder.parent / f"states/.pulumi/stacks/small/{STACK}.json"
    complete = state.read_bytes()
    state.write_bytes(complete[:-100])
    with pytest.raises(CommandError):  # the engine says what is wrong with it
        exported_state(context.project, STACK, context.environ)
    state.write_bytes(complete)

    # The same plan again: its state is another one now.
    with pytest.raises(ChangedError, match="the stack's state"):
        apply_deploy(small.context(), plan)

    # Nothing to do.
    again = small.plan()
    assert again.is_empty
    assert apply_deploy(small.context(), again).verdict == "unchanged"

    # Another stack file, another program, another backend: an old plan is worth nothing.
    pipeline.set("bezel:labels", {"team": "a"})
    plan = small.plan()
    assert [(row.op, row.name) for row in plan.changes] == [("update", "data")]
    assert "labels.team" in plan.changes[0].properties
    scale = plan_scale(small.context(), ScaleArguments(stack=STACK, max=2, wait="0s"))
    assert "file or program have changed since the last deploy" in scale.warnings[0]
    assert "it changes data otherwise too" in scale.warnings[0]
    pipeline.set("bezel:labels", {"team": "b"})
    with pytest.raises(ChangedError, match="the stack's file"):
        apply_deploy(small.context(), plan)
    pipeline.set("bezel:labels", {"team": "a"})
    program = pipeline.folder / "__main__.py"
    text = program.read_text()
    program.write_text(f"{text}\n# changed\n")
    with pytest.raises(ChangedError, match="the program"):
        apply_deploy(small.context(), plan)
    program.write_text(text)
    with pytest.raises(ChangedError, match="the backend of the states"):
        apply_deploy(small.context(PULUMI_BACKEND_URL=f"file://{pipeline.folder.parent}"), plan)
    assert small.buckets() == [bucket]

    # Another engine holds the stack: it is named before any preview, and after the wait the exit code is 5.
    lock = pipeline.folder.parent / f"states/.pulumi/locks/organization/small/{STACK}/other.json"
    lock.parent.mkdir(parents=True, exist_ok=True)
    owner = json.dumps({"pid": 1, "username": "ada", "hostname": "elsewhere", "timestamp": "2026-11-24T00:00:00Z"})
    lock.write_text(owner)
    small.shown_lines.clear()
    with pytest.raises(LockedError, match="process 1 on elsewhere") as locked:
        apply_deploy(small.context(), plan)
    assert locked.value.exit_code == 5
    assert small.shown_lines == []
    lock.unlink()

    # Everything as it was: the plan of before is carried out, from the command line a new one.
    assert apply_deploy(small.context(), plan).verdict == "done"
    assert small.buckets()[0]["labels"]["team"] == "a"

    # Destroying asks for the name, and tells what is lost.
    assert pipeline.bezel("destroy", STACK, "--yes").code == 3
    run = pipeline.bezel("destroy", STACK, "--name", "prod")
    assert (run.code, "its name has to be repeated" in run.text) == (3, True)
    destroy = plan_destroy(small.context(), DestroyArguments(stack=STACK, wait="0s"))
    assert destroy.confirm_name == STACK
    assert any(line.startswith("data (gcp:storage/bucket:Bucket): data-") for line in destroy.destroyed)
    lock.write_text(owner)
    with pytest.raises(LockedError, match="ada@elsewhere"):  # as the engine itself refuses
        apply_destroy(small.context(), destroy)
    lock.unlink()
    pipeline.set("bezel:labels", None)
    with pytest.raises(ChangedError, match="the stack's file"):
        apply_destroy(small.context(), destroy)
    assert small.buckets() != []
    run = pipeline.bezel("destroy", STACK, "--name", STACK, "--json")
    assert run.code == 0, run.text
    assert small.buckets() == []
