"""Whatever stands in a stack file, the answer is a plan or problems with repairs; never a crash, never a default."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any, get_args, get_origin

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from bezel.planner import PlanError, make_plan
from bezel.planner.base.names import ACCOUNT_LENGTH, REPOSITORY_LENGTH, SERVICE_LENGTH, label, resource_name
from bezel.planner.base.parse import read_settings
from bezel.planner.base.settings import Settings
from bezel_base.errors import NOT_SHOWN, format_value
from bezel_catalog import vllm_options

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.slow  # hundreds of generated configurations

MINIMAL = {"model": "gemma-4-12b-it-qat-w4a16", "accelerator": "nvidia-l4", "region": "us-east4"}

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 10**6)
    | st.sampled_from([10**30, -(10**30)])
    | st.floats(allow_nan=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
keys = st.sampled_from(sorted(Settings.model_fields)) | st.text(max_size=8)
nested = {
    name: st.dictionaries(
        st.sampled_from(sorted(getattr(field.annotation, "model_fields", {"x": 0}))) | st.text(max_size=5),
        json_values,
        max_size=3,
    )
    for name, field in Settings.model_fields.items()
}
options = st.dictionaries(
    st.sampled_from(sorted(vllm_options("0.32.0").names())) | st.text(max_size=8), json_values, max_size=4
)


def plan_or_problems(config):
    try:
        return make_plan(config, project="p-1", stack="s")
    except PlanError as error:
        refused = error
    assert refused.problems
    for problem in refused.problems:
        assert all((problem.key, problem.value, problem.consequence, problem.repair)), problem
    return refused


@settings(max_examples=40, deadline=None)
@given(st.dictionaries(keys, json_values, max_size=5))
def test_any_top_level_values(config):
    plan_or_problems(config)


@settings(max_examples=40, deadline=None)
@given(st.fixed_dictionaries({}, optional=nested), options)
def test_any_nested_values_over_a_working_stack(config, vllm):
    plan_or_problems({**MINIMAL, **config, "vllm": vllm})


engine_values = st.one_of(
    json_values, st.sampled_from(["1K", "16k", "auto", "0", "-1", "1.5", "fp8", "lazy", "ngram", "true", {}, []])
)


@settings(max_examples=50, deadline=None)
@given(
    st.fixed_dictionaries(
        {},
        optional=dict.fromkeys(
            (
                "max-model-len",
                "max-num-seqs",
                "max_num_batched_tokens",
                "gpu-memory-utilization",
                "kv-cache-dtype",
                "safetensors-load-strategy",
                "cpu-offload-gb",
                "speculative-config",
                "spec-method",
                "spec-model",
                "spec-tokens",
                "served-model-name",
                "quantization",
            ),
            engine_values,
        ),
    )
)
def test_any_values_of_the_options_that_the_plan_reckons_with(vllm):
    plan_or_problems({**MINIMAL, "vllm": vllm})


def test_a_minimal_stack_is_planned():
    plan = plan_or_problems(MINIMAL)
    assert plan.cost.as_output()["usd_per_hour"] == 1.0465
    assert plan.origins["resources.cpu"] == "computed"
    assert plan.origins["region"] == "stack file"
    assert plan.origins["vllm.max-model-len"] == "catalogue default"


@pytest.mark.parametrize(
    ("changes", "taken", "concurrency", "requests"),
    [
        ({"vllm": {"max-num-seqs": 4}}, 8, 4, 12),
        ({"vllm": {"max-num-seqs": 600}}, 1000, 64, 192),
        ({"scaling": {"request_concurrency": 4}}, 4, 4, 12),
        ({"scaling": {"max_instances": 2}}, 16, 16, 48),
        ({"smoke": {"concurrency": 2, "requests": 5}}, 16, 2, 5),
    ],
)
def test_requests_at_a_time_follow_the_batch(changes, taken, concurrency, requests):
    plan = plan_or_problems({**MINIMAL, **changes})
    assert plan.service.request_concurrency == taken
    assert (plan.smoke.concurrency, plan.smoke.requests) == (concurrency, requests)


def test_the_defaults_of_pulumi_yaml_change_nothing():
    handed_over = {"environment": "dev", "vllm_version": "0.32.0", "weights": {}, "vllm": {}, "labels": {}, "cost": {}}
    assert make_plan({**MINIMAL, **handed_over}, project="p-1", stack="s") == make_plan(
        MINIMAL, project="p-1", stack="s"
    )


def test_the_same_settings_give_the_same_plan():
    assert make_plan(MINIMAL, project="p-1", stack="s") == make_plan(dict(MINIMAL), project="p-1", stack="s")


def test_a_stack_without_a_project_is_refused():
    with pytest.raises(PlanError) as caught:
        make_plan(MINIMAL, project=None, stack="s")
    assert [problem.key for problem in caught.value.problems] == ["gcp:project"]


@pytest.mark.parametrize("project", ["a b; rm", "Acme", "123456789012", "acme-", "-acme", "acme_llm", "a" * 31, "a/b"])
def test_a_stack_of_a_project_that_cannot_be_is_refused(project):
    with pytest.raises(PlanError) as caught:
        make_plan(MINIMAL, project=project, stack="s")
    (problem,) = caught.value.problems
    assert (problem.key, problem.value) == ("gcp:project", project)
    assert "gcloud projects list" in problem.repair


@pytest.mark.parametrize("project", ["acme-llm", "p-1", "example.com:acme-llm"])
def test_a_project_s_id_is_taken_with_the_domain_of_old_ones(project):
    config = {**MINIMAL, "weights": {**MINIMAL.get("weights", {}), "bucket": "acme-models"}}  # the default has no colon
    assert make_plan(config, project=project, stack="s").project == project


@given(st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), min_size=1, max_size=90))
def test_names_keep_the_platforms_rules_for_any_stack(stack):
    for suffix, length in (("", SERVICE_LENGTH), ("", ACCOUNT_LENGTH), ("images", REPOSITORY_LENGTH)):
        name = resource_name(stack, suffix=suffix, length=length)
        assert 6 <= len(name) <= length
        assert name[0].isalpha()
        assert name[-1] != "-"
        assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
    assert set(label(stack)) <= set("abcdefghijklmnopqrstuvwxyz0123456789_-")


def test_two_stacks_never_share_a_name():
    pairs = [("L4", "l4"), ("a.b", "a-b"), ("x" * 60 + "1", "x" * 60 + "2"), ("l4-qat", "l4-qat-mtp")]
    for one, other in pairs:
        assert resource_name(one, length=ACCOUNT_LENGTH) != resource_name(other, length=ACCOUNT_LENGTH)
    assert resource_name("l4-qat", length=SERVICE_LENGTH) == "bezel-l4-qat"


@pytest.mark.parametrize("text", ["hf_abcdefgh1234", "x AIzaSyA-1234567890", "-----BEGIN PRIVATE KEY", "eyJhbGciOi12"])
def test_what_looks_like_a_secret_is_not_shown(text):
    assert format_value(text) == format_value({"a": [text]}) == NOT_SHOWN


@pytest.mark.parametrize(
    ("value", "text"), [("us-east4", "us-east4"), (8, "8"), ({"a": 1}, '{"a": 1}'), (None, "null")]
)
def test_what_does_not_is_shown(value, text):
    assert format_value(value) == text


def test_a_long_value_is_cut():
    assert len(format_value("x" * 1000)) < 200


def test_planning_loads_nothing_of_the_edges():
    program = (
        "import sys; from bezel.planner import make_plan; "
        f"make_plan({MINIMAL!r}, project='p', stack='s'); "
        "print([name for name in ('pulumi', 'httpx', 'google', 'yaml', 'asyncio', 'grpc') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"


def lists_of_sections(model: type[BaseModel], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Path and model of the entries of every list of sections."""
    for name, field in model.model_fields.items():
        for part in (field.annotation, *get_args(field.annotation)):
            if not isinstance(part, type) or not issubclass(part, BaseModel):
                continue
            if get_origin(field.annotation) is tuple:
                yield (*path, name), part
            else:
                yield from lists_of_sections(part, (*path, name))


