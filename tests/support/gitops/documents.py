"""Documents of previews as the pipeline writes them, from what the real program declares for a stack file.

Types, names, inputs, prices and refusals are the program's, the catalogue's and the packs'; the engine is left out.
"""

from __future__ import annotations

import copy
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from pulumi_policy import ResourceValidationPolicy

from bezel.engine.changes.preview import with_one_repair
from bezel.engine.changes.settings import setting_changes
from bezel.engine.events.values import Violation
from bezel.engine.project.project import Project
from bezel.planner import make_plan
from bezel.resource_cost.stack_cost import StackCost, StateResource, stack_cost
from bezel_base.errors import UserError
from bezel_stacks.dispatch import deploy
from tests.support.components.fake_engine import Declared, declare
from tests.support.policies.harness import POLICIES, example, violations

PROJECT = Project(Path(__file__).parents[3])
COMMIT = "c0ffee" + "0" * 34
CASES = ("first deploy", "update", "refused", "unpriced", "failed")
# For each stack: a change that may be deployed, one that may not, and a place without a price.
_UPDATES: dict[str, dict[str, Any]] = {
    "l4-qat": {"scaling": {"max_instances": 2}, "cost": {}},
    "rtx6000-mtp": {"scaling": {"min_instances": 0}},
    "v6e4-moe": {"lease": {"zones": [{"zone": "us-east5-a"}], "duration": "2h"}},
}
_TOO_MUCH: dict[str, dict[str, Any]] = {
    "l4-qat": {"scaling": {"max_instances": 40}, "cost": {}},
    "rtx6000-mtp": {"scaling": {"min_instances": 3, "max_instances": 9}, "cost": {}},
    "v6e4-moe": {"lease": {"zones": [{"zone": "us-east5-a"}], "duration": "8h"}, "cost": {}},
}
_IMPOSSIBLE = {"vllm": {"max-model-len": 999999}}


@cache
def declare_stack(stack: str, changes: str = "{}") -> tuple[list[Declared], str]:
    """What the program declares for a stack with other settings (JSON), and the stack's environment."""
    plan = make_plan(PROJECT.configuration(stack) | json.loads(changes), project="acme-llm", stack=stack)
    # A preview shows no component, as it is nothing in the cloud.
    made = filter(is_custom, declare(lambda: deploy(plan), preview=True).all)
    return sorted(made, key=lambda one: one.urn), plan.environment


def preview(stack: str, case: str) -> dict[str, Any]:
    """The document of a preview of a stack in a case."""
    present, environment = declare_stack(stack)
    before, after, changes = StackCost(), cost(present), {"create": [row(made) for made in present]}
    verdict, problems, policy_violations = "allowed", [], []
    changed_settings: list[dict[str, str]] = []
    planned = present
    if case in ("update", "refused"):
        wanted = (_UPDATES if case == "update" else _TOO_MUCH)[stack]
        planned = declare_stack(stack, json.dumps(wanted))[0]
        old = PROJECT.configuration(stack)
        changed_settings = [change.as_json() for change in setting_changes(old, old | wanted)]
        before, after, changes = after, cost(planned), difference(present, planned)
    if case == "unpriced":
        planned = [moved_resource(made) for made in present]
        after = cost(planned)
    if case in ("refused", "unpriced"):
        verdict, policy_violations = "refused", refusals(planned, environment)
        problems = [f"the price is unknown, so nothing passes: {row}" for row in after.missing]
    if case == "failed":
        verdict, problems, changes, after = "failed", [failure(stack)], {}, None
    return {
        "kind": "preview",
        "project": "bezel",
        "stack": stack,
        "tree": "7" * 40,
        "commit": COMMIT,
        "state_digest": "sha256:" + "1" * 64,
        "changes_digest": "sha256:" + "2" * 64,
        "verdict": verdict,
        "changes": changes,
        "price": {"before": before.as_json(), "after": after and after.as_json()},
        "violations": policy_violations,
        "fit": None if case == "failed" else "8.1 GiB of weights and 10.2 GiB for the KV cache, of 20.6 GiB",
        "quota": [] if case == "failed" else ["NVIDIA L4 GPUs in us-east4: 1 of 3"],
        "problems": problems,
        "notes": [],
        "settings": changed_settings,
        "uncommitted": [],
    }


