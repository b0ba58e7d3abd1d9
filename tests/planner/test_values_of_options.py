"""Values that vLLM's own classes refuse are refused before anything is paid for, and what they take is planned."""

from __future__ import annotations

import json

import pytest

from bezel.planner import make_plan
from bezel.planner.vllm.option_schema import misfits
from bezel_catalog import vllm_options
from tests.support.planner.l4_stack import problems_of, with_changes
from tests.support.planner.v6e_stack import V6E4_MOE, lease_plan, lease_problems, with_lease_changes

# options of the L4 stack; the key that is named; what the consequence says; what the repair says
REFUSED = {
    "a level that there is not": ({"optimization-level": 7}, "optimization-level", "does not know", "0, 1, 2, 3"),
    "no room for adapters": ({"max-loras": 0}, "max-loras", "a whole number of at least 1", ""),
    "a stream of nothing": ({"stream-interval": 0}, "stream-interval", "a whole number of at least 1", ""),
    "negative memory": ({"cpu-offload-gb": -1}, "cpu-offload-gb", "a number of at least 0", ""),
    "a share of all": ({"watermark": 1}, "watermark", "of at least 0 and below 1", ""),
    "a list for a map": ({"override-generation-config": [1]}, "override-generation-config", "a map", "a map"),
    "an unknown key": ({"compilation-config": {"levle": 3}}, "compilation-config.levle", "does not know this key", ""),
    "a misspelt key": (
        {"compilation-config": {"cudagraph_modes": "NONE"}},
        "compilation-config.cudagraph_modes",
        "does not know this key",
        "did you mean cudagraph_mode?",
    ),
    "an unknown key further in": (
        {"compilation-config": {"pass_config": {"no_such_pass": True}}},
        "compilation-config.pass_config.no_such_pass",
        "does not know this key",
        "fuse_norm_quant",
    ),
    "words for a number inside": (
        {"compilation-config": {"cudagraph_num_of_warmups": "many"}},
        "compilation-config.cudagraph_num_of_warmups",
        "a whole number",
        "",
    ),
    "a word that there is not inside": (
        {"kv-events-config": {"publisher": "mqtt"}},
        "kv-events-config.publisher",
        "does not know this value",
        "zmq",
    ),
    "a list where a map is merged": ({"limit-mm-per-prompt": []}, "limit-mm-per-prompt", "a map", ""),
    "a rank of several": ({"data-parallel-rank": 0}, "data-parallel-rank", "several machines", "remove it"),
    "outputs without requests": ({"collect-detailed-traces": "all"}, "collect-detailed-traces", "it needs otlp", "set"),
    "a format that nobody registered": ({"config-format": "x"}, "config-format", "does not know this value", "hf"),
    "a format of other files": ({"config-format": "mistral"}, "config-format", "no params.json", "remove it"),
    "an end before the start": ({"shutdown-timeout": -1}, "shutdown-timeout", "of at least 0", ""),
    "a rest of less than nothing": ({"sse-keep-alive-interval": -1}, "sse-keep-alive-interval", "of at least 0", ""),
    "no window": ({"disable-sliding-window": True}, "disable-sliding-window", "without its window", "remove it"),
    "experts that there are not": ({"enable-expert-parallel": True}, "enable-expert-parallel", "has no experts", ""),
    "balance without experts": ({"enable-eplb": True}, "enable-eplb", "it needs enable-expert-parallel", "set"),
    "parts of a batch": ({"ubatch-size": 2}, "ubatch-size", "only with all2all-backend", "remove it"),
    "halves of a batch": ({"enable-dbo": True}, "enable-dbo", "only with all2all-backend", "remove it"),
    "prompts on several GPUs": ({"prefill-context-parallel-size": 2}, "prefill-context-parallel-size", "has 1 GPU", ""),
    "a cache on several GPUs": (
        {"decode-context-parallel-size": 2},
        "decode-context-parallel-size",
        "not a multiple of it",
        "remove it",
    ),
    "a transfer by nobody": (
        {"kv-transfer-config": {"kv_port": 1}},
        "kv-transfer-config",
        "kv_connector and kv_role must be set",
        "add",
    ),
    "a transfer without a role": (
        {"kv-transfer-config": {"kv_connector": "SimpleCPUOffloadConnector"}},
        "kv-transfer-config",
        "kv_role must be set",
        "add kv_role",
    ),
    "speculation without a method": ({"speculative-config": {}}, "speculative-config", "method, model", "remove it"),
    "a list for buckets": ({"custom-histogram-buckets": []}, "custom-histogram-buckets", "a map", ""),
    "a switch for a map that is converted": (
        {"attention-config": {"backend_per_kind": True}},
        "attention-config.backend_per_kind",
        "a map",
        "",
    ),
    "a field that the class fills in": (
        {"compilation-config": {"static_all_moe_layers": []}},
        "compilation-config.static_all_moe_layers",
        "does not know this key",
        "",
    ),
    "JSON text": ({"compilation-config": '{"levle": 3}'}, "compilation-config.levle", "does not know this key", ""),
}


