"""Settings of vLLM that open the server or have it run code are named, and have to be accepted by their names."""

from __future__ import annotations

import json

import pytest

from bezel.planner import LeasePlan, make_plan
from bezel.planner.base.parse import read_settings
from bezel.planner.vllm.arguments import chosen_arguments, merge
from bezel.planner.vllm.risk_checks import check_risks
from bezel_catalog import tpu_variables, unjudged_risks, vllm_options, vllm_risks, vllm_versions
from bezel_catalog.vllm.options import RECORDINGS, read_options
from bezel_catalog.vllm.risks import judged_names, option_texts, variable_texts
from tests.support.planner.l4_stack import problems_of, with_changes
from tests.support.planner.v6e_stack import V6E4_MOE, lease_plan, lease_problems, with_lease_changes

MTP = "/mnt/models/gemma-4-12B-it-assistant"
TRANSFER = {"kv_connector": "OffloadingConnector", "kv_role": "kv_both"}
ENCODERS = {"ec_connector": "ECExampleConnector", "ec_role": "ec_consumer"}
SPY = {"dest": "spy", "flags": ["--spy"], "kind": "value", "type": "str"}


def risks_of(changes, options):
    settings, problems = read_settings(with_changes(changes))
    assert not problems
    return list(check_risks(settings, merge({}, chosen_arguments(settings.vllm, options), options), options))


