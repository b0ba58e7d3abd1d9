"""Reasons of problems: each is true of every value that it is given for."""

import pytest

from tests.support.planner.l4_stack import problems_of
from tests.support.planner.v6e_stack import L4X8, lease_problems, with_lease_changes

SHARED = "planned for one model that all devices share"
REASONS = {
    "a probe of the port": (
        {"probe": {"kind": "tcp"}, "vllm": {"ssl-keyfile": "/k"}},
        "no request would get an answer",
    ),
    "an option of several machines": ({"vllm": {"master-port": 1}}, "vLLM ignores it, exits while it starts, or waits"),
    "a number below the class's bound": ({"vllm": {"max-num-seqs": 0}}, "it exits while it starts"),
    "a word for a number": ({"vllm": {"max-num-seqs": "many"}}, "its parser exits with code 2"),
    "replicas without devices": ({"vllm": {"data-parallel-size": 2}}, "ask for 2 devices, and an instance"),
    "a longer context that is allowed": (
        {"vllm": {"max-model-len": 300_000}, "variables": {"VLLM_ALLOW_LONG_MAX_MODEL_LEN": "1"}},
        "what it answers to longer prompts is noise",
    ),
    "a longer context": ({"vllm": {"max-model-len": 300_000}}, "vLLM refuses more"),
    "a variable of vLLM as a secret": ({"secrets": {"VLLM_LOGGING_LEVEL": "x"}}, "no plan sees a secret's value"),
    "Google's label": ({"labels": {"goog-x": "a"}}, "Google reserves this label"),
    "a label of the stack": ({"labels": {"stack": "a"}}, "marks the owner"),
    "an invisible character": ({"vllm": {"served-model-name": "a\u200bb"}}, "invisible characters"),
    "an unknown variable": ({"variables": {"VLLM_NO_SUCH_THING_AT_ALL": "1"}}, "exits while it starts"),
    "an unknown variable that is let pass": (
        {"variables": {"VLLM_NO_SUCH_THING_AT_ALL": "1"}, "vllm": {"fail-on-environ-validation": False}},
        "it would have no effect",
    ),
}


@pytest.mark.parametrize(("changes", "reason"), REASONS.values(), ids=REASONS)
def test_a_reason_is_true_of_the_value_that_it_is_given_for(changes, reason):
    consequences = [problem.consequence for problem in problems_of(changes)]
    assert [text for text in consequences if reason in text], consequences
    assert len(consequences) <= 2


def test_replicas_on_the_devices_of_one_machine_are_refused():
    problems = lease_problems(with_lease_changes(L4X8, vllm={"tensor-parallel-size": 4, "data-parallel-size": 2}))
    assert [each.key for each in problems if SHARED in each.consequence] == ["bezel:vllm.data-parallel-size"]
    problems = lease_problems(with_lease_changes(L4X8, vllm={"tensor-parallel-size": 8, "data-parallel-size": 2}))
    assert [each for each in problems if "ask for 16 devices, and g2-standard-96 has 8" in each.consequence]