@pytest.mark.parametrize(("options", "key", "consequence", "repair"), REFUSED.values(), ids=REFUSED)
def test_a_value_that_vllms_class_refuses_is_refused_by_the_plan(options, key, consequence, repair):
    (problem,) = problems_of({"vllm": options})
    assert problem.key == f"bezel:vllm.{key}"
    assert consequence in problem.consequence
    assert repair in problem.repair


@pytest.mark.parametrize(
    "options",
    [
        {"optimization-level": 3},
        {"optimization-level": "2"},
        {"stream-interval": 1},
        {"cpu-offload-gb": 0},
        {"max-cpu-loras": 4},
        {"ignore-patterns": [1, "original/**"]},
        {"override-generation-config": {"temperature": 0.2}},
        {"compilation-config": {"mode": "VLLM_COMPILE", "cudagraph_mode": "PIECEWISE", "custom_ops": ["all"]}},
        {"compilation-config": {"pass_config": {"fuse_norm_quant": True}, "cudagraph_capture_sizes": [1, 2, 4]}},
        {"cudagraph-capture-sizes": [1, 2, 4]},
        {"max-num-queued-tokens": "16K"},
        {"host": "0.0.0.0"},
        {"attention-backend": "auto"},
        {"attention-backend": "FLEX_ATTENTION", "kv-cache-dtype": "auto", "max-model-len": 16384},
        {"attention-config": {"backend_per_kind": {}}},
        {"moe-backend": "TRITON"},
        {"config-format": "hf"},
        {"enable-fault-tolerance": False, "ray-workers-use-nsight": False, "nnodes": 1, "grpc": False},
        {"ubatch-size": 1, "enable-dbo": False, "prefill-context-parallel-size": 1, "decode-context-parallel-size": 1},
        {"disable-sliding-window": False, "enable-expert-parallel": False, "enable-eplb": False},
        {"kv-transfer-config": {"kv_connector": "DecodeBenchConnector", "kv_role": "kv_both"}},
    ],
    ids=json.dumps,
)
def test_a_value_that_vllms_class_takes_is_planned(options):
    assert make_plan(with_changes({"vllm": options}), project="p", stack="s")


def test_experts_are_divided_where_the_model_has_some():
    assert lease_plan(with_lease_changes(V6E4_MOE, vllm={"enable-expert-parallel": True}))


@pytest.mark.parametrize("schema", [vllm_options("0.32.0").values, vllm_options("0.33.0").values], ids=["0.32", "0.33"])
def test_the_default_of_every_option_fits_its_own_schema(schema):
    for version in ("0.32.0", "0.33.0"):
        for option in vllm_options(version).options:
            if option.default is not None and option.dest in schema:
                assert not list(misfits(schema[option.dest], option.default)), option.dest