RISKY = {
    "VLLM_SERVER_DEV_MODE": {"variables": {"VLLM_SERVER_DEV_MODE": "1"}},
    "VLLM_ALLOW_INSECURE_SERIALIZATION": {"variables": {"VLLM_ALLOW_INSECURE_SERIALIZATION": "1"}},
    "VLLM_ALLOW_RUNTIME_LORA_UPDATING": {"variables": {"VLLM_ALLOW_RUNTIME_LORA_UPDATING": "True"}},
    "VLLM_DEBUG_LOG_API_SERVER_RESPONSE": {"variables": {"VLLM_DEBUG_LOG_API_SERVER_RESPONSE": "true"}},
    "VLLM_USE_RUST_FRONTEND": {"variables": {"VLLM_USE_RUST_FRONTEND": "1"}},
    "allowed-local-media-path": {"vllm": {"allowed-local-media-path": "/"}},
    "trust-remote-code": {"vllm": {"trust_remote_code": True}},
    "trust-request-chat-template": {"vllm": {"trust-request-chat-template": True}},
    "trust-request-mm-kwargs": {"vllm": {"trust-request-mm-kwargs": True}},
    "enable-prompt-embeds": {"vllm": {"enable-prompt-embeds": True}},
    "enable-mm-embeds": {"vllm": {"enable-mm-embeds": True}},
    "profiler-config": {"vllm": {"profiler-config": {"profiler": "torch", "torch_profiler_dir": "/x"}}},
    "tool-server": {"vllm": {"tool-server": "demo"}},
    "enable-log-outputs": {"vllm": {"enable-log-outputs": True, "enable-log-requests": True}},
    "middleware": {"vllm": {"middleware": ["acme.Spy"]}},
    "tool-parser-plugin": {"vllm": {"tool-parser-plugin": "/x.py"}},
    "reasoning-parser-plugin": {"vllm": {"reasoning_parser_plugin": "/x.py"}},
    "io-processor-plugin": {"vllm": {"io-processor-plugin": "acme"}},
    "logits-processors": {"vllm": {"logits-processors": ["acme.Logits"]}},
    "worker-cls": {"vllm": {"worker-cls": "acme.Worker"}},
    "worker-extension-cls": {"vllm": {"worker-extension-cls": "acme.Extension"}},
    "scheduler-cls": {"vllm": {"scheduler-cls": "acme.Scheduler"}},
    "distributed-executor-backend": {"vllm": {"distributed-executor-backend": "acme.Executor"}},
    "model-class-overrides": {"vllm": {"model-class-overrides": {"Gemma4ForCausalLM": "acme.Model"}}},
    "hf-overrides": {"vllm": {"hf-overrides": {"architectures": ["Other"]}}},
    "log-config-file": {"vllm": {"log-config-file": "/x.json"}},
    "mm-encoder-fp8-scale-save-path": {
        "vllm": {"mm-encoder-attn-dtype": "fp8", "mm-encoder-fp8-scale-save-path": "/x"}
    },
    "weight-transfer-config": {"vllm": {"weight-transfer-config": {"backend": "nccl"}}},
    "spec-method": {"vllm": {"spec-method": "custom_class", "spec-model": MTP, "spec-tokens": 3}},
    "speculative-config.method": {
        "vllm": {"speculative-config": {"method": "custom_class", "model": MTP, "num_speculative_tokens": 3}}
    },
    "compilation-config.backend": {"vllm": {"compilation-config": {"backend": "acme.compile"}}},
    "compilation-config.inductor_passes": {"vllm": {"compilation-config": {"inductor_passes": {"x": "acme.pass"}}}},
    "logging-config.pylogging_config_file": {"vllm": {"logging-config": {"pylogging_config_file": "/x.json"}}},
    "structured-outputs-config.reasoning_parser_plugin": {
        "vllm": {"structured-outputs-config": {"reasoning_parser_plugin": "/x.py"}}
    },
    "kv-transfer-config.kv_connector_module_path": {
        "vllm": {"kv-transfer-config": TRANSFER | {"kv_connector_module_path": "acme"}}
    },
    "kv-transfer-config.kv_connector_extra_config": {
        "vllm": {
            "kv-transfer-config": TRANSFER
            | {"kv_connector_extra_config": {"spec_name": "S", "spec_module_path": "acme"}}
        }
    },
    "kv-events-config.endpoint": {"vllm": {"kv-events-config": {"endpoint": "tcp://*:5557"}}},
    "kv-events-config.replay_endpoint": {"vllm": {"kv-events-config": {"replay_endpoint": "tcp://*:5558"}}},
    "ec-transfer-config.ec_connector_module_path": {
        "vllm": {"ec-transfer-config": ENCODERS | {"ec_connector_module_path": "acme"}}
    },
    "ec-transfer-config.ec_connector_extra_config": {
        "vllm": {"ec-transfer-config": ENCODERS | {"ec_connector_extra_config": {"x": 1}}}
    },
    "ec-manager-config.encoder_cache_manager_cls": {
        "vllm": {"ec-manager-config": {"encoder_cache_manager_cls": "acme.M"}}
    },
    "ec-manager-config.manager_config": {"vllm": {"ec-manager-config": {"manager_config": {"x": 1}}}},
    "VLLM_REQUEST_BODY_LOG_LEVEL": {"variables": {"VLLM_REQUEST_BODY_LOG_LEVEL": "INFO"}, "image": {"tag": "v0.33.0"}},
}
# Read by the container's loader and by Python, whatever vLLM says of them.
LOADED = ("LD_PRELOAD", "LD_AUDIT", "PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE")
RISKY |= {
    name: {"variables": {name: "/x"}}
    for name in (
        *LOADED,
        *("VLLM_PLUGINS", "VLLM_LOGGING_CONFIG_PATH", "VLLM_NCCL_SO_PATH", "VLLM_CUDART_SO_PATH", "LD_LIBRARY_PATH"),
        *("VLLM_CUDA_COMPATIBILITY_PATH", "VLLM_RUST_FRONTEND_PATH", "VLLM_LORA_RESOLVER_CACHE_DIR", "CUDA_HOME"),
        *("VLLM_LORA_RESOLVER_HF_REPO_LIST", "VLLM_MODEL_REDIRECT_PATH", "VLLM_TEST_FORCE_LOAD_FORMAT"),
        *("VLLM_NCCL_INCLUDE_PATH", "LORA_MODULE_PATH", "REGISTER_MM_MODULE_CUSTOM_PYTREE_CLASSES"),
        "JAX_PROFILER_SERVER_PORT",
    )
}


def test_every_recorded_risk_is_one_of_a_release():
    recorded = [vllm_options(version) for version in vllm_versions()]
    variables = {name for options in recorded for name in options.variables} | {*tpu_variables().variables, *LOADED}
    for risk in vllm_risks().values():
        name, *parts = risk.name.split(".")
        if risk.kind == "variable":
            assert name in variables
        for options in recorded if risk.kind == "option" else ():
            option = options.find(f"--{name}")
            assert option
            assert not parts or f'"{parts[0]}"' in json.dumps(options.values[option[0].dest])
        assert risk.when in ("on", "set")
    assert {*RISKY, "grpc-port"} == set(vllm_risks())  # that port needs another risk, and has a test of its own


