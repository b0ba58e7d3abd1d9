"""Texts and numbers of a stack file against the limits of Google Cloud, of a registry and of a process."""

import json
from typing import Any

import pytest
from pydantic import BaseModel

from bezel.planner import PlanError, make_plan
from bezel.planner.base.settings import Settings
from bezel.planner.rules.process_limits import METADATA_VALUE_BYTES, TOTAL_BYTES, WORD_BYTES
from tests.support.planner.l4_stack import problems_of, with_changes
from tests.support.planner.v6e_stack import V6E4_MOE, lease_problems, with_lease_changes

WATCHED = {"billing_account": "012345-6789AB-CDEF01"}
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a tag in other letters": ({"image": {"tag": "größe", "options": "0.32.0"}}, "image.tag"),
    "a repository of 151 characters": ({"image": {"repository": "a" * 151, "tag": "v0.32.0"}}, "image.repository"),
    "an address with a NUL": ({"observability": {"alerts": True, "email": "a\0b@acme.example"}}, "observability.email"),
    "an address in other letters": (
        {"observability": {"alerts": True, "email": "größe@acme.example"}},
        "observability.email",
    ),
    "an address of 65 characters": (
        {"observability": {"alerts": True, "email": f"{'a' * 65}@acme.example"}},
        "observability.email",
    ),
    "an address of a path": ({"observability": {"alerts": True, "email": "a@b/c.example"}}, "observability.email"),
    "a budget of 31 digits": ({"observability": WATCHED | {"budget": 10**30}}, "observability.budget"),
    "10^30 vCPUs": ({"resources": {"cpu": 10**30}}, "resources.cpu"),
    "10^30 GiB": ({"resources": {"memory": f"{10**30}Gi"}}, "resources.memory"),
    "10^30 instances": ({"scaling": {"min_instances": 10**30}}, "scaling.min_instances"),
    "a check of a year": ({"smoke": {"deadline_seconds": 31_536_000}}, "smoke.deadline_seconds"),
    "a caller of 65 characters": ({"access": {"invokers": [f"user:{'a' * 65}@acme.example"]}}, "access.invokers.0"),
    "an account of 64 characters": (
        {"access": {"invokers": [f"serviceAccount:{'a' * 64}@p.iam.gserviceaccount.com"]}},
        "access.invokers.0",
    ),
    "an account in other letters": (
        {"smoke": {"impersonate": "größere@p.iam.gserviceaccount.com"}},
        "smoke.impersonate",
    ),
    "an empty name": ({"vllm": {"served-model-name": ""}}, "vllm.served-model-name"),
    "an empty name among others": ({"vllm": {"served-model-name": ["a", ""]}}, "vllm.served-model-name"),
    "an argument of 128 KiB": ({"vllm": {"chat-template": "a" * WORD_BYTES}}, "vllm.chat-template"),
    "variables of 2 MiB": ({"variables": {f"A{n}": "a" * 32_000 for n in range(70)}}, "variables"),
}
TAKEN: list[dict[str, Any]] = [
    {"image": {"repository": "a" * 150, "tag": "v0.32.0"}},
    {"observability": {"alerts": True, "email": "o'neil+gpu@mail.acme.example"}},
    {"observability": WATCHED | {"budget": 10**12}},
    {"smoke": {"deadline_seconds": 86_400, "impersonate": "c-ci-1@acme-llm.iam.gserviceaccount.com"}},
    {
        "access": {
            "invokers": [f"user:{'a' * 64}@acme.example", "serviceAccount:1-compute@developer.gserviceaccount.com"]
        }
    },
    {"vllm": {"chat-template": "a" * (WORD_BYTES - len("--chat-template="))}},
    {"variables": {f"A{n}": "a" * 32_000 for n in range(60)}},
]
NUMBERS = (10**30, -1)


@pytest.mark.slow
@pytest.mark.parametrize(("changes", "key"), REFUSED.values(), ids=REFUSED)
def test_what_is_beyond_a_limit_is_refused(changes: dict[str, Any], key: str) -> None:
    assert [problem.key for problem in problems_of(changes)] == [f"bezel:{key}"]


@pytest.mark.slow
@pytest.mark.parametrize("changes", TAKEN, ids=lambda each: str(each)[:40])
def test_what_is_at_a_limit_is_planned(changes: dict[str, Any]) -> None:
    assert make_plan(with_changes(changes), project="acme-llm", stack="one")


@pytest.mark.slow
def test_what_a_machine_gets_in_its_metadata_is_bounded() -> None:
    big = {f"A{number}": "a" * 100_000 for number in range(3)}
    assert sum(map(len, big.values())) > METADATA_VALUE_BYTES
    assert "bezel:variables" in [problem.key for problem in lease_problems(with_lease_changes(V6E4_MOE, variables=big))]
    several = with_lease_changes(
        V6E4_MOE, variables={"A": "a" * 250_000}, vllm={"chat-template": "a" * 100_000, "seed": 1}
    )
    assert make_plan(several, project="acme-llm", stack="one")
    both = {f"A{number}": "a" * 120_000 for number in range(2)}
    template = {"chat-template": "a" * 120_000, "generation-config": "b" * 120_000}
    assert "bezel:variables" in [
        each.key for each in lease_problems(with_lease_changes(V6E4_MOE, variables=both, vllm=template))
    ]
    assert TOTAL_BYTES > METADATA_VALUE_BYTES


def leaves(model: type[BaseModel], path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], Any]]:
    paths = []
    for name, field in model.model_fields.items():
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            paths += leaves(inner, (*path, name))
        else:
            paths.append(((*path, name), inner))
    return paths


@pytest.mark.slow
@pytest.mark.parametrize("stack", [with_changes({}), V6E4_MOE], ids=["service", "lease"])
def test_no_number_or_text_ends_in_another_error(stack: dict[str, Any]) -> None:
    """Every setting with numbers beyond every limit, and with a NUL: a plan or its problems, and never the NUL."""
    tried = 0
    for path, kind in leaves(Settings):
        is_list, is_map = "tuple" in str(kind), "dict" in str(kind)
        for value in (*NUMBERS, "a\0b"):
            setting: Any = [value] if is_list else {"A": value} if is_map else value
            config = json.loads(json.dumps(stack))
            section = config
            for part in path[:-1]:
                section = section.setdefault(part, {})
            section[path[-1]] = setting
            tried += 1
            try:
                make_plan(config, project="acme-llm", stack="one")
            except PlanError:
                continue
            assert "\0" not in str(value) or path == ("vllm",), path
    assert tried > 200
