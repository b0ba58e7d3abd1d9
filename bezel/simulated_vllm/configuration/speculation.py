"""Speculative decoding: the configurations that vLLM accepts, and the acceptance of drafted tokens.

The refusals are those measured on vLLM 0.32.0. Acceptance is assumed: each drafted token is accepted with a fixed
probability if the one before it was, which results in the falling rates per position that real servers show.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bezel.simulated_vllm.configuration.checkpoint import read_checkpoint
from bezel.simulated_vllm.configuration.failures import StartError, validation_error

if TYPE_CHECKING:
    import argparse

    from bezel.simulated_vllm.configuration.checkpoint import Checkpoint
    from bezel.simulated_vllm.configuration.hardware import SimulatedMachine

_KEYS = {
    "method",
    "model",
    "num_speculative_tokens",
    "prompt_lookup_max",
    "prompt_lookup_min",
    "draft_tensor_parallel_size",
    "quantization",
    "max_model_len",
    "revision",
    "enforce_eager",
    "disable_padded_drafter_batch",
}
_SHORT = {"spec_method": "method", "spec_model": "model", "spec_tokens": "num_speculative_tokens"}
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


def speculation(options: argparse.Namespace, machine: SimulatedMachine, methods: tuple[str, ...]) -> Speculation | None:
    """Return the drafting that the options configure, None without speculative decoding.

    Args:
        options: the parsed command line.
        machine: the machine on which the assistant's files are mounted.
        methods: the names that --spec-method takes.

    Raises:
        StartError: a combination that vLLM refuses, with its own message.
    """
    config = _merged(options)
    if not config and options.speculative_config is None:
        return None
    _check_values(config, methods)
    method, tokens = config.get("method"), config.get("num_speculative_tokens")
    if method == "ngram":
        if tokens is None:
            raise validation_error(
                "SpeculativeConfig",
                "num_speculative_tokens must be provided with speculative model unless the draft model config contains "
                "an n_predict parameter.",
            )
        return replace(_KINDS["ngram"], tokens=int(tokens))
    if method not in _MTP_SPELLINGS or not config.get("model"):
        raise StartError("NotImplementedError", f"Unsupported speculative method: '{method}'")
    draft = _assistant(str(config["model"]), machine)
    if tokens is None:
        raise StartError("TypeError", "'>' not supported between instances of 'NoneType' and 'int'")
    return replace(_KINDS["mtp"], tokens=int(tokens), draft=draft)


def _merged(options: argparse.Namespace) -> dict[str, Any]:
    """Merge the JSON option and its three short forms."""
    config: dict[str, Any] = dict(options.speculative_config or {})
    for option, key in _SHORT.items():
        value = getattr(options, option)
        if value is None:
            continue
        if key in config:
            flag = "--" + option.replace("_", "-")
            raise StartError("ValueError", f"{flag} and --speculative-config['{key}'] are mutually exclusive")
        config[key] = value
    return config


def _check_values(config: dict[str, Any], methods: tuple[str, ...]) -> None:
    name = "SpeculativeConfig"
    for key in config:
        if key not in _KEYS:
            raise validation_error(name, "Unexpected keyword argument", kind="unexpected_keyword_argument", field=key)
    method, tokens = config.get("method"), config.get("num_speculative_tokens")
    if method is not None and method not in methods:
        allowed = ", ".join(repr(known) for known in methods if known != "None")
        raise validation_error(name, f"Input should be {allowed}", kind="literal_error", field="method")
    field = "num_speculative_tokens"
    try:
        number = 1 if tokens is None else int(tokens)
    except (TypeError, ValueError):
        raise validation_error(name, "Input should be a valid integer", kind="int_type", field=field) from None
    if number < 1:
        raise validation_error(name, "Input should be greater than 0", kind="greater_than", field=field)


def _assistant(path: str, machine: SimulatedMachine) -> Checkpoint:
    directory = machine.resolve(path)
    if not (directory / "config.json").is_file():
        raise missing_model(path, is_found(path, directory))
    draft = read_checkpoint(directory)
    if not draft.assistant:
        raise StartError("NotImplementedError", f"Unsupported speculative method: '{draft.model_type}'")
    return draft


def is_found(path: str, directory: Path) -> bool:
    """Whether vLLM finds a folder at the path; in a readable bucket any path counts as one."""
    return directory.is_dir() or (path.startswith("gs://") and directory != Path(path))


def missing_model(path: str, folder_exists: bool) -> StartError:
    """Return the error that vLLM raises for a model that does not exist at the given path."""
    if folder_exists:
        return StartError(
            "ValueError",
            f"Invalid repository ID or local directory specified: '{path}'.\n"
            "Please verify the following requirements:\n1. Provide a valid Hugging Face repository ID.\n"
            "2. Specify a local directory that contains a recognized configuration file.",
        )
    if path.startswith("gs://"):
        bucket = path.removeprefix("gs://").partition("/")[0]
        return StartError(
            "google.api_core.exceptions.Forbidden",
            f"403 GET https://storage.googleapis.com/storage/v1/b/{bucket}/o: Permission 'storage.objects.list' denied "
            "on resource (or it may not exist).",
        )
    if path.startswith(("/", "./", "../")) or path.count("/") > 1:
        return StartError(
            "huggingface_hub.errors.HFValidationError",
            f"Repo id must be in the form 'repo_name' or 'namespace/repo_name': '{path}'. "
            "Use `repo_type` argument if needed.",
        )
    return StartError(
        "huggingface_hub.errors.LocalEntryNotFoundError",
        "Cannot find an appropriate cached snapshot folder for the specified revision on the local disk and outgoing "
        "traffic has been disabled. To enable repo look-ups and downloads online, pass 'local_files_only=False' as "
        "input.",
    )