@pytest.mark.parametrize("version", vllm_versions())
def test_nothing_of_a_recording_takes_text_that_nobody_has_judged(version):
    assert not unjudged_risks(vllm_options(version)), "a row of vllm/risks.toml, or a name in vllm/judged.toml"


def test_no_text_that_tpu_inference_reads_is_unjudged():
    assert {*variable_texts(tpu_variables().variables)} <= judged_names() | {*vllm_risks()}


def test_what_was_judged_is_there_and_no_risk():
    recorded = [vllm_options(version) for version in vllm_versions()]
    texts = {name for one in recorded for name in (*option_texts(one), *variable_texts(one.variables))}
    assert judged_names() <= texts | {*variable_texts(tpu_variables().variables)}
    assert not judged_names() & set(vllm_risks())


def with_more(**more):
    """The recording of 0.32.0 with further options, variables and values, as of a newer build."""
    written = json.loads((RECORDINGS / "0.32.0.json").read_text(encoding="utf-8"))
    for key, rows in more.items():
        written[key] = written[key] + rows if isinstance(rows, list) else written[key] | rows
    return read_options("0.32.0", written)


@pytest.mark.parametrize(
    ("more", "unjudged"),
    [
        ({"options": [{"dest": "spy", "flags": ["--spy"], "kind": "value", "type": "str"}]}, ["spy"]),
        ({"options": [{"dest": "spy", "flags": ["--spy"], "kind": "append", "type": "_optional_type"}]}, ["spy"]),
        ({"options": [{"dest": "spy", "flags": ["--spy"], "kind": "value", "type": "loads"}]}, ["spy"]),
        ({"options": [{"dest": "spy", "flags": ["--spy"], "kind": "value", "type": "int"}]}, []),
        ({"options": [{"dest": "spy", "flags": ["--spy"], "kind": "switch"}]}, []),
        ({"options": [{"dest": "spy", "flags": ["--spy"], "kind": "value", "choices": ["a", "b"]}]}, []),
        ({"variables": {"VLLM_SPY": "text"}}, ["VLLM_SPY"]),
        ({"variables": {"VLLM_SPY": "int", "VLLM_SPIES": {"choices": ["a"]}}}, []),
        (
            {"values": {"eplb_config": {"title": "X", "type": "object", "properties": {"spy": {"type": "string"}}}}},
            ["eplb-config.spy"],
        ),
        ({"values": {"eplb_config": {"title": "X", "type": "object", "properties": {"spy": {"enum": ["a"]}}}}}, []),
        ({"values": {"eplb_config": {"title": "X", "type": "object"}}}, ["eplb-config"]),
    ],
    ids=json.dumps,
)
def test_a_new_setting_that_takes_any_text_is_one_that_nobody_has_judged(more, unjudged):
    assert [*unjudged_risks(with_more(**more))] == unjudged


def test_a_part_of_each_map_of_a_list_is_looked_at():
    part = {"type": "object", "properties": {"spy": {"type": "string"}}}
    options = with_more(values={"eplb_config": {"title": "X", "type": "array", "items": part}})
    (problem,) = risks_of({"vllm": {"eplb-config": [{"other": 1}, {"spy": "x"}]}}, options)
    assert problem.key == "bezel:vllm.eplb-config.spy"
    assert not risks_of({"vllm": {"eplb-config": [{"other": 1}, 2]}}, options)


def test_what_nobody_has_judged_is_refused_unless_it_is_accepted():
    options = with_more(variables={"VLLM_SPY": "text"}, options=[SPY])
    for changes in ({"variables": {"VLLM_SPY": "x"}}, {"vllm": {"spy": "x"}}):
        (problem,) = risks_of(changes, options)
        assert "was not reviewed" in problem.consequence
        name = problem.key.rpartition(".")[2]
        assert not risks_of({**changes, "access": {"accepted_risks": [name]}}, options)


