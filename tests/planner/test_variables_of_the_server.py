"""Variables that the server would not read, or would refuse, are refused before anything is paid for."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bezel.planner import PlanError, make_plan
from bezel.planner.assemble.plan import Plan
from bezel.planner.base.settings import Settings
from bezel.planner.rules.env_checks import check_environment, check_read, planned_variables
from bezel.planner.rules.platform_checks import check_label_count
from bezel_catalog import accelerators, tpu_variables, vllm_options, vllm_versions
from tests.support.planner.l4_stack import problems_of, with_changes
from tests.support.planner.v6e_stack import L4X8, V6E4_MOE, lease_plan, lease_problems, with_lease_changes

OPTIONS = vllm_options("0.32.0")

# variables of the L4 stack; what the consequence says; what the repair says
REFUSED = {
    "a name that circulates": ({"VLLM_DISABLE_FLASHINFER": "1"}, "reads no such variable and exits", "remove it"),
    "a name of nobody": ({"VLLM_NO_SUCH": "1"}, "reads no such variable and exits", "remove it"),
    "a removed name that became an option": (
        {"VLLM_ATTENTION_BACKEND": "TRITON_ATTN"},
        "reads no such variable",
        "write `bezel:vllm: {attention-backend: …}`",
    ),
    "an option": ({"VLLM_MAX_MODEL_LEN": "4096"}, "reads no such variable", "write `bezel:vllm: {max-model-len: …}`"),
    "a misspelt name": ({"VLLM_LOGING_LEVEL": "INFO"}, "reads no such variable", "did you mean VLLM_LOGGING_LEVEL?"),
    "a name in small letters": ({"vllm_port": "1"}, "in capitals", "did you mean VLLM_PORT?"),
    "a name of the TPU server": ({"VLLM_TPU_BUCKET_PADDING_GAP": "256"}, "only tpu-inference", "remove it"),
    "words for a number": ({"VLLM_PORT": "abc"}, "a whole number: it exits", "a whole number"),
    "a number without unit wanted": ({"VLLM_IMAGE_FETCH_TIMEOUT": "5s"}, "a whole number", "a whole number"),
    "a number of another variable": ({"LOCAL_RANK": "one"}, "a whole number", "a whole number"),
    "a share in words": ({"VLLM_LOG_STATS_INTERVAL": "often"}, "expects a number", "a number"),
    "a switch that reads a number": ({"VLLM_BATCH_INVARIANT": "true"}, "1 or 0: it exits", "write 1 or 0"),
    "a word that is silently off": ({"VLLM_USE_MODELSCOPE": "yes"}, "without a message", "write 1 or 0"),
    "none of the words": ({"VLLM_LOGGING_LEVEL": "LOUD"}, "known words", "choose one of CRITICAL, DEBUG"),
    "one word too many": ({"VLLM_GPT_OSS_SYSTEM_TOOL_MCP_LABELS": "container,x"}, "known words", "code_interpreter"),
    "no JSON": ({"VLLM_HUMMING_INPUT_QUANT_CONFIG": "{"}, "expects JSON", "write JSON"),
    "a character that no process takes": ({"NAME": "a\0b"}, "NUL", "remove the character"),
    "a value that is too long": ({"NAME": "ü" * 16_385}, "32770 bytes", "a file of the bucket"),
    "a name of the platform": ({"X_GOOGLE_THING": "1"}, "begin with X_GOOGLE_", "another name"),
    "a name that is too long": ({"N" * 32_769: "1"}, "32768 characters", "shorten it"),
}


@pytest.mark.parametrize(("variables", "consequence", "repair"), REFUSED.values(), ids=REFUSED)
def test_a_refused_variable_is_named_with_its_effect_and_its_place(variables, consequence, repair):
    (problem,) = problems_of({"variables": variables})
    assert f"bezel:variables.{next(iter(variables))}".startswith(problem.key.rstrip("…"))
    assert consequence in problem.consequence
    assert repair in problem.repair


@pytest.mark.parametrize(
    "variables",
    [
        {"VLLM_PORT": "8000"},
        {"VLLM_LOGGING_LEVEL": "debug"},
        {"VLLM_BATCH_INVARIANT": "0"},
        {"VLLM_BATCH_INVARIANT": "2"},
        {"VLLM_USE_MODELSCOPE": "False"},
        {"VLLM_LOG_STATS_INTERVAL": "2.5"},
        {"VLLM_GPT_OSS_SYSTEM_TOOL_MCP_LABELS": "container, code_interpreter"},
        {"VLLM_SERVER_DEV_MODE": "0"},
        {"MAX_JOBS": "4", "PYTORCH_ALLOC_CONF": "expandable_segments:True", "OMP_NUM_THREADS": "4"},
        {"TWO_LINES": "a\nb"},
        {"NAME": "x" * 32_768},
    ],
    ids=str,
)
def test_what_the_server_reads_is_planned(variables):
    plan = make_plan(with_changes({"variables": variables}), project="p", stack="s")
    assert isinstance(plan, Plan)
    assert variables.items() <= plan.service.environment.items()


def test_a_value_that_looks_like_a_secret_is_reported_once_and_not_shown():
    for name, value in (("VLLM_MY_TOKEN", "geheim"), ("MY_PASSWORD", "gehe\0im")):
        (problem,) = problems_of({"variables": {name: value}})
        assert "gehe" not in str(problem)


@pytest.mark.parametrize("version", vllm_versions())
def test_every_recorded_release_reads_what_the_plan_sets_itself(version):
    for gpu in (*accelerators().values(), None):
        for offline in (True, False):
            assert not list(check_read(planned_variables(gpu, offline=offline), vllm_options(version), tpu=False))


@pytest.mark.slow
@given(st.sampled_from(sorted(OPTIONS.variables)), st.integers(-5, 99_999))
def test_whatever_reads_a_number_is_given_one(name, number):
    wrong = list(check_read({name: str(number)}, OPTIONS, tpu=False))
    assert not (wrong and OPTIONS.variables[name].kind in ("int", "float", "json", "text"))


@pytest.mark.slow
@given(st.sampled_from(sorted(OPTIONS.variables)))
def test_the_words_of_a_switch_and_of_a_choice_are_taken(name):
    variable = OPTIONS.variables[name]
    for word in (*variable.on, *variable.off, *variable.choices):
        assert not list(check_read({name: word}, OPTIONS, tpu=False))


def test_a_recording_without_variables_refuses_none():
    assert not list(check_read({"VLLM_NO_SUCH": "1"}, dataclasses.replace(OPTIONS, variables={}), tpu=False))


def test_on_a_tpu_the_variables_of_both_programs_are_read_and_no_others():
    read = {"VLLM_TPU_BUCKET_PADDING_GAP": "256", "TPU_OFFLOAD_NUM_CPU_CHUNKS": "8", "VLLM_LOGGING_LEVEL": "INFO"}
    assert lease_plan(with_lease_changes(V6E4_MOE, variables=read)).node.environment.items() >= read.items()
    (problem,) = lease_problems(with_lease_changes(V6E4_MOE, variables={"VLLM_NO_SUCH": "1"}))
    assert f"nor tpu-inference {tpu_variables().version} reads it: it would have no effect" in problem.consequence
    (problem,) = lease_problems(with_lease_changes(V6E4_MOE, variables={"VLLM_TPU_BUCKET_PADING_GAP": "256"}))
    assert "did you mean VLLM_TPU_BUCKET_PADDING_GAP?" in problem.repair
    (problem,) = lease_problems(with_lease_changes(V6E4_MOE, variables={"VLLM_TPU_BUCKET_PADDING_GAP": "wide"}))
    assert "a whole number" in problem.consequence


@pytest.mark.parametrize("value", ["a\nb", "a\rb", "a\0b"], ids=repr)
def test_a_variable_that_a_leased_machine_cannot_hand_over_is_refused(value):
    (problem,) = lease_problems(with_lease_changes(V6E4_MOE, variables={"NAME": value}))
    assert problem.key == "bezel:variables.NAME"


@pytest.mark.parametrize(("stack", "name"), [(V6E4_MOE, "VLLM_XLA_CACHE_PATH"), (L4X8, "VLLM_CACHE_ROOT")])
def test_what_the_machine_sets_itself_is_not_set_by_the_stack_file(stack, name):
    (problem,) = lease_problems(with_lease_changes(stack, variables={name: "/x"}))
    assert (problem.key, problem.consequence) == (f"bezel:variables.{name}", "the plan sets it.")


@pytest.mark.parametrize(
    ("changes", "key", "repair"),
    [
        ({"VLLM_LOGGING_LEVEL": "INFO"}, "bezel:VLLM_LOGGING_LEVEL", "`bezel:variables: {VLLM_LOGGING_LEVEL: …}`"),
        ({"max-model-len": 4096}, "bezel:max-model-len", "`bezel:vllm: {max-model-len: …}`"),
        (
            {"vllm": {"VLLM_LOGGING_LEVEL": "INFO"}},
            "bezel:vllm.VLLM-LOGGING-LEVEL",
            "`bezel:variables: {VLLM_LOGGING_LEVEL: …}`",
        ),
        ({"secrets": {"VLLM_LOGGING_LEVEL": "x"}}, "bezel:secrets.VLLM_LOGGING_LEVEL", "under bezel:variables"),
    ],
    ids=["a variable on top", "an option on top", "a variable among options", "a variable among secrets"],
)
def test_the_repair_names_the_section_that_it_belongs_to(changes, key, repair):
    (problem,) = problems_of(changes)
    assert problem.key == key
    assert repair in problem.repair


@pytest.mark.slow
@pytest.mark.parametrize("more", [0, 1])
def test_a_container_takes_1000_variables_and_no_more(more):
    planned, secrets = {"A": "1", "B": "1"}, {"HF_TOKEN": "x"}
    variables = {f"V{number}": "" for number in range(997 + more)}
    settings = Settings(model="", accelerator="", region="", variables=variables, secrets=secrets)
    problems = list(check_environment(settings, planned, None, {}))
    assert [problem.repair for problem in problems] == ["remove 1 of them."] * more
    assert not list(check_environment(settings, planned, None, {}, leased=True))


@pytest.mark.parametrize("more", [0, 1])
def test_a_resource_takes_64_labels_and_no_more(more):
    labels = {f"l{number}": "" for number in range(60 + more)}
    all_labels = {"managed-by": "", "stack": "", "environment": "", "model": "", **labels}
    assert [problem.repair for problem in check_label_count(labels, all_labels)] == ["remove 1 of them."] * more


def test_too_many_labels_are_refused_by_the_plan():
    (problem,) = problems_of({"labels": {f"l{number}": "" for number in range(70)}})
    assert problem.key == "bezel:labels"
    with pytest.raises(PlanError, match="maximum of 64"):
        lease_plan(with_lease_changes(V6E4_MOE, labels={f"l{number}": "" for number in range(70)}))