@pytest.mark.parametrize(
    ("schema", "value", "wanted"),
    [
        ({"type": "integer", "minimum": 0}, "0", None),
        ({"type": "integer", "minimum": 0}, -1, "a whole number of at least 0"),
        ({"type": "integer", "exclusiveMinimum": 0}, 0, "a whole number above 0"),
        ({"type": "integer"}, 1.5, "a whole number"),
        ({"type": "integer"}, True, None),
        ({"type": "number", "maximum": 1}, 1, None),
        ({"type": "number", "maximum": 1}, 1.1, "a number of at most 1"),
        ({"type": "number", "exclusiveMaximum": 1}, 1, "a number below 1"),
        ({"type": "boolean"}, "yes", None),
        ({"type": "boolean"}, "perhaps", "true or false"),
        ({"type": "string"}, 3, "text"),
        ({"type": "null"}, None, None),
        ({"type": "null"}, 1, "null"),
        ({"const": "fp8"}, "fp8", None),
        ({"const": "fp8"}, "fp4", "one of fp8"),
        ({"enum": [0, 1]}, True, "one of 0, 1"),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, None, None),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "x", "a whole number"),
        ({"anyOf": [{"type": "integer"}, {"type": "array"}]}, "x", "a whole number, or a list"),
        ({"type": "array", "items": {"type": "integer"}}, [1, "2"], None),
        ({"type": "array", "items": {"type": "integer"}}, [1, "x"], "a whole number"),
        ({"type": "array", "minItems": 1}, [], "a list of 1 or more"),
        ({"type": "array"}, {}, "a list"),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, {"a": "x"}, "a whole number"),
        ({"type": "object", "properties": {"a": {}}, "additionalProperties": True}, {"b": 1}, None),
        ({"type": "object", "properties": {"a": {}}, "required": ["a"]}, {}, "a value: it is required"),
        ({}, "anything", None),
    ],
    ids=str,
)
def test_a_schema_takes_what_pydantic_takes(schema, value, wanted):
    refusals = list(misfits(schema, value))
    assert [each.expected for each in refusals] == ([] if wanted is None else [wanted])


@pytest.mark.parametrize(
    ("options", "key"),
    [
        ({"runner": "pooling"}, "runner"),
        ({"runner": "draft"}, "runner"),
        ({"convert": "embed"}, "convert"),
        ({"tokens-only": True}, "tokens-only"),
        ({"skip-tokenizer-init": True}, "skip-tokenizer-init"),
        ({"load-format": "dummy"}, "load-format"),
    ],
    ids=str,
)
def test_a_server_that_is_healthy_and_serves_something_else_is_refused(options, key):
    for problems in (problems_of({"vllm": options}), lease_problems(with_lease_changes(V6E4_MOE, vllm=options))):
        assert [problem.key for problem in problems] == [f"bezel:vllm.{key}"]
        assert "its health check still passes" in problems[0].consequence


def test_what_serves_the_model_is_planned():
    options = {"runner": "generate", "convert": "none", "load-format": "auto", "tokens-only": False}
    assert make_plan(with_changes({"vllm": options}), project="p", stack="s")


def test_random_weights_are_served_where_the_stack_says_so():
    random = {"vllm": {"load-format": "dummy"}, "smoke": {"random_weights": True}}
    assert make_plan(with_changes(random), project="p", stack="s")


@pytest.mark.parametrize("name", ["pt", "npcache", "sharded_state", "tensorizer", "runai_streamer_sharded"])
def test_a_format_of_other_files_than_the_checkpoints_is_refused(name):
    (problem,) = problems_of({"vllm": {"load-format": name}})
    assert "plain safetensors files" in problem.consequence
    assert "runai_streamer" in problem.repair


def test_a_leased_machine_reads_files_of_its_own_disk():
    (problem,) = lease_problems(with_lease_changes(V6E4_MOE, vllm={"load-format": "runai_streamer"}))
    assert (problem.key, "runai" in problem.repair) == ("bezel:vllm.load-format", False)
    assert lease_plan(with_lease_changes(V6E4_MOE, vllm={"load-format": "safetensors"}))


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::"])
def test_a_server_that_listens_where_nobody_calls_is_refused(host):
    (problem,) = problems_of({"vllm": {"host": host}})
    assert "listen at this address only" in problem.consequence
    assert "write 0.0.0.0" in problem.repair


def test_a_probe_may_wait_as_long_as_its_period():
    assert make_plan(with_changes({"probe": {"period_seconds": 10, "timeout_seconds": 10}}), project="p", stack="s")
