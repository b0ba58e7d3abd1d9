"""The plan and the simulated server, each by rules of its own, say of every case what the table says."""

from __future__ import annotations

import pytest

from bezel_catalog.vllm.start_relations import start_relations
from tests.support.start_relations.cases import (
    STACKS,
    Case,
    cases,
    plan_case,
    seed_models,
    shipped_plan,
    start_case,
)

REFUSED = [case for case in cases() if case.refused]
ACCEPTED = [case for case in cases() if not case.refused]
UNCHECKED = [case for case in ACCEPTED if start_relations()[case.relation].not_checked]
# A relation of the model with the machine alone is a problem of one of these.
_NO_OPTION = ("bezel:model", "bezel:accelerator")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("models")
    seed_models(made)
    return made


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.id)
def test_the_plan_refuses_and_names_the_option(case):
    _, problems = plan_case(case)
    names = {*case.options, *start_relations()[case.relation].options}
    keys = {problem.key for problem in problems}
    assert keys, "the plan accepts it"
    strange = [
        key for key in keys if key not in _NO_OPTION and key.removeprefix("bezel:vllm.").partition(".")[0] not in names
    ]
    assert not strange, problems
    assert all(problem.consequence and problem.repair for problem in problems)


@pytest.mark.parametrize("case", ACCEPTED, ids=lambda case: case.id)
def test_the_plan_accepts_what_starts(case):
    assert plan_case(case)[1] == ()


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.id)
def test_the_simulated_server_refuses_with_vllms_message(case, folder):
    message = start_case(case, folder)
    assert message is not None, "the simulated server starts"
    assert case.says in message


@pytest.mark.parametrize("case", ACCEPTED, ids=lambda case: case.id)
def test_the_simulated_server_starts(case, folder):
    assert start_case(case, folder) is None


@pytest.mark.parametrize("case", UNCHECKED, ids=lambda case: case.id)
def test_the_plan_says_what_it_does_not_check(case):
    row = start_relations()[case.relation]
    plan, _ = plan_case(case)
    assert any(text.startswith(f"not checked: {row.not_checked} (") for text in plan.warnings), plan.warnings


@pytest.mark.parametrize("stack", STACKS)
def test_every_shipped_stack_passes_the_table(stack, folder):
    plan = shipped_plan(stack)
    assert not [text for text in plan.warnings if text.startswith("not checked:")]
    assert start_case(Case("", stack, {}, refused=False), folder) is None
