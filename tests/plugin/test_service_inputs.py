"""Inputs of `VllmService` from programs in other languages: settings in camel case, which its plan judges."""

from typing import Any

import pulumi
import pytest
from google.protobuf import struct_pb2
from pulumi.runtime import rpc
from pulumi.runtime.proto import provider_pb2

from bezel_base.errors import NOT_SHOWN, Problem
from bezel_plugin.construct import InputsError, arguments_of, construct
from bezel_plugin.table import COMPONENTS
from tests.support.components.fake_engine import declare

TOKEN = "bezel:services:VllmService"
ROW = COMPONENTS[TOKEN]
INPUTS: dict[str, Any] = {
    "project": "acme-llm",
    "model": "gemma-4-e2b-it",
    "accelerator": "nvidia-l4",
    "region": "us-east4",
}
SECRET = {rpc._special_sig_key: rpc._special_secret_sig, "value": "hidden"}
UNKNOWN = rpc.UNKNOWN
# As Google and GitHub write theirs, so that it reads as a credential.
TOKEN_OF_A_HUB = "hf_" + "abcdefghijklmnopqrstuvwxyz012345"
UNKNOWN_VALUE = "(not known yet)"


def refusal(inputs: dict[str, Any]) -> Problem:
    """The problem that the engine shows for inputs, as they come over the wire."""
    properties = struct_pb2.Struct()
    properties.update(inputs)
    request = provider_pb2.ConstructRequest(type=TOKEN, name="chat", inputs=properties)
    with pytest.raises(InputsError) as refused:
        declare(lambda: construct(request, pulumi.ResourceOptions()))
    assert "Traceback" not in str(refused.value)
    (problem,) = refused.value.problems
    assert isinstance(problem, Problem)
    return problem


def test_settings_have_their_names_and_numbers_of_a_stack_file() -> None:
    scaling = {"maxInstances": 2.0, "schedule": [{"cron": "0 8 * * *", "minInstances": 1.0}]}
    options = {"max-model-len": 4096.0, "speculative-config": {"num_speculative_tokens": 4.0}, "seed": None}
    arguments = arguments_of(ROW, "chat", {**INPUTS, "cloudName": "talk", "scaling": scaling, "vllm": options})
    assert arguments == {
        **INPUTS,
        "cloud_name": "talk",
        "scaling": {"max_instances": 2, "schedule": [{"cron": "0 8 * * *", "min_instances": 1}]},
        "vllm": {"max-model-len": 4096, "speculative-config": {"num_speculative_tokens": 4}, "seed": None},
    }
    assert type(arguments["vllm"]["max-model-len"]) is int


@pytest.mark.usefixtures("event_loop")
@pytest.mark.parametrize(
    ("section", "key"), [("weights", "bucket"), ("vpc", "network"), ("vpc", "subnetwork")]
)  # fmt: skip
def test_a_name_that_no_policy_reads_may_be_unknown(section: str, key: str) -> None:
    arguments = arguments_of(ROW, "chat", {**INPUTS, section: {key: pulumi.UNKNOWN}})
    assert isinstance(arguments[section][key], pulumi.Output)


@pytest.mark.parametrize(
    ("changes", "key", "value", "consequence", "repair"),
    [
        ({"modle": "gemma"}, "chat: modle", None, "there is no such input", "write model instead"),
        ({"scaling": {"maxInstance": 2}}, "chat: scaling.maxInstance", None, "no such", "write maxInstances instead"),
        ({"scaling": {"maxInstances": "two"}}, "scaling.maxInstances", "two", "a whole number", "`maxInstances: 1`"),
        ({"scaling": 4}, "scaling", "4", "expected a map", "`scaling: {maxInstances: 1}`"),
        ({"scaling": {"requestConcurrency": 4000}}, "scaling.requestConcurrency", "4000", "out of", "at most 1000"),
        ({"cloudName": 4}, "chat: cloudName", "4", "expected a text", "write a text"),
        ({"without": "seed"}, "chat: without", "seed", "expected a list of texts", "write a list"),
        ({"without": [4]}, "chat: without", "[4]", "expected a list of texts", "write a list"),
        ({"without": ["sed"]}, "vllm.sed", "null", "no default of it is left out", "did you mean seed"),
        ({"without": [UNKNOWN]}, "chat: without[0]", UNKNOWN_VALUE, "no policy could judge", "write the value"),
        ({"model": None}, "model", "(not set)", "it is required", "add `model: "),
        ({"model": "gemma-4-31b-it"}, "model", "gemma-4-31b-it", "does not fit nvidia-l4", "gemma-4-31b-it-qat-w4a16"),
        ({"accelerator": "v6e-4"}, "accelerator", "v6e-4", "is leased", "use LeasedVllmService, in a program in Py"),
        (
            {"vllm": {"max-model-length": 1}},
            "vllm.max-model-length",
            "1",
            "does not have this option",
            "max-model-len?",
        ),
        ({"region": UNKNOWN}, "chat: region", UNKNOWN_VALUE, "no policy could judge", "write the value itself"),
        ({"vllm": {"seed": UNKNOWN}}, "chat: vllm.seed", UNKNOWN_VALUE, "no policy could judge", "write the value"),
        ({"vllm": {"hf-overrides": {"a": [UNKNOWN]}}}, "chat: vllm.hf-overrides.a[0]", UNKNOWN_VALUE, "no pol", "wri"),
        (
            {"weights": {"bucket": UNKNOWN}, "rollout": "gated"},
            "weights.bucket",
            None,
            "rollout = gated",
            "`dependsOn`",
        ),
        ({"weights": {"bucket": UNKNOWN}, "rollout": "gated"}, "weights.bucket", None, "gated", "`rollout: direct`"),
        (
            {"weights": {"bucket": UNKNOWN, "loading": "runai-streamer"}},
            "weights.bucket",
            None,
            "would be an argument of the server",
            "set `weights: {loading: fuse}`",
        ),
        ({"labels": {"owner": SECRET}}, "chat: labels", NOT_SHOWN, "may not be a secret", "belongs into Secret Mana"),
        ({"variables": {"HF_TOKEN": TOKEN_OF_A_HUB}}, "variables.HF_TOKEN", NOT_SHOWN, "could read it", "`secrets: {"),
        ({"cost": {"maxHourlyUsd": 0.1}}, "cost.maxHourlyUsd", "0.1", "above the limit", "raise `cost.maxHourlyUsd`"),
    ],
)
def test_a_wrong_input_of_a_service_is_refused(
    changes: dict[str, Any], key: str, value: str | None, consequence: str, repair: str
) -> None:
    problem = refusal({**INPUTS, **changes})
    assert problem.key == key
    assert value is None or problem.value == value
    assert consequence in problem.consequence
    assert repair in problem.repair
