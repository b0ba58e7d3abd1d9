"""Speculative decoding: the configurations that vLLM accepts, and the acceptance of drafted tokens.

The refusals are those measured on vLLM 0.32.0. Acceptance is assumed: each drafted token is accepted with a fixed
probability if the one before it was, which results in the falling rates per position that real servers show.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bezel_catalog import vllm_options
from bezel_simulated_vllm.configuration.checkpoint import read_checkpoint
from bezel_simulated_vllm.configuration.failures import refusal
from bezel_simulated_vllm.configuration.relations.drafts import check_drafts

if TYPE_CHECKING:
    import argparse

    from bezel_simulated_vllm.configuration.checkpoint import Checkpoint
    from bezel_simulated_vllm.configuration.hardware import SimulatedMachine

_SHORT = {"spec_method": "method", "spec_model": "model", "spec_tokens": "num_speculative_tokens"}
# Keys that only the engine sets.
_OF_ENGINE = {"draft_model_config", "draft_parallel_config", "target_model_config", "target_parallel_config"}
_MTP_SPELLINGS = {None, "mtp", "gemma4_mtp", "draft_model"}


@dataclass(frozen=True)
class Speculation:
    """The drafting of a server.

    Attributes:
        method: "mtp" or "ngram".
        tokens: drafted tokens per step and sequence.
        acceptance: probability that a drafted token is accepted if the one before it was.
        proposes: probability that there is a draft at all (the prompt does not always contain the n-gram).
        draft: the assistant's checkpoint, None for n-grams.
    """

    method: str
    tokens: int
    acceptance: float
    proposes: float
    draft: Checkpoint | None = None


_KINDS = {
    "mtp": Speculation("mtp", 0, acceptance=0.62, proposes=1.0),
    "ngram": Speculation("ngram", 0, acceptance=0.45, proposes=0.35),
}


def speculation(options: argparse.Namespace, machine: SimulatedMachine) -> Speculation | None:
    """Return the drafting that the options configure, None without speculative decoding.

    Args:
        options: the parsed command line.
        machine: the machine on which the assistant's files are mounted.

    Raises:
        StartError: a combination that vLLM refuses, with its own message.
    """
    config = _merge(options)
    if not config and options.speculative_config is None:
        return None
    _check_values(config, options.release)
    check_drafts(config)
    method, tokens = config.get("method"), config.get("num_speculative_tokens")
    if method in {"ngram", "ngram_gpu", "suffix"}:
        if tokens is None:
            raise refusal("no-draft-tokens")
        return replace(_KINDS["ngram"], tokens=int(tokens))
    if method not in _MTP_SPELLINGS or not config.get("model"):
        raise refusal("draft-method", method=method)
    draft = read_model(str(config["model"]), machine)
    if not draft.assistant:
        raise refusal("draft-method", method=draft.model_type)
    if tokens is None:
        raise refusal("draft-tokens-none")
    size = config.get("draft_tensor_parallel_size")
    if size is not None and size not in (1, options.tensor_parallel_size):
        raise refusal("draft-devices", size=size)
    return replace(_KINDS["mtp"], tokens=int(tokens), draft=draft)


def _merge(options: argparse.Namespace) -> dict[str, Any]:
    """Merge the JSON option and its three short forms."""
    config: dict[str, Any] = dict(options.speculative_config or {})
    for option, key in _SHORT.items():
        value = getattr(options, option)
        if value is None:
            continue
        if key in config:
            raise refusal("draft-twice", flag="--" + option.replace("_", "-"), key=key)
        config[key] = value
    return config


def _check_values(config: dict[str, Any], release: str) -> None:
    schema = vllm_options(release).values["speculative_config"]
    keys = {key for branch in schema["anyOf"] for key in branch.get("properties", ())} - _OF_ENGINE
    for key in config:
        if key not in keys:
            raise refusal("draft-key", key=key)
    method, tokens = config.get("method"), config.get("num_speculative_tokens")
    option = vllm_options(release).find("--spec-method")
    methods = option[0].choices if option else ()
    if method is not None and method not in methods:
        raise refusal("draft-method-name", known=", ".join(repr(name) for name in methods if name != "None"))
    try:
        number = 1 if tokens is None else int(tokens)
    except (TypeError, ValueError):
        raise refusal("draft-tokens-type") from None
    if number < 1:
        raise refusal("draft-tokens-low")


def read_model(path: str, machine: SimulatedMachine) -> Checkpoint:
    """Read the model or the assistant at a path in the container.

    Raises:
        StartError: vLLM finds no model there.
    """
    directory = machine.resolve(path)
    if (directory / "config.json").is_file():
        return read_checkpoint(directory)
    bucket = path.startswith("gs://")
    # In a readable bucket any path counts as a folder.
    if directory.is_dir() or (bucket and directory != Path(path)):
        raise refusal("no-config-file", path=path)
    if bucket:
        raise refusal("bucket-denied", bucket=path.removeprefix("gs://").partition("/")[0])
    if path.startswith(("/", "./", "../")) or path.count("/") > 1:
        raise refusal("repository-form", path=path)
    raise refusal("not-cached")
