"""Rules of speculative decoding: settings that are missing, given twice, unknown or incompatible.

Owns the rules over `spec-method`, `spec-model`, `spec-tokens` and `speculative-config`, each observed on the real
engine configuration. Leaves the draft model's place (bucket or hub) to bezel.planner.vllm.argument_conflicts, and
the values of other keys of `speculative-config` to the recorded schema (bezel.planner.vllm.option_checks).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bezel.planner.base.problems import of_option, one_of
from bezel.planner.vllm.arguments import MOUNT_PATH
from bezel_base.errors import NOT_SET, format_value
from bezel_catalog import closest, models, vllm_options, vllm_versions
from bezel_catalog.option_values import as_int

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from bezel_base.errors import Problem
    from bezel_catalog import Model, VllmOptions

# Methods that draft from the text, without a second model.
DRAFTLESS = ("ngram", "ngram_gpu", "suffix")
# Methods under which vLLM 0.32.0 loads an assistant, besides those that it renames to mtp: it recognises the assistant
# by its configuration. A class of the stack's own is given what it names. Other methods read weights of their own kind.
_OF_ASSISTANTS = (None, "draft_model", "custom_class")
# Methods that vLLM cannot schedule asynchronously: it switches that off by itself, unless it is set explicitly.
NOT_ASYNCHRONOUS = ("ngram", "suffix")
# Releases that refuse these drafts beside asynchronous scheduling; later ones only with their first model runner, which
# suffix needs (vllm 0.33.0, config/vllm.py).
EXCLUDING_RELEASES = ("0.32.0",)
_OF_FIRST_RUNNER = ("suffix",)
# Two names of the same value; vLLM refuses both together.
_TWINS = {"spec-method": "method", "spec-model": "model", "spec-tokens": "num_speculative_tokens"}
# Fields of SpeculativeConfig that only the engine sets (vLLM 0.32.0); it refuses them from a user.
_OF_ENGINE = ("draft_model_config", "draft_parallel_config", "target_model_config", "target_parallel_config")


def not_asynchronous(release: str | None, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Methods of drafting with which steps do not overlap.

    Args:
        release: recorded release of vLLM; None for the oldest.
        environment: the server's variables; VLLM_USE_V2_MODEL_RUNNER=0 selects the first runner.
    """
    first_runner = environment.get("VLLM_USE_V2_MODEL_RUNNER") == "0"
    return NOT_ASYNCHRONOUS if release in (None, *EXCLUDING_RELEASES) or first_runner else _OF_FIRST_RUNNER


@dataclass(frozen=True)
class Speculation:
    """What drafts tokens, from options of their own or from `speculative-config`; None for what is not set.

    Attributes:
        method: How tokens are drafted; vLLM chooses it by the draft model where it is not set.
        draft_model: Folder or hub id of the draft model.
        tokens: Number of tokens that are drafted at a time.
        wrong_tokens: Text of a number of tokens that is not a whole number, and is refused; "" for any other.
    """

    method: str | None
    draft_model: str | None
    tokens: int | None
    wrong_tokens: str

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Speculation:
        """The settings among the values of options, by option name."""
        config = _config(values)
        method = config.get("method", values.get("spec-method"))
        draft_model = config.get("model", values.get("spec-model"))
        tokens = config.get("num_speculative_tokens", values.get("spec-tokens"))
        number = as_int(tokens)
        return cls(
            method=None if method is None else str(method),
            draft_model=None if draft_model is None else str(draft_model),
            tokens=number,
            wrong_tokens="" if tokens is None or number is not None else format_value(tokens),
        )

    @property
    def is_on(self) -> bool:
        """Whether tokens are drafted."""
        return self.method is not None or self.draft_model is not None


def check_speculation(
    values: Mapping[str, Any], model: Model, options: VllmOptions, copies_at: str = MOUNT_PATH
) -> Iterator[Problem]:
    """Every rule of speculative decoding.

    Args:
        values: of all arguments, by option name.
        model: the checkpoint, for the name of its assistant.
        options: the recorded list of the pinned release, for the methods.
        copies_at: prefix of the bucket's folders for vLLM, "" where it takes hub ids.
    """
    config = _config(values)
    for flag, twin in _TWINS.items():
        if flag in values and twin in config:
            consequence = f"speculative-config sets {twin} too; vLLM refuses both together (mutually exclusive)."
            yield of_option(flag, values[flag], consequence, f"keep one of them, e.g. remove {flag}.")
    yield from _keys(config, options)
    chosen = Speculation.of(values)
    if not chosen.is_on and chosen.tokens is None and not chosen.wrong_tokens:
        if isinstance(values.get("speculative-config"), dict):
            yield of_option(
                "speculative-config",
                config,
                "method, model and number of draft tokens are missing; vLLM exits while it starts.",
                "add method, model and num_speculative_tokens, or remove it.",
            )
        return
    excluded = not_asynchronous(options.version, {})
    if values.get("async-scheduling") is True and chosen.method in excluded:
        yield of_option(
            "async-scheduling",
            True,
            f"vLLM cannot draft with {chosen.method} and schedule asynchronously: it exits with a ValueError.",
            "remove it: vLLM schedules asynchronously by itself where it can.",
        )
    where = "speculative-config" if config else "spec-method"
    unknown = list(_method(where, chosen.method, options))
    yield from unknown or _draft(where, chosen.method, chosen.draft_model, model, copies_at)
    yield from _draft_tokens(where, chosen)
    if chosen.draft_model is not None and (quantization := config.get("quantization")) is not None:
        consequence = "weights that are quantized while they load need an amount of memory that cannot be planned."
        yield of_option("speculative-config.quantization", quantization, consequence, "remove it.")


