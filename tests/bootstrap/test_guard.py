"""The guard refuses a destroy while the bucket holds states of others, and only then."""

from __future__ import annotations

import pytest

from bezel.foundation.stacks_in_bucket import stack_names
from bezel_bootstrap.providers.stack_guard import StackGuardError, StackGuardProvider
from tests.support.bootstrap.project import BUCKET, FakeProject

PROPS = {"bucket": BUCKET, "own": "bezel-bootstrap/acme-llm"}
OWN = ".pulumi/stacks/bezel-bootstrap/acme-llm.json"


@pytest.mark.parametrize("name", ["bezel/dev", "bezel-bootstrap/another", "other project/å.b"])
def test_a_destroy_is_refused_with_the_names_of_the_stacks(project: FakeProject, name: str) -> None:
    project.objects = [OWN, f".pulumi/stacks/{name}.json"]
    with pytest.raises(StackGuardError, match=rf"= {name}\n[\s\S]*Nothing was destroyed[\s\S]*Repair: "):
        StackGuardProvider().delete("id", PROPS)


@pytest.mark.parametrize(
    "objects",
    [
        None,
        [],
        [OWN],
        [OWN, f"{OWN}.bak", ".pulumi/stacks/bezel/dev.json.bak", ".pulumi/history/bezel/dev/dev-1.history.json"],
    ],
)
def test_a_destroy_goes_on_where_no_other_stack_is(project: FakeProject, objects: list[str] | None) -> None:
    project.objects = objects
    StackGuardProvider().delete("id", PROPS)


def test_a_destroy_is_refused_where_nobody_knows(project: FakeProject) -> None:
    project.refusal = 403
    with pytest.raises(StackGuardError, match="unknown whether it holds stacks, so nothing was destroyed"):
        StackGuardProvider().delete("id", PROPS)


def test_many_stacks_are_counted() -> None:
    names = [f".pulumi/stacks/p/s{number}.json" for number in range(3)]
    packed = [".pulumi/stacks/p/old.json.gz", ".pulumi/stacks/p/packed.json.zst"]
    others = [".pulumi/meta.yaml", ".pulumi/stacks/p/gone.json.bak", ".pulumi/stacks/p/s0.json.attrs"]
    assert stack_names([*names, *packed, *others]) == ["p/old", "p/packed", "p/s0", "p/s1", "p/s2"]


def test_another_bucket_replaces_the_guard_and_nothing_else_does() -> None:
    provider = StackGuardProvider()
    assert provider.diff("id", PROPS, PROPS | {"bucket": "other"}).replaces == ["bucket"]
    assert not provider.diff("id", PROPS, dict(PROPS)).changes
