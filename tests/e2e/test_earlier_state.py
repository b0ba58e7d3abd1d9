"""A state from before a stack was one component: an update moves its resources, and replaces none."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.components.earlier_names import COMPONENTS, earlier_stacks, earlier_urn

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.e2e.rehearsal import Rehearsal

SMALL = {"requests": 2, "concurrency": 2, "output_tokens": 4, "prompt_tokens": 32}
TABLE = {"l4-qat": "a service", "v6e1-fleet": "leases behind one gateway"}


def with_earlier_urns(value: Any, component: str, stack: str) -> Any:
    """A part of a state with the URNs of before; children of the component are the stack's own."""
    if isinstance(value, dict):
        return {key: with_earlier_urns(part, component, stack) for key, part in value.items()}
    if isinstance(value, list):
        return [with_earlier_urns(part, component, stack) for part in value if part != component]
    if isinstance(value, str):
        return stack if value == component else earlier_urn(value)
    return value


def rename_resources(file: Path) -> set[str]:
    """Give the resources of a state the URNs of before; return them, without those of stack and providers."""
    state = json.loads(file.read_text())
    latest = state["checkpoint"]["latest"]
    (component,) = [each["urn"] for each in latest["resources"] if each["type"] in COMPONENTS]
    (stack,) = [each["urn"] for each in latest["resources"] if each["type"] == "pulumi:pulumi:Stack"]
    kept = [each for each in latest["resources"] if each["urn"] != component]
    latest["resources"] = with_earlier_urns(kept, component, stack)
    file.write_text(json.dumps(state))
    names = {each["urn"].partition("::bezel::")[2] for each in latest["resources"]}
    return {name for name in names if not name.startswith("pulumi:")}


@pytest.mark.timeout(400)
@pytest.mark.parametrize("stack", ["l4-qat", pytest.param("v6e1-fleet", marks=pytest.mark.long)])
def test_earlier_state_is_updated_without_a_replacement(rehearsal: Rehearsal, stack: str) -> None:
    rehearsal.set("smoke", SMALL, stack)
    made = rehearsal.local("up", stack)
    assert made.code == 0, made.text
    outputs = rehearsal.outputs(stack)
    names = rename_resources(rehearsal.cloud / "state/.pulumi/stacks/bezel" / f"{stack}.json")
    declared_then = earlier_stacks()[TABLE[stack]].resources
    assert names == {name.replace("acme-llm", "bezel-local") for name in declared_then}
    before = rehearsal.exists()

    seen = rehearsal.local("preview", stack)
    assert seen.code == 0, seen.text
    assert f"Resources:\n    + 1 to create\n    {len(names) + 1} unchanged\n" in seen.text, seen.text
    updated = rehearsal.local("up", stack)
    assert updated.code == 0, updated.text
    assert f"Resources:\n    + 1 created\n    {len(names) + 1} unchanged\n" in updated.text, updated.text
    assert rehearsal.exists() == before
    assert rehearsal.outputs(stack) == outputs
    unchanged = rehearsal.local("preview", stack, "--", "--expect-no-changes")
    assert unchanged.code == 0, unchanged.text