@pytest.mark.parametrize(
    ("value", "is_risk"),
    [("x", True), ([8, "x"], True), ({"x": 1}, True), (8, False), ([8, 0.5], False)],
    ids=json.dumps,
)
def test_of_what_nobody_has_judged_only_text_counts(value, is_risk):
    assert bool(risks_of({"vllm": {"spy": value}}, with_more(options=[SPY]))) is is_risk


def test_what_the_catalogue_sets_by_itself_needs_nobodys_acceptance():
    options = with_more(options=[SPY])
    settings, _ = read_settings(with_changes({}))
    assert not list(check_risks(settings, merge({"spy": "x"}, {}, options), options))
    assert list(check_risks(settings, merge({"spy": "x"}, chosen_arguments({"spy": "y"}, options), options), options))


@pytest.mark.parametrize(
    "changes",
    [
        {"vllm": {"distributed-executor-backend": "mp"}},
        {"vllm": {"compilation-config": {"backend": "inductor"}}},
        {"vllm": {"worker-cls": "auto", "middleware": []}},
        {"vllm": {"spec-method": "ngram", "spec-tokens": 3}},
        {"vllm": {"kv-transfer-config": {"kv_connector": "x", "kv_connector_module_path": None}}},
        {"variables": {"VLLM_PLUGINS": "", "VLLM_CACHE_ROOT": "/opt/cache"}},
    ],
    ids=json.dumps,
)
def test_what_names_no_code_and_no_file_of_another_place_is_no_risk(changes):
    assert not risks_of(changes, vllm_options("0.32.0"))


def test_a_danger_that_comes_from_a_secret_is_one_too():
    (problem,) = risks_of({"secrets": {"PYTHONPATH": "name-of-a-secret"}}, vllm_options("0.32.0"))
    assert problem.key == "bezel:secrets.PYTHONPATH"
    assert "name-of-a-secret" not in str(problem)


@pytest.mark.parametrize(("name", "changes"), RISKY.items(), ids=RISKY)
def test_a_danger_is_named_and_has_to_be_accepted_by_its_name(name, changes):
    (problem,) = problems_of(changes)
    assert problem.consequence == f"{vllm_risks()[name].consequence}."
    assert f"`bezel:access: {{accepted_risks: [{name}]}}`" in problem.repair
    assert make_plan(with_changes({**changes, "access": {"accepted_risks": [name]}}), project="p", stack="s")


def test_port_for_grpc_is_a_risk_beside_the_program_that_opens_it():
    names = ["VLLM_USE_RUST_FRONTEND", "grpc-port"]
    changes = {"vllm": {"grpc-port": 9000}, "variables": {"VLLM_USE_RUST_FRONTEND": "1"}}
    consequences = {f"{vllm_risks()[name].consequence}." for name in names}
    assert {problem.consequence for problem in problems_of(changes)} == consequences
    assert make_plan(with_changes({**changes, "access": {"accepted_risks": names}}), project="p", stack="s")


@pytest.mark.parametrize("name", RISKY)
def test_a_risk_that_is_not_taken_is_not_accepted_in_advance(name):
    (problem,) = problems_of({"access": {"accepted_risks": [name]}})
    assert problem.key == "bezel:access.accepted_risks.0"
    assert "does not take this risk" in problem.consequence


def test_a_danger_is_on_by_any_number_but_0():
    assert problems_of({"variables": {"VLLM_SERVER_DEV_MODE": "2"}})


def test_a_misspelt_risk_is_named():
    (problem,) = problems_of({"access": {"accepted_risks": ["VLLM_SERVER_DEVMODE"]}})
    assert "did you mean VLLM_SERVER_DEV_MODE?" in problem.repair


@pytest.mark.slow
def test_a_lease_has_to_accept_its_dangers_too():
    risky = {"variables": {"VLLM_SERVER_DEV_MODE": "1"}}
    (problem,) = lease_problems(with_lease_changes(V6E4_MOE, **risky))
    assert problem.key == "bezel:variables.VLLM_SERVER_DEV_MODE"
    assert isinstance(
        lease_plan(with_lease_changes(V6E4_MOE, **risky, access={"accepted_risks": ["VLLM_SERVER_DEV_MODE"]})),
        LeasePlan,
    )
