"""A stack of `prod`, protected and gated: whatever fails is mended by what the message says, and it ends as it says."""

from typing import Any

import pytest
import yaml

from tests.support.e2e.as_written import command_in, run
from tests.support.e2e.fault_harness import FaultHarness, error_text, without_preview
from tests.support.e2e.kill_points import leftovers
from tests.support.e2e.rehearsal import Rehearsal

STACK = "rtx6000-fp8"
SERVICE = f"/run/v2/projects/bezel-local/locations/us-central1/services/bezel-{STACK}"


def up(rehearsal: Rehearsal) -> tuple[int, str]:
    ended = rehearsal.local("up", STACK, *without_preview())
    return ended.code, ended.text


def seats(rehearsal: Rehearsal, number: int) -> None:
    """Change the stack so that the next deploy makes a new revision."""
    rehearsal.set("vllm.max-num-seqs", number, STACK)


def serving(rehearsal: Rehearsal) -> dict[str, Any]:
    """The revision that has all traffic."""
    with rehearsal.api() as api:
        service = api.get(SERVICE).json()
        (target,) = [one for one in service["traffic"] if one.get("percent")]
        assert target["percent"] == 100
        name = target.get("revision") or service["latestReadyRevision"].rpartition("/")[2]
        revision: dict[str, Any] = api.get(f"{SERVICE}/revisions/{name}").json()
    return revision


@pytest.mark.long
def test_a_prod_stack_is_mended_and_taken_down_by_what_the_messages_say(rehearsal: Rehearsal) -> None:
    rehearsal.set("rollout", "gated", STACK)
    rehearsal.set("smoke", {"requests": 4, "output_tokens": 8, "prompt_tokens": 32}, STACK)
    seats(rehearsal, 8)
    assert rehearsal.local("preview", STACK).code == 0
    stage = FaultHarness(rehearsal, "")

    # The first deploy, with the engine alone: an answer is lost, and the next request refused.
    lost = {"when": "after", "method": "POST", "path": "/run/*/services", "count": 1}
    stage.add("dropped-connections", **lost)
    unconfirmed = error_text(run(rehearsal, "pulumi up", STACK))
    assert "run the same command again" in unconfirmed
    refused = error_text(run(rehearsal, "pulumi up", STACK))
    cleared = run(rehearsal, command_in(refused, "pulumi refresh"), STACK)
    assert cleared.code == 0, cleared.text
    assert "gcloud run services delete" in refused
    with rehearsal.api() as api:
        assert api.delete(SERVICE).is_success

    # The same with `bezel`, which knows what was begun: it reads the service, and goes on.
    stage.add("dropped-connections", **lost)
    code, text = up(rehearsal)
    assert (code, "created, now in the state: " in text) == (0, True), text
    first = serving(rehearsal)["name"]

    # An update that Google refuses, with the engine alone.
    seats(rehearsal, 7)
    stage.add("server-errors", status=400, method="PATCH", path="/run/*", count=0)
    refused = error_text(run(rehearsal, "pulumi up", STACK))
    assert serving(rehearsal)["name"] == first
    stage.clear()
    mended = run(rehearsal, command_in(refused, "pulumi up"), STACK)
    assert mended.code == 0, mended.text
    second = serving(rehearsal)
    assert "--max-num-seqs=7" in second["containers"][0]["args"]

    # A revision that does not start: what served goes on, and the same command makes another one.
    seats(rehearsal, 6)
    stage.add("never-healthy")
    code, text = up(rehearsal)
    assert (code, "run the same command again" in text) == (1, True), text
    assert serving(rehearsal)["name"] == second["name"]
    stage.clear()
    code, text = up(rehearsal)
    assert code == 0, text
    assert "--max-num-seqs=6" in serving(rehearsal)["containers"][0]["args"]

    # No quota for two revisions at a time: the other way fits once the old one holds no instance.
    seats(rehearsal, 5)
    stage.add("quota-exceeded", quota=1)
    code, text = up(rehearsal)
    assert (code, "set bezel:rollout to direct" in text) == (1, True), text
    rehearsal.set("rollout", "direct", STACK)
    assert rehearsal.local("stop").code == 0
    assert rehearsal.local("start").code == 0  # as after 15 minutes without a request
    code, text = up(rehearsal)
    assert code == 0, text
    assert "--max-num-seqs=5" in serving(rehearsal)["containers"][0]["args"]
    stage.clear()

    # The end: protected, by whatever command.
    destroyed = run(rehearsal, "pulumi destroy", STACK)
    assert (destroyed.code != 0, "deletion_protection=false" in destroyed.text) == (True, True), destroyed.text
    down = rehearsal.local("down", STACK)
    assert (down.code, "nothing was deleted" in down.text) == (1, True), down.text
    assert serving(rehearsal)
    line = down.text.partition("`bezel:")[2].partition("`")[0]
    ((key, value),) = yaml.safe_load(line).items()
    rehearsal.set(key, value, STACK)
    unprotected = run(rehearsal, command_in(down.text, f"bezel local up {STACK}"), STACK)
    assert unprotected.code == 0, unprotected.text
    down = rehearsal.local("down", STACK)
    assert down.code == 0, down.text
    assert leftovers(rehearsal) == []
