"""Lay out the KV cache of tiny models with a real vLLM, and record what it says.

    PYTHON tools/vllm/architectures/record.py OUT [NAME ...]

PYTHON is the interpreter of any vLLM, one for CPUs as well. For each model of models.json beside this file a folder
with its config.json is made, the engine is configured as vLLM's `LLM` does it, the model is built, and its layers are
asked for their cache. Blocks, groups and tokens are those of vLLM's own functions. Weights are not needed: vLLM fills
them in; for the models that are marked so, the tensors that transformers saves are listed. OUT is the JSON file of
results; with names, only those models are laid out again. Imports nothing of this project.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import importlib.util
import io
import json
import logging
import os
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

MODELS = Path(__file__).with_name("models.json")
CACHE_BYTES = 64 << 20
# A class of configuration as a repository brings it for a type that transformers does not have: fields, no defaults.
REMOTE_MODULE = "configuration_any"
REMOTE_CODE = """from transformers import PretrainedConfig


class AnyConfig(PretrainedConfig):
    model_type = {model_type!r}
"""
ATTRIBUTES = ("num_kv_heads", "head_size", "head_size_v", "sliding_window", "attention_chunk_size", "mamba_type")


def make_config(row: dict[str, Any]) -> dict[str, Any]:
    """The config.json of a model: of a transformers class where `config` names one, else the fields as they are."""
    transformers: Any = importlib.import_module("transformers")
    if "config" not in row:
        remote = {"auto_map": {"AutoConfig": f"{REMOTE_MODULE}.AnyConfig"}} if row.get("remote") else {}
        return {"architectures": [row["class"]], **row["fields"], **remote}
    made = getattr(transformers, row["config"])(**row["fields"])
    made.dtype = row.get("dtype", "bfloat16")
    with tempfile.TemporaryDirectory() as folder:
        made.save_pretrained(folder)
        content: dict[str, Any] = json.loads((Path(folder) / "config.json").read_text(encoding="utf-8"))
    return {**content, "architectures": [row["class"]]}


def saved_tensors(row: dict[str, Any]) -> dict[str, Any]:
    """Type and shape of each tensor of a model with random weights, as transformers saves it."""
    transformers: Any = importlib.import_module("transformers")
    torch: Any = importlib.import_module("torch")
    made = getattr(transformers, row["config"])(**row["fields"])
    model = getattr(transformers, row["class"])(made).to(torch.bfloat16)
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        content = (Path(folder) / "model.safetensors").read_bytes()
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    return {name: [each["dtype"], each["shape"]] for name, each in header.items() if name != "__metadata__"}


def describe(group: Any) -> dict[str, Any]:
    """The facts of one group of layers."""
    spec = group.kv_cache_spec
    inner = list(getattr(spec, "kv_cache_specs", {}).values()) or [spec]
    row = {"spec": type(spec).__name__, "layers": len(group.layer_names), "block": inner[0].block_size}
    row["pages"] = sorted({each.page_size_bytes for each in inner})
    if len(inner) > 1:
        row["inner"] = sorted({type(each).__name__ for each in inner})
    for name in ATTRIBUTES:
        values = sorted({str(value) for each in inner if (value := getattr(each, name, None)) is not None})
        if values:
            row[name] = values[0] if len(values) == 1 else values
    shapes = getattr(inner[0], "shapes", None)
    if shapes:
        row["shapes"] = [list(shape) for shape in shapes]
        row["dtypes"] = [str(kind).removeprefix("torch.") for kind in inner[0].dtypes]
    return row


def lay_out(folder: Path, arguments: dict[str, Any], device: str) -> dict[str, Any]:
    """What vLLM lays out for the model of a folder.

    Args:
        folder: the folder with config.json.
        arguments: fields of EngineArgs beside the usual ones.
        device: "cpu", or "meta" for sizes that this machine has no memory for.
    """
    engine: Any = importlib.import_module("vllm.engine.arg_utils")
    config_module: Any = importlib.import_module("vllm.config")
    utilities: Any = importlib.import_module("vllm.v1.core.kv_cache_utils")
    # The planning of the cache is a module of its own since 0.33.0.
    split = importlib.util.find_spec("vllm.v1.core.kv_cache_planning")
    planning: Any = importlib.import_module(split.name) if split else utilities
    layouts: Any = importlib.import_module("vllm.v1.attention.backends.utils")
    state: Any = importlib.import_module("vllm.distributed.parallel_state")
    loader: Any = importlib.import_module("vllm.model_executor.model_loader.utils")
    base: Any = importlib.import_module("vllm.model_executor.layers.attention_layer_base")
    specs: Any = importlib.import_module("vllm.v1.kv_cache_interface")
    worker: Any = importlib.import_module("vllm.v1.worker.utils")
    platforms: Any = importlib.import_module("vllm.platforms")
    torch: Any = importlib.import_module("torch")
    usual = {
        "model": str(folder),
        "enforce_eager": True,
        "dtype": "bfloat16",
        "max_num_seqs": 4,
        "kv_cache_memory_bytes": CACHE_BYTES,
        "generation_config": "vllm",
        "load_format": "dummy",
        "skip_tokenizer_init": True,
        "language_model_only": True,
    }
    fields = {key: value for key, value in {**usual, **arguments}.items() if value is not None}
    context: Any = importlib.import_module("vllm.usage.usage_lib").UsageContext.LLM_CLASS
    config = engine.EngineArgs(**fields).create_engine_config(usage_context=context)
    with config_module.set_current_vllm_config(config), contextlib.ExitStack() as stack:
        port = 29500 + os.getpid() % 2000
        if not torch.distributed.is_initialized():
            state.init_distributed_environment(1, 0, f"tcp://127.0.0.1:{port}", 0, "gloo")
        state.initialize_model_parallel(1, 1)
        stack.callback(state.destroy_model_parallel)
        stack.enter_context(torch.device(device))
        before = torch.get_default_dtype()
        torch.set_default_dtype(config.model_config.dtype)
        stack.callback(torch.set_default_dtype, before)
        model = loader.initialize_model(vllm_config=config, model_config=config.model_config)
        platforms.current_platform.update_block_size_for_backend(config)
        cache_specs, backends = {}, {}
        for name, layer in config_module.get_layers_from_vllm_config(config, base.AttentionLayerBase).items():
            if getattr(layer, "kv_sharing_target_layer_name", None):
                continue
            spec = layer.get_kv_cache_spec(config)
            if spec is None:
                continue
            if isinstance(spec, specs.AttentionSpec):
                spec = worker.customize_attention_spec(layer.get_attn_backend(), spec)
            cache_specs[name] = spec
            backends[name] = layer.get_attn_backend()
        names = [kind.name for kind in layouts.get_supported_kv_cache_layouts(list(backends.values()))]
        if cache_specs:
            layouts.resolve_kv_cache_layout(config, [names], cache_specs.values())
        plan = [config, [cache_specs], [fields["kv_cache_memory_bytes"]]]
        if hasattr(planning, "get_global_kv_cache_groups"):  # since 0.33.0
            plan.append(planning.get_global_kv_cache_groups(config, [cache_specs]))
        cache = planning.get_kv_cache_configs(*plan)[0]
    row = {
        "class": config.model_config.architecture,
        "memory": fields["kv_cache_memory_bytes"],
        "max_model_len": config.model_config.max_model_len,
        "batched": config.scheduler_config.max_num_batched_tokens,
        "in_flight": config.max_in_flight_tokens,
        "encoder_tokens": config.scheduler_config.max_num_encoder_input_tokens,
        "block": config.cache_config.block_size,
        "prefix_caching": bool(config.cache_config.enable_prefix_caching),
        "state_mode": config.cache_config.mamba_cache_mode,
        "hybrid_off": bool(config.scheduler_config.disable_hybrid_kv_cache_manager),
        "layout": config.cache_config.kv_cache_layout,
        "task": config.model_config.runner_type,
        "groups": [describe(group) for group in cache.kv_cache_groups],
        "blocks": cache.num_blocks,
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "parameter_bytes": sum(parameter.numel() * parameter.element_size() for parameter in model.parameters()),
    }
    if cache.kv_cache_groups:
        row["tokens"], row["concurrency"] = utilities.get_kv_cache_capacity(config, cache)
    return row


def attempt(name: str, row: dict[str, Any]) -> dict[str, Any]:
    """The record of one model: its layout, or the error that vLLM ends with."""
    log = io.StringIO()
    handler = logging.StreamHandler(log)
    logging.getLogger("vllm").addHandler(handler)
    started = time.monotonic()
    result: dict[str, Any] = {"arguments": row.get("arguments", {})}
    try:
        result["config"] = make_config(row)
        if row.get("tensors"):
            result["tensors"] = saved_tensors(row)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder)
            (path / "config.json").write_text(json.dumps(result["config"]), encoding="utf-8")
            for file, content in row.get("files", {}).items():
                (path / file).write_text(json.dumps(content), encoding="utf-8")
            arguments = row.get("arguments", {})
            if row.get("remote"):
                code = REMOTE_CODE.format(model_type=row["fields"]["model_type"])
                (path / f"{REMOTE_MODULE}.py").write_text(code, encoding="utf-8")
                arguments = {"trust_remote_code": True, **arguments}
            result.update(lay_out(path, arguments, row.get("device", "cpu")))
    except BaseException as error:  # noqa: BLE001 - whatever ends the start is the record
        result["error"] = f"{type(error).__name__}: {error}"[:600]
    finally:
        logging.getLogger("vllm").removeHandler(handler)
    warnings = [
        line for line in log.getvalue().splitlines() if re.search(r"padding layers|disabled for this hybrid", line)
    ]
    if warnings:
        result["log"] = [re.sub(r"^.*?\] ", "", line) for line in warnings]
    print(name, round(time.monotonic() - started, 1), result.get("error") or result.get("tokens"), flush=True)
    with contextlib.suppress(Exception):
        compilation: Any = importlib.import_module("vllm.config")
        compilation.compilation.CompilationConfig.static_forward_context = {}
    gc.collect()
    return result


def shorten(config: dict[str, Any]) -> dict[str, Any]:
    """A configuration without what only its encoders of images and sound read, and without labels."""
    short = {}
    for key, value in config.items():
        if key.startswith(("id2label", "label2id")):
            continue
        if isinstance(value, dict) and key.startswith(
            ("vision", "audio", "encoder_config", "talker", "code2wav", "vq")
        ):
            short[key] = {"model_type": value.get("model_type", "")}
        else:
            short[key] = shorten(value) if isinstance(value, dict) else value
    return short


def write(path: Path, content: dict[str, Any]) -> None:
    """Write the results, a line for each model."""
    head = json.dumps({key: value for key, value in content.items() if key != "models"})
    rows = (f" {json.dumps(name)}: {json.dumps(row)}" for name, row in sorted(content["models"].items()))
    path.write_text(f'{head[:-1]}, "models": {{\n' + ",\n".join(rows) + "\n}}\n", encoding="utf-8")


def main() -> None:
    """Lay out the models and write the results."""
    os.environ.update(
        {
            "VLLM_NO_USAGE_STATS": "1",
            "HF_HUB_OFFLINE": "1",
            "TRANSFORMERS_OFFLINE": "1",
            "OMP_NUM_THREADS": "1",
            "VLLM_CPU_OMP_THREADS_BIND": "nobind",
            "TORCHDYNAMO_DISABLE": "1",
            "VLLM_LOGGING_LEVEL": "WARNING",
        }
    )
    os.environ.pop("VLLM_CPU_KVCACHE_SPACE", None)
    out, names = Path(sys.argv[1]), sys.argv[2:]
    registry: Any = importlib.import_module("vllm.model_executor.models.registry")
    registry._run_in_subprocess = lambda function: function()  # noqa: SLF001 - a process for each model is slow
    vllm = importlib.import_module("vllm")
    rows = json.loads(MODELS.read_text(encoding="utf-8"))
    content = json.loads(out.read_text(encoding="utf-8")) if out.exists() else {"models": {}}
    content["vllm"] = vllm.__version__
    content["transformers"] = importlib.import_module("transformers").__version__
    content["cache_bytes"] = CACHE_BYTES
    for name in names or rows:
        content["models"][name] = attempt(name, rows[name])
        write(out, content)


if __name__ == "__main__":
    main()