def _config(values: Mapping[str, Any]) -> dict[str, Any]:
    config = values.get("speculative-config")
    return config if isinstance(config, dict) else {}


def _keys(config: Mapping[str, Any], options: VllmOptions) -> Iterator[Problem]:
    """Check the keys of speculative-config; the recorded schema alone would suggest those of the engine."""
    keys = _known_keys(options) or _known_keys(vllm_options(vllm_versions()[-1]))
    for key, value in config.items():
        if key in _OF_ENGINE:
            consequence, repair = "the engine does not accept this key and exits while it starts.", "remove it."
        elif key not in keys:
            consequence = f"vLLM {options.version} does not know this key: it exits while it starts."
            repair = one_of(keys, closest(str(key), keys))
        else:
            continue
        yield of_option(f"speculative-config.{key}", value, consequence, repair)


def _known_keys(options: VllmOptions) -> list[str]:
    """Keys of speculative-config that a user may set; none without a recorded schema."""
    branches = options.values.get("speculative_config", {}).get("anyOf", [])
    return [key for branch in branches for key in branch.get("properties", {}) if key not in _OF_ENGINE]


def _method(where: str, method: str | None, options: VllmOptions) -> Iterator[Problem]:
    """Check the method inside speculative-config; the parser itself checks that of spec-method."""
    option = options.find("--spec-method")
    methods = option[0].choices if option else ()
    if where != "spec-method" and method is not None and methods and method not in methods:
        near = closest(method, methods) or "mtp"
        consequence = "the engine does not know this method and exits while it starts."
        yield of_option(f"{where}.method", method, consequence, f"write {near}.")


def _draft(where: str, method: str | None, draft: str | None, model: Model, copies_at: str) -> Iterator[Problem]:
    if method in DRAFTLESS:
        return
    ngram = "use spec-method: ngram, or remove it."
    if not model.assistant:
        repair = f"no assistant of {model.id} is known: {ngram}"
    elif copies_at:
        copy = f"{copies_at}/{_folder(model.assistant)}"
        repair = f"copy {model.assistant} into the bucket and {'write' if draft else 'add'} spec-model: {copy}."
    else:
        repair = f"{'write' if draft else 'add'} spec-model: {model.assistant}."
    if draft is not None:
        if consequence := unplanned_draft(method, draft, model):
            yield of_option(where, draft, consequence, repair if model.assistant else ngram)
    elif method is not None:
        consequence = f"vLLM does not start: NotImplementedError, Unsupported speculative method: '{method}'."
        yield of_option(where, f"method {method} without a model", consequence, repair)


def unplanned_draft(method: str | None, draft: str, model: Model) -> str:
    """Why no plan can be made with a draft model; "" for the model's own assistant, whose size is known.

    A draft model is known by its hub id, or by a folder of that name. An assistant has no KV cache of its own: its
    layers read that of the model (vLLM 0.32.0, gemma4_mtp.py).
    """
    named = _folder(draft)
    if not model.assistant:
        return f"no assistant of {model.id} is known: the memory of a draft model cannot be planned."
    if named == _folder(model.assistant):
        if method in _OF_ASSISTANTS or (method is not None and method.endswith("mtp")):
            return ""
        return f"spec-method {method} reads weights of another kind than those of an assistant; vLLM does not start."
    for other in models().values():
        size = other.architecture.hidden_size
        if other.assistant and named == _folder(other.assistant):
            return (
                f"it drafts for {other.architecture.id} and takes hidden states of {size} numbers; those of {model.id} "
                f"have {model.architecture.hidden_size}: vLLM does not start."
            )
        if named in (other.id, other.folder):
            # Measured on vLLM 0.32.0 with a Gemma 4 as the draft model of a Gemma 4.
            return (
                f"{other.id} has sliding and full layers with a KV cache, and vLLM drafts with one kind only: it exits "
                "(All drafting layers should belong to the same kv cache group)."
            )
    return "the size of its weights and of its KV cache is not known: the memory fit cannot be planned."


def _folder(name: str) -> str:
    """The last part of a hub id, a path or an address."""
    return name.rstrip("/").rsplit("/", 1)[-1]


def _draft_tokens(where: str, chosen: Speculation) -> Iterator[Problem]:
    tokens = chosen.wrong_tokens or chosen.tokens
    if not chosen.is_on:
        consequence = "tokens cannot be drafted without a method and a model."
        yield of_option("spec-tokens", tokens, consequence, "add spec-method and spec-model.")
    elif tokens is None:
        yield of_option(
            "spec-tokens",
            NOT_SET,
            f"{where} requests speculative decoding without a number of draft tokens; vLLM exits while it starts.",
            "add spec-tokens: 3." if where == "spec-method" else "add num_speculative_tokens: 3 to it.",
        )
    elif isinstance(tokens, str) or tokens < 1:
        yield of_option("spec-tokens", tokens, "vLLM needs 1 or more.", "write e.g. 3.")
