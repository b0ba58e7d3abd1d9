"""Plan and simulated server say of every attention backend, device and type of the cache what vLLM's classes said.

The fixture is written by `PYTHON tools/vllm/recorders/attention_backends.py FACTS VERDICTS` with the Python of a
vLLM 0.32.0.
"""

from __future__ import annotations

import copy
import dataclasses
import json

import pytest

from bezel.planner.vllm.device.attention_checks import check_attention
from bezel_catalog import model
from bezel_catalog.vllm.attention_backends import attention_backends
from bezel_simulated_vllm.configuration.checkpoint import read_checkpoint
from bezel_simulated_vllm.configuration.failures import StartError
from bezel_simulated_vllm.configuration.options import parse
from bezel_simulated_vllm.configuration.relations import attention
from bezel_simulated_vllm.synthetic_weights import model_files
from tests.support.start_relations.cases import FIXTURES

MODEL = "gemma-4-31b-it"
RECORDED = json.loads((FIXTURES / "attention-backends.json").read_text(encoding="utf-8"))
# They pass vLLM's validation and then import what an image for NVIDIA does not have.
FOREIGN = {"ROCM_AITER_UNIFIED_ATTN", "CPU_ATTN"}
SERVING = {"TRITON_ATTN", "TRITON_ATTN_DIFFKV", "FLASHINFER", "FLEX_ATTENTION"}
PARSED = {"text": parse(["/model", "--language-model-only"]), "images": parse(["/model"])}
INPUTS = {"text": {"language-model-only": True}, "images": {}}


def verdicts(name):
    """Capability, input, type of the cache and vLLM's reasons against the backend."""
    if isinstance(RECORDED[name], str):
        return [(where, inputs, "auto", [RECORDED[name]]) for where in ("8.9", "9.0", "12.0") for inputs in INPUTS]
    return [
        (*place.split(), dtype, row["reasons"])
        for group in RECORDED[name]
        for place in group["places"]
        for row in group["verdicts"]
        for dtype in row["kv_cache_dtypes"]
    ]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    (folder / "config.json").write_bytes(model_files(MODEL)["config.json"])
    return dataclasses.replace(read_checkpoint(folder), weight_bytes=1)


def test_every_backend_was_asked_on_three_devices():
    assert set(RECORDED) == set(attention_backends())
    assert sum(len(verdicts(name)) for name in RECORDED) > 4000


@pytest.mark.slow
@pytest.mark.parametrize("name", RECORDED)
def test_the_plan_agrees_with_the_backends_class(name):
    wrong = []
    for capability, inputs, dtype, reasons in verdicts(name):
        values = {"attention-backend": name, "kv-cache-dtype": dtype} | INPUTS[inputs]
        problems = list(check_attention(values, model(MODEL), capability, {}))
        if bool(problems) != (bool(reasons) or name in FOREIGN):
            wrong.append((capability, inputs, dtype, reasons, problems))
    assert not wrong


@pytest.mark.parametrize("name", RECORDED)
def test_the_simulated_server_gives_the_reasons_of_the_backends_class(name, checkpoint):
    wrong = []
    for capability, inputs, dtype, reasons in verdicts(name):
        options, message = copy.copy(PARSED[inputs]), None
        options.attention_backend, options.kv_cache_dtype = name, dtype
        try:
            attention.check_attention(options, checkpoint, capability, {})
        except StartError as error:
            message = error.message
        if (message is None) != (not reasons and name not in FOREIGN):
            wrong.append((capability, inputs, dtype, reasons, message))
        # What else a type of the cache breaks is recorded only as a whole, and only for backends that serve Gemma 4.
        exact = capability != "9.0" and name in SERVING
        if exact and reasons and not message.endswith(f"Reason: {reasons}"):
            wrong.append((capability, inputs, dtype, reasons, message))
    assert not wrong
