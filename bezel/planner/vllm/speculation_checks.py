"""Rules of speculative decoding: settings that are missing, given twice, unknown or incompatible.

Owns the rules over `spec-method`, `spec-model`, `spec-tokens` and `speculative-config`, each observed on the real
engine configuration. Leaves the draft model's place (bucket or hub) to bezel.planner.vllm.argument_conflicts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bezel.catalog import closest
from bezel.errors import NOT_SET, Problem
from bezel.planner.base.option_values import as_int
from bezel.planner.base.problems import of_option, setting
from bezel.planner.vllm.arguments import MOUNT_PATH

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bezel.catalog import Model, VllmOptions

# Methods that draft from the text, without a second model.
DRAFTLESS = ("ngram", "ngram_gpu", "suffix")
# Methods that vLLM cannot schedule asynchronously: it switches that off by itself, unless it is set explicitly.
NOT_ASYNCHRONOUS = ("ngram", "suffix")
# Two names of the same value; vLLM refuses both together.
_TWINS = {"spec-method": "method", "spec-model": "model", "spec-tokens": "num_speculative_tokens"}
# Fields of SpeculativeConfig that a user may set (vLLM 0.32.0); it refuses any other key.
_KEYS = frozenset(
    {
        "attention_backend",
        "code_revision",
        "disable_eagle_block_drop",
        "disable_padded_drafter_batch",
        "draft_load_config",
        "draft_sample_method",
        "draft_tensor_parallel_size",
        "dspark_draft_topk",
        "enable_adaptive_verification",
        "enforce_eager",
        "index_share_for_mtp_iteration",
        "kv_cache_dtype",
        "max_model_len",
        "method",
        "model",
        "moe_backend",
        "num_speculative_tokens",
        "num_speculative_tokens_per_batch_size",
        "parallel_drafting",
        "prompt_lookup_max",
        "prompt_lookup_min",
        "quantization",
        "rejection_sample_method",
        "revision",
        "suffix_decoding_max_cached_requests",
        "suffix_decoding_max_spec_factor",
        "suffix_decoding_max_tree_depth",
        "suffix_decoding_min_token_prob",
        "synthetic_acceptance_length",
        "synthetic_acceptance_rates",
        "tensor_parallel_size",
        "use_heterogeneous_vocab",
        "use_local_argmax_reduction",
    }
)


def drafting(values: Mapping[str, Any]) -> tuple[object, object, object]:
    """Method, draft model and number of draft tokens, from either place; None for those that are not set."""
    config = _config(values)
    return (
        config.get("method", values.get("spec-method")),
        config.get("model", values.get("spec-model")),
        config.get("num_speculative_tokens", values.get("spec-tokens")),
    )


def check_speculation(
    values: Mapping[str, Any], model: Model, options: VllmOptions, copies_at: str = MOUNT_PATH
) -> list[Problem]:
    """Every rule of speculative decoding.

    Args:
        values: of all arguments, by option name.
        model: the checkpoint, for the name of its assistant.
        options: the recorded list of the pinned release, for the methods.
        copies_at: prefix of the bucket's folders for vLLM, "" where it takes hub ids.
    """
    config = _config(values)
    problems = [
        of_option(
            flag,
            values[flag],
            f"speculative-config says {twin} too; vLLM refuses to be told twice (mutually exclusive).",
            f"keep one of them, e.g. remove {flag}.",
        )
        for flag, twin in _TWINS.items()
        if flag in values and twin in config
    ]
    problems += [_unknown_key(str(key), value) for key, value in config.items() if key not in _KEYS]
    method, draft, tokens = drafting(values)
    if method is None and draft is None and tokens is None:
        return problems + (_nothing(values["speculative-config"]) if "speculative-config" in values else [])
    if values.get("async-scheduling") is True and method in NOT_ASYNCHRONOUS:
        problems.append(
            of_option(
                "async-scheduling",
                True,
                f"vLLM cannot draft with {method} and schedule asynchronously: it exits with a ValueError.",
                "remove it: vLLM schedules asynchronously by itself where it can.",
            )
        )
    where = "speculative-config" if config else "spec-method"
    problems += _method(where, method, options)
    problems += _draft(where, method, draft, model, copies_at)
    problems += _draft_tokens(where, method, draft, tokens)
    return problems


def _config(values: Mapping[str, Any]) -> dict[str, Any]:
    config = values.get("speculative-config")
    return config if isinstance(config, dict) else {}


def _nothing(config: object) -> list[Problem]:
    """Refuse a map that enables speculation without a method, a model or draft tokens."""
    if not isinstance(config, dict):
        return []
    return [
        of_option(
            "speculative-config",
            config,
            "it names no method, no model and no number of draft tokens; vLLM exits while it starts.",
            "add method, model and num_speculative_tokens, or remove it.",
        )
    ]


def _unknown_key(key: str, value: object) -> Problem:
    near = closest(key, _KEYS)
    return of_option(
        f"speculative-config.{key}",
        value,
        "the engine knows no such key and exits while it starts.",
        f"did you mean {near}?" if near else "remove it.",
    )


def _method(where: str, method: object, options: VllmOptions) -> list[Problem]:
    """Check the method inside speculative-config; the parser itself checks that of spec-method."""
    found = options.find("--spec-method")
    known = found[0].choices if found else ()
    if where == "spec-method" or method is None or not known or str(method) in known:
        return []
    near = closest(str(method), known) or "mtp"
    return [
        of_option(
            f"{where}.method", method, "the engine knows no such method and exits while it starts.", f"write {near}."
        )
    ]


def _draft(where: str, method: object, draft: object, model: Model, copies_at: str) -> list[Problem]:
    if draft is not None and method not in DRAFTLESS and not model.assistant:
        return [
            of_option(
                where,
                draft,
                f"the catalogue knows no assistant of {model.id}: the memory of a draft model cannot be planned.",
                "use spec-method: ngram, or remove it.",
            )
        ]
    if draft is not None or method is None or method in DRAFTLESS:
        return []
    if not model.assistant:
        repair = f"no assistant of {model.id} is known: use spec-method: ngram, or remove it."
    elif copies_at:
        copy = f"{copies_at}/{model.assistant.rsplit('/', 1)[-1]}"
        repair = f"copy {model.assistant} into the bucket and add spec-model: {copy}."
    else:
        repair = f"add spec-model: {model.assistant}."
    return [
        of_option(
            where,
            f"method {method} without a model",
            f"vLLM does not start: NotImplementedError, Unsupported speculative method: '{method}'.",
            repair,
        )
    ]


def _draft_tokens(where: str, method: object, draft: object, tokens: object) -> list[Problem]:
    number = as_int(tokens)
    if method is None and draft is None:
        return [
            of_option(
                "spec-tokens",
                tokens,
                "no method and no model say how to draft them.",
                "add spec-method and spec-model.",
            )
        ]
    if tokens is None:
        return [
            Problem(
                setting("vllm.spec-tokens"),
                NOT_SET,
                f"{where} asks for speculative decoding without a number of draft tokens; vLLM exits while it starts.",
                "add spec-tokens: 3." if where == "spec-method" else "add num_speculative_tokens: 3 to it.",
            )
        ]
    if number is None or number < 1:
        return [of_option("spec-tokens", tokens, "vLLM takes 1 or more.", "write e.g. 3.")]
    return []
