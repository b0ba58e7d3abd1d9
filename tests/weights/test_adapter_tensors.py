"""Tensors of an adapter against its model: verdicts of vLLM 0.32.0 on a tiny Gemma 4, and what it loads in silence."""

import json
import struct

import pytest

from bezel.weights.adapter_tensors import LONGEST_HEADER, BaseModel, base_warning, header_length, tensor_problems

BASE = BaseModel("google/gemma-4-12B-it-qat-w4a16-ct", hidden_size=64, layers=2)
CONFIG = {"r": 8, "lora_alpha": 16, "target_modules": ["q_proj"]}
LAYER = "base_model.model.model.layers.0."


def header_of(**shapes: list[int]) -> bytes:
    return json.dumps({name: {"dtype": "F32", "shape": shape} for name, shape in shapes.items()}).encode()


def pair(module: str, *, rank: int = 8, read: int = 64, written: int = 64, layer: str = LAYER) -> bytes:
    names = [f"{layer}{module}.lora_{side}.weight" for side in "AB"]
    return header_of(**{names[0]: [rank, read], names[1]: [written, rank]})


@pytest.mark.parametrize(
    "header",
    [
        pair("self_attn.q_proj"),
        pair("self_attn.q_proj", layer="layers.1."),
        pair("mlp.down_proj", read=128),
        pair("self_attn.o_proj", read=256),
        pair("fc1", read=1152, layer="base_model.model.vision_tower.encoder.layers.26."),
        pair("lm_head", written=2048, layer="base_model.model."),
        pair("mlp.up_proj", written=128),
    ],
)
def test_an_adapter_of_the_model_has_no_problem(header: bytes) -> None:
    assert tensor_problems(header, CONFIG, BASE) == []


def test_ranks_of_a_pattern_are_not_compared() -> None:
    assert tensor_problems(pair("self_attn.q_proj", rank=16), CONFIG | {"rank_pattern": {"q_proj": 16}}, BASE) == []


@pytest.mark.parametrize(
    ("header", "says"),
    [
        (b"", "not a whole file of safetensors"),
        (b"[1]", "not a whole file of safetensors"),
        (b'{"a": {"dtype": "F32"}}', "not a whole file of safetensors"),
        (b"{}", "no tensors"),
        (b'{"__metadata__": {"format": "pt"}}', "no tensors"),
        (header_of(**{f"{LAYER}self_attn.q_proj.lora_magnitude_vector": [64]}), "does not support its tensor"),
        (header_of(**{f"{LAYER}self_attn.q_proj.weight": [64, 64]}), "does not support its tensor"),
        (pair("self_attn.q_proj", layer="base_model.model.model.layers.9."), "of layer 9, and the model has 2"),
        (pair("self_attn.q_proj", read=128), "its q_proj is 128 wide, and the model 64"),
        (pair("mlp.down_proj", written=128), "its down_proj is 128 wide, and the model 64"),
        (pair("self_attn.q_proj", rank=16), "have rank 16, and r of its configuration is 8"),
    ],
)
def test_an_adapter_of_another_model_is_a_problem(header: bytes, says: str) -> None:
    (problem,) = tensor_problems(header, CONFIG, BASE)
    assert says in problem


@pytest.mark.parametrize(
    ("named", "warned"),
    [
        ("google/gemma-4-12b-it", False),
        ("google/gemma-4-12B-it-qat-w4a16-ct", False),
        ("/home/me/gemma-4-12b-it/", False),
        ("google/gemma-4-12b", False),
        ("", False),
        (None, False),
        ("meta-llama/Llama-3.1-8B", True),
        ("google/gemma-4-31b-it", True),
    ],
)
def test_another_base_is_a_warning(named: object, warned: bool) -> None:
    warning = base_warning(CONFIG | {"base_model_name_or_path": named}, BASE)
    assert bool(warning) is warned
    assert not warned or str(named) in warning


@pytest.mark.parametrize(
    ("start", "size", "length"),
    [
        (struct.pack("<Q", 100), 200, 100),
        (struct.pack("<Q", 100), 108, 100),
        (struct.pack("<Q", 100), 107, 0),
        (struct.pack("<Q", LONGEST_HEADER + 1), 10**10, 0),
        (b"\1", 1, 0),
    ],
)
def test_a_header_that_does_not_fit_its_file_has_no_length(start: bytes, size: int, length: int) -> None:
    assert header_length(start, size) == length