LISTS = dict(lists_of_sections(Settings))


def test_the_lists_of_sections_are_found() -> None:
    assert {("scaling", "schedule"), ("cost", "prices"), ("lease", "zones")} <= set(LISTS)


@pytest.mark.parametrize("path", LISTS, ids=".".join)
def test_each_wrong_entry_of_a_list_is_a_problem_with_its_key(path: tuple[str, ...]) -> None:
    fields = LISTS[path].model_fields
    whole = {name: field.examples[0] if field.examples else 1 for name, field in fields.items()}
    wrong: list[tuple[Any, str]] = [
        (3, ""),
        ("x", ""),
        (None, ""),
        ([], ""),
        ({**whole, "no_such_key": 1}, "no_such_key"),
    ]
    for name, field in fields.items():
        wrong += [({**whole, name: value}, name) for value in ({"a": 1}, [[]])]
        if field.is_required():
            wrong += [({key: value for key, value in whole.items() if key != name}, name)]
    for entry, name in wrong:
        for entries in ([entry], [whole, entry], [entry, entry]):
            config: Any = entries
            for part in reversed(path):
                config = {part: config}
            _, problems = read_settings({**MINIMAL, **config})
            number = entries.index(entry)
            key = f"bezel:{'.'.join(path)}.{number}" + (f".{name}" if name else "")
            assert any(problem.key == key for problem in problems), (entries, problems)
