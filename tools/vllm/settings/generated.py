"""Random settings of vLLM generated from the recorded options and variables: most of them at or beyond a bound."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from bezel_catalog import vllm_options

if TYPE_CHECKING:
    from bezel_catalog import Variable, VllmOption, VllmOptions

SEED, COUNT = 20, 300
# Tried first: settings that once passed the plan wrongly, or were refused without a reason.
KNOWN: tuple[dict[str, Any], ...] = (
    {"vllm": {"optimization-level": 7}},
    {"vllm": {"optimization-level": 3}},
    {"vllm": {"enable-lora": True, "max-loras": 0}},
    {"vllm": {"stream-interval": 0}},
    {"vllm": {"cpu-offload-gb": -1}},
    {"vllm": {"override-generation-config": [1]}},
    {"vllm": {"override-generation-config": {"temperature": 0.2}}},
    {"vllm": {"compilation-config": {"no_such_key": 1}}},
    {"vllm": {"compilation-config": {"mode": 3, "cudagraph_mode": "PIECEWISE"}}},
    {"vllm": {"load-format": "dummy"}},
    {"vllm": {"host": "0.0.0.0"}},
    {"variables": {"VLLM_DISABLE_FLASHINFER": "1"}},
    {"variables": {"VLLM_NO_SUCH": "1"}},
    {"variables": {"VLLM_PORT": "abc"}},
    {"variables": {"VLLM_PORT": "9000"}},
    {"vllm": {"config-format": "x"}},
    {"vllm": {"config-format": "hf"}},
    {"vllm": {"attention-backend": "auto"}},
    {"vllm": {"attention-backend": "flash_attn"}},
    {"vllm": {"attention-backend": "CUSTOM"}},
    {"vllm": {"attention-config": {"backend_per_kind": True}}},
    {"vllm": {"attention-config": {"backend_per_kind": {"x": 1}}}},
    {"vllm": {"moe-backend": "TRITON"}},
    {"vllm": {"load-format": "SAFETENSORS"}},
    {"vllm": {"compilation-config": {"static_all_moe_layers": []}}},
    {"vllm": {"compilation-config": {"mode": "VLLM_COMPILE"}}},
    {"vllm": {"prefill-context-parallel-size": 2}},
    {"vllm": {"decode-context-parallel-size": 2}},
    {"vllm": {"disable-sliding-window": True}},
    {"vllm": {"enable-expert-parallel": True}},
    {"vllm": {"enable-eplb": True}},
    {"vllm": {"enable-eplb": False, "enable-fault-tolerance": False}},
    {"vllm": {"enable-dbo": True}},
    {"vllm": {"ubatch-size": 2}},
    {"vllm": {"shutdown-timeout": -1}},
    {"vllm": {"sse-keep-alive-interval": -1}},
    {"vllm": {"kv-transfer-config": {"kv_port": 1}}},
    {"vllm": {"speculative-config": {"draft_tensor_parallel_size": 1}}},
    {"vllm": {"speculative-config": {}}},
    {"vllm": {"custom-histogram-buckets": []}},
    {"vllm": {"custom-histogram-buckets": {"x": 1}}},
    {"vllm": {"enable-chunked-prefill": False}},
    {"vllm": {"tool-call-parser": "no-such-parser"}},
    {"vllm": {"reasoning-parser": "mistral"}},
    {"vllm": {"quantization": "torchao"}},
    {"vllm": {"prefix-match-unit": ""}},
    {"vllm": {"default-mm-loras": []}},
    {"vllm": {"mm-processor-cache-gb": -1}},
    {"variables": {"NO_COLOR": "x"}},
    {"variables": {"VLLM_WORKER_MULTIPROC_METHOD": "-1"}},
)
# Options that vLLM looks up on a hub or a disk, with retries: slow, and no test of a value.
_PLACES = ("tokenizer", "hf-config-path", "spec-model", "config", "download-dir", "revision", "hf-token")
_NUMBERS = (-1, 0, 1, 2, 7, 1.5, "x", "4K", True)


def generate(seed: int = SEED) -> list[dict[str, Any]]:
    """The settings of a seed: known ones, then single options, pairs of options, and variables."""
    chance, options = random.Random(seed), vllm_options("0.32.0")  # noqa: S311 - no secret is made
    tried = [option for option in options.options if option.flags and option.name not in (*_PLACES, "help")]
    chance.shuffle(tried)
    singles, variables = list(tried), sorted(options.variables)
    settings = [{"vllm": {}, "variables": {}, **known_setting} for known_setting in KNOWN]
    while len(settings) < COUNT:
        kind = chance.random()
        chosen: dict[str, Any] = {}
        chosen_variables: dict[str, str] = {}
        if kind < 0.15:
            name = chance.choice(variables)
            chosen_variables[name] = _word(options.variables[name], chance)
        else:
            if not singles:
                singles = list(tried)
            picked = [singles.pop()] + ([chance.choice(tried)] if kind < 0.3 else [])
            chosen = {option.name: _value(option, options, chance) for option in picked}
        settings.append({"vllm": chosen, "variables": chosen_variables})
    return settings


def _value(option: VllmOption, options: VllmOptions, chance: random.Random) -> Any:
    schema = options.values.get(option.dest, {})
    choices = option.choices or options.registered.get(option.name, ())
    if option.kind in ("switch", "switch-pair"):
        return chance.choice((True, True, False, "maybe"))
    if choices:
        texts = [word for word in choices if word != "None"]
        return chance.choice((*chance.sample(texts, min(len(texts), 8)), texts[0].swapcase(), "nonsense"))
    if option.type == "json":
        return _structure(schema, chance)
    if option.type in ("int", "float", "human-int", "human-int-or-auto"):
        return chance.choice((*_NUMBERS, *_bounds(schema)))
    if option.kind == "values":
        return chance.choice((["a"], ["1", "2"], [1, -1], "x"))
    return chance.choice(("x", "1", "-1", "auto", ""))


def _bounds(schema: Any) -> tuple[Any, ...]:
    bounds = [schema[key] for key in ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum") if key in schema]
    for branch in schema.get("anyOf", ()):
        bounds += _bounds(branch)
    return tuple(bounds) + tuple(bound + 1 for bound in bounds)


def _structure(schema: Any, chance: random.Random) -> Any:
    branch: dict[str, Any] = next(
        (option for option in [schema, *schema.get("anyOf", ())] if option.get("properties")), {}
    )
    settings: list[Any] = [{}, [], {"no_such_key": 1}, "x", 3]
    for name, part in sorted(branch.get("properties", {}).items()):
        settings += [{name: value} for value in (True, "x", -1, 1, [], {}, *part.get("enum", ()))]
    return chance.choice(settings)


def _word(variable: Variable, chance: random.Random) -> str:
    return chance.choice((*variable.on, *variable.off, *variable.choices, "", "1", "0", "yes", "-1", "1.5", "x", "{}"))