def failure(stack: str) -> str:
    """What the planner says of a stack that cannot work."""
    with pytest.raises(UserError) as refused:
        make_plan(PROJECT.configuration(stack) | _IMPOSSIBLE, project="acme-llm", stack=stack)
    return str(refused.value)


def cost(resources: list[Declared]) -> StackCost:
    """The cost of what is declared."""
    return stack_cost(StateResource(made.name, made.type, made.inputs) for made in resources)


def is_custom(made: Declared) -> bool:
    return made.type.startswith(("gcp:", "docker:", "pulumi-python:"))


def row(made: Declared, *paths: str) -> dict[str, Any]:
    return {"name": made.name, "type": made.type, "properties": list(paths)}


def difference(present: list[Declared], planned: list[Declared]) -> dict[str, list[dict[str, Any]]]:
    """The changed resources of a kind each, with the paths of their changed inputs."""
    old, new = ({made.urn: made for made in made_of} for made_of in (present, planned))
    updated = [row(new[urn], *changed_paths(old[urn].inputs, new[urn].inputs)) for urn in new if urn in old]
    changes = {
        "create": [row(new[urn]) for urn in new if urn not in old],
        "update": [one for one in updated if one["properties"]],
        "delete": [row(old[urn]) for urn in old if urn not in new],
    }
    return {op: rows for op, rows in changes.items() if rows}


def changed_paths(old: Any, new: Any, path: str = "") -> list[str]:
    """Paths at which two values differ, as the engine writes them."""
    if isinstance(old, dict) and isinstance(new, dict):
        keys = sorted(key for key in {*old, *new} if not key.startswith("__"))
        return [at for key in keys for at in changed_paths(old.get(key), new.get(key), f"{path}.{key}".lstrip("."))]
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        pairs = enumerate(zip(old, new, strict=True))
        return [at for number, (one, other) in pairs for at in changed_paths(one, other, f"{path}[{number}]")]
    return [path] if old != new else []


def moved_resource(made: Declared) -> Declared:
    """A resource in a place whose prices nobody knows."""
    text = json.dumps(made.inputs)
    for place in ("us-east4", "us-central1", "us-east5-a", "us-east5-b", "europe-west4-a"):
        text = text.replace(place, "moon-east1-a" if place.count("-") > 1 else "moon-east1")
    other = copy.copy(made)
    other.inputs = json.loads(text)
    return other


def refusals(resources: list[Declared], environment: str) -> list[dict[str, str]]:
    """What the packs say of resources, judged one by one."""
    limits = example("hardware_cost", environment) | example("security", environment)
    packs = {
        name: "hardware-cost" if name in example("hardware_cost", environment) else "security" for name in POLICIES
    }
    policy_violations = [
        Violation(packs[name], name, "mandatory", made.urn, message)
        for name, policy in POLICIES.items()
        if isinstance(policy, ResourceValidationPolicy) and name != "labels"
        for made in resources
        for message in violations(name, made.type, made.inputs, limits.get(name, {}))
    ]
    return [
        {"pack": one.pack, "policy": one.policy, "level": one.level, "resource": one.resource, "message": one.message}
        for one in with_one_repair(policy_violations)
    ]


def rehearsal(stack: str, verdict: str = "passed") -> dict[str, Any]:
    """The document of a rehearsal."""
    passed = verdict == "passed"
    return {
        "kind": "rehearsal",
        "project": "bezel",
        "stack": stack,
        "verdict": verdict,
        "seconds": 37.2,
        "smoke": {"ok": passed},
        "figures": None,
        "price": None,
        "violations": [],
        "problems": [] if passed else ["HealthCheck: the server answered 500 to its first request"],
    }
