"""Wrong models: what each holds or does, and the consequence and the repair that its refusal names.

One table for every command that takes a model: the files of a folder or of a hub's repository, and what a hub does.
"""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING

from tests.support.model_sources.tiny import as_json, llama, sharded_llama, with_header
from tests.support.weights.fake_hub import TOKEN

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.weights.fake_hub import FakeHub

MODEL = "acme/Tiny-Llama"
Files = dict[str, bytes]


def _without(*names: str) -> Callable[[], Files]:
    return lambda: {name: content for name, content in llama().items() if name not in names}


def _with(**contents: bytes) -> Callable[[], Files]:
    return lambda: {**llama(), **{name.replace("__", "."): content for name, content in contents.items()}}


def _index(**weight_map: str) -> Files:
    files = sharded_llama()
    index = json.loads(files["model.safetensors.index.json"])
    index["weight_map"] |= weight_map
    return {**files, "model.safetensors.index.json": as_json(index)}


def _only(*names: str) -> Callable[[], Files]:
    return lambda: {**_without("model.safetensors")(), **dict.fromkeys(names, b"GGUF")}


def _row(begin: int, end: int) -> dict[str, object]:
    return {"dtype": "BF16", "shape": [(end - begin) // 2], "data_offsets": [begin, end]}


WRONG_FILES: dict[str, tuple[Callable[[], Files], str, str]] = {
    "empty": (dict, "has no files", "correct the name"),
    "no config": (_without("config.json"), "has no config.json", "beside the weights"),
    "invalid JSON": (_with(config__json=b'{"a": '), "it is not valid JSON", "correct the file"),
    "a list as JSON": (_with(config__json=b"[]"), "it is not a JSON object", "correct the file"),
    "a number of 200 digits": (
        _with(config__json=b'{"a": ' + b"9" * 200 + b"}"),
        "a whole number of 200 digits",
        "correct the file",
    ),
    "deep JSON": (_with(config__json=b'{"a":' * 2000 + b"1" + b"}" * 2000), "not valid JSON", "correct the file"),
    "a GGUF": (_only("model-Q4_K_M.gguf"), "has its weights in GGUF", "in safetensors"),
    "only .bin": (_only("pytorch_model.bin"), "can run code when it is loaded", "convert it"),
    "no weights": (_only(), "has no weights", "complete model"),
    "a LoRA": (
        lambda: {"adapter_config.json": b"{}", "adapter_model.safetensors": llama()["model.safetensors"]},
        "is a LoRA adapter and no model",
        "bezel:adapters",
    ),
    "diffusers": (
        lambda: {"model_index.json": b"{}", "unet/model.safetensors": llama()["model.safetensors"]},
        "diffusers",
        "transformers library",
    ),
    "a part of diffusers": (
        _with(config__json=as_json({"_class_name": "UNet2DConditionModel", "_diffusers_version": "0.30"})),
        "is of the diffusers library",
        "transformers library",
    ),
    "no architecture": (_with(config__json=b'{"model_type": "llama"}'), "names no architecture", "add the class"),
    "unknown architecture": (
        lambda: llama(architectures=["MineForCausalLM"]),
        "MineForCausalLM is not in the registry of vLLM",
        "that vLLM has",
    ),
    "code of its own in place of a class": (
        lambda: llama(architectures=["MineForCausalLM"], auto_map={"AutoConfig": "mine.MineConfig"}),
        "not run (trust_remote_code)",
        "that vLLM has",
    ),
    "code of its own for its configuration": (
        lambda: llama(model_type="mine", auto_map={"AutoConfig": "mine.MineConfig"}),
        "with trust_remote_code only",
        "without auto_map",
    ),
    "missing shard": (
        lambda: {n: c for n, c in sharded_llama().items() if "00002-of" not in n},
        "1 weight files are missing: model-00002-of-00002.safetensors",
        "complete the files",
    ),
    "index of a file that is not there": (lambda: _index(x="other.safetensors"), "other.safetensors", "complete"),
    "index leading outside": (lambda: _index(x="../../etc/passwd"), "outside of the model's folder", "another source"),
    "index of a tensor that is not there": (
        lambda: _index(x="model-00001-of-00002.safetensors"),
        "it names 1 tensors that no file has",
        "copy the files",
    ),
    "index without files": (
        lambda: {**sharded_llama(), "model.safetensors.index.json": b"{}"},
        "it names no file for a tensor",
        "correct the index",
    ),
    "header of 100 GB": (
        _with(model__safetensors=struct.pack("<Q", 100 * 10**9) + bytes(64)),
        "claims a header of 100000000000 bytes",
        "copy the file again",
    ),
    "overlapping offsets": (
        _with(model__safetensors=with_header({"a": _row(0, 8), "b": _row(4, 12)}, bytes(12))),
        "b begins at 4 and overlaps",
        "copy the file again",
    ),
    "a long config": (
        _with(config__json=b" " * (33 << 20)),
        "such a file has 33554432 at most",
        "another source",
    ),
    "long lists in its config": (
        lambda: llama(layer_types=["full_attention" * 20] * 4000),
        "too many for a row that people read",
        "shorten its lists",
    ),
    "empty weights": (_with(model__safetensors=b""), "model.safetensors is empty", "complete the files"),
}


def _gate(hub: FakeHub) -> None:
    hub.gated.add(MODEL)


def _forbidden(hub: FakeHub) -> None:
    hub.forbidden.add(MODEL)


def _refused_token(hub: FakeHub) -> None:
    hub.gated.add(MODEL)
    hub.refused_tokens.add("hf_refused")


WRONG_HUBS: dict[str, tuple[str, str, Callable[[FakeHub], None], str, str]] = {
    "gated without token": (MODEL, "", _gate, "is gated", f"/{MODEL}, and set HF_TOKEN"),
    "token without access": (MODEL, TOKEN, _forbidden, "account of this token is not among them", "accept the terms"),
    "token refused": (MODEL, "hf_refused", _refused_token, "refused with this token", "settings/tokens"),
    "no such model": ("acme/nothing", "", _gate, "does not exist, or is private", "correct the name"),
    "no such revision": (f"{MODEL}@v9", "", lambda _: None, "RevisionNotFound", "the revision"),
    "name with periods": ("acme/..", "", lambda _: None, "neither a folder that exists nor", "OWNER/NAME"),
    "revision with periods": (f"{MODEL}@../x", "", lambda _: None, "neither a folder", "OWNER/NAME"),
    "redirects": (MODEL, "", lambda hub: hub.loops.add(MODEL), "redirects more than 5 times", "check the address"),
    "endless list": (MODEL, "", lambda hub: hub.endless.add(MODEL), "longer than", "check the address"),
    "in the catalogue": ("google/Gemma-4-12B-it", "", lambda _: None, "the catalogue has it", "gemma-4-12b-it"),
    "folder that is not there": ("./nothing", "", lambda _: None, "cannot be read", "make it readable"),
    "bucket without a name": ("gs://", "", lambda _: None, "not the address of a folder", "gs://BUCKET/FOLDER"),
}
