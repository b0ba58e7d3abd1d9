"""Explanations: every known name has one, from what is recorded and with its source; an unknown name gets near ones."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from pydantic import ValidationError

from bezel.cli.main import parse
from bezel.operations.context import Context
from bezel.operations.explain import checkpoints, policies, settings, variables
from bezel.operations.explain import vllm_options as options
from bezel.operations.explain.entry import Entry
from bezel.operations.explain.explain import ExplainArguments, Explanation, explain
from bezel.planner.vllm.option_checks import OWNED
from bezel_base.errors import UserError
from bezel_catalog import models, removed_options, tpu_variables, vllm_options, vllm_risks, vllm_versions

ROOT = Path(__file__).parents[2]
VERSION = "0.32.0"


def of(subject: str, version: str = VERSION) -> Explanation:
    with Context(ROOT, {}) as context:
        return explain(context, ExplainArguments(subject=subject, vllm_version=version))


def fact(entry: Entry, name: str) -> str | None:
    return {each.name: each.value for each in entry.facts}.get(name)


@pytest.mark.slow
@pytest.mark.parametrize("version", vllm_versions())
def test_every_recorded_option_is_explained_by_its_recording(version: str) -> None:
    for option in vllm_options(version).options:
        (entry,) = options.entries(f"--{option.name}", version)
        assert entry.name == f"--{option.name}"
        assert fact(entry, "takes")
        assert version in entry.source
        if option.choices and len(option.choices) <= 60:
            assert fact(entry, "choices") == ", ".join(option.choices)
        assert (OWNED.get(option.name) is not None) == any(
            why.startswith("the plan refuses it: ") for why in entry.why
        ) or (option.name == "api-key")


@pytest.mark.slow
def test_every_other_known_name_is_explained() -> None:
    assert [name for name in options.names(VERSION) if not options.entries(name, VERSION)] == []
    assert [name for name in variables.names(VERSION) if not variables.entries(name, VERSION)] == []
    assert [name for name in checkpoints.names() if not checkpoints.entries(name)] == []
    assert [name for name in settings.names() if not settings.entries(name)] == []
    assert [name for name in policies.names() if not policies.entries(name, ROOT)] == []
    assert {*tpu_variables().variables} <= {*variables.names(VERSION)}


@pytest.mark.parametrize(
    ("subject", "kind", "name", "says"),
    [
        ("--max_model_len", "vLLM option", "--max-model-len", "4096 or 4K"),
        ("max-model-len", "vLLM option", "--max-model-len", "0.33.0"),
        ("-tp", "vLLM option", "--tensor-parallel-size", "at least 1"),
        ("--no-enable-prefix-caching", "vLLM option", "--enable-prefix-caching", "true or false"),
        ("--speculative-config.model", "vLLM option", "--speculative-config.model", "a key of the map"),
        ("--swap-space", "vLLM option", "--swap-space", "exits with code 2"),
        ("--trust-remote-code", "vLLM option", "--trust-remote-code", "accepted_risks: [trust-remote-code]"),
        ("--port", "vLLM option", "--port", "the plan refuses it"),
        ("VLLM_LOGGING_LEVEL", "variable", "VLLM_LOGGING_LEVEL", "DEBUG"),
        ("VLLM_SERVER_DEV_MODE", "variable", "VLLM_SERVER_DEV_MODE", "a risk if it is on"),
        ("HF_TOKEN", "variable", "HF_TOKEN", "bezel:secrets: {HF_TOKEN: NAME_OF_SECRET}"),
        ("PORT", "variable", "PORT", "Cloud Run sets it"),
        ("google/gemma-4-12B-it", "checkpoint", "gemma-4-12b-it", "22.35 GiB"),
        ("gemma-4-12b-it-qat-w4a16", "checkpoint", "gemma-4-12b-it-qat-w4a16", "no kernel for w4a16"),
        ("google/gemma-4-12B-it-assistant", "checkpoint", "google/gemma-4-12B-it-assistant", "drafts for"),
        ("nvidia-l4", "hardware", "nvidia-l4", "us-east4"),
        ("v6e-4", "hardware", "v6e-4", "refused a flex-start request"),
        ("scaling.max_instances", "setting", "bezel:scaling.max_instances", "at most 1000"),
        ("bezel:rollout", "setting", "bezel:rollout", "direct, gated"),
        ("failure_threshold", "setting", "bezel:probe.failure_threshold", "180"),
        ("most-instances", "policy", "most-instances", "in dev"),
        (" labels ", "policy", "labels", "owner"),
    ],
)
def test_a_name_in_any_spelling_is_explained(subject: str, kind: str, name: str, says: str) -> None:
    explanation = of(subject)
    assert (kind, name) in {(entry.kind, entry.name) for entry in explanation.entries}
    assert says in explanation.text()
    assert all(entry.source for entry in explanation.entries)


def test_a_name_of_several_kinds_is_explained_for_each() -> None:
    assert [entry.kind for entry in of("labels").entries] == ["policy", "setting"]
    assert {"setting", "vLLM option"} <= {entry.kind for entry in of("model").entries}


@pytest.mark.parametrize(
    ("subject", "near"),
    [
        ("--max-modellen", "--max-model-len"),
        ("gemma-4-12b", "gemma-4-12b-it"),
        ("most-instance", "most-instances"),
        ("VLLM_LOGING_LEVEL", "VLLM_LOGGING_LEVEL"),
        ("scaling.max_instance", "scaling.max_instances"),
        ("nvdia-l4", "nvidia-l4"),
    ],
)
def test_a_misspelt_name_is_refused_with_the_near_ones(subject: str, near: str) -> None:
    with pytest.raises(UserError) as refused:
        of(subject)
    assert near in str(refused.value)


def test_what_a_release_does_not_have_is_not_explained_for_it() -> None:
    only = {*vllm_options("0.33.0").names()} - {*vllm_options("0.32.0").names()} - {*removed_options()}
    assert only
    for name in only:
        assert options.entries(f"--{name}", "0.33.0") != []
        assert options.entries(f"--{name}", "0.32.0") == []
    with pytest.raises(UserError, match="no options of this release are recorded"):
        of("--max-model-len", "0.31.0")


def test_a_key_that_a_map_does_not_have_is_not_invented() -> None:
    assert options.entries("--speculative-config.modle", VERSION) == []
    assert options.entries("--max-model-len.x", VERSION) == []


def test_every_risk_is_told_where_its_option_or_variable_is_explained() -> None:
    for risk in vllm_risks().values():
        entries_of_risk = options.entries(f"--{risk.name}", VERSION) + variables.entries(risk.name, VERSION)
        assert any(risk.consequence in why for entry in entries_of_risk for why in entry.why), risk.name


def test_a_checkpoint_says_why_it_is_refused_where_the_catalogue_does() -> None:
    for model in models().values():
        (entry, *_) = checkpoints.entries(model.id)
        assert all(any(reason in why for why in entry.why) for _, reason in model.not_on)


@pytest.mark.slow
@hypothesis_settings(max_examples=25)
@given(st.text(max_size=30))
def test_any_other_text_is_refused_or_explained_by_its_own_name(text: str) -> None:
    try:
        explanation = of(text)
    except (UserError, ValidationError):
        return
    assert explanation.entries


@pytest.mark.slow
def test_the_records_of_the_policies_are_those_of_the_packs() -> None:
    from tools.docs.policy_tables import policy_records

    assert json.loads(json.dumps(policy_records())) == list(policies.records()), (
        "run: python -m tools.docs.operations --write"
    )


@pytest.mark.parametrize(
    ("arguments", "subject", "json_wanted"),
    [
        (["--max-model-len"], "--max-model-len", False),
        (["--json", "--max-model-len"], "--max-model-len", True),
        (["-tp", "--json"], "-tp", True),
        (["nvidia-l4"], "nvidia-l4", False),
    ],
)
def test_an_option_of_vllm_is_a_value_on_the_command_line(
    arguments: list[str], subject: str, *, json_wanted: bool
) -> None:
    read = parse(["explain", *arguments])
    assert (read.subject.strip(), read.json) == (subject, json_wanted)


def test_other_commands_still_refuse_what_they_do_not_know() -> None:
    with pytest.raises(UserError, match="unrecognized argument: --max-model-len"):
        parse(["plan", "l4-qat", "--max-model-len"])
