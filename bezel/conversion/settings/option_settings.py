"""Options of a found server -> `bezel:vllm`: what differs from the defaults of a stack. Pure.

An option that the input leaves out gets the stack's default, and that is said; not so the parsers of tools and
reasoning, which callers see in every response: they are switched off where they were off.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bezel.conversion.inputs.found_server import Remark, remark
from bezel.conversion.settings.model_place import REVISION
from bezel.conversion.settings.model_settings import moved_paths
from bezel.planner.vllm.arguments import PORT, chosen_arguments, default_options, leased_options, typed_values
from bezel.planner.vllm.loading import FUSE, PREFETCH, loading_options
from bezel_base.errors import NOT_SHOWN
from bezel_catalog.option_values import as_int
from bezel_catalog.vllm.typed_values import typed_value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bezel.conversion.settings.model_settings import ModelChoice
    from bezel.planner.base.hardware import LeasedHardware
    from bezel_catalog import VllmOptions

_SEEN_BY_CALLERS = ("enable-auto-tool-choice", "tool-call-parser", "reasoning-parser")
_STRATEGY = "safetensors-load-strategy"
_BY_STRATEGY = {"lazy": FUSE.id, "prefetch": PREFETCH.id}
API_KEY_REASON = (
    "vLLM expects its key in the header that carries a caller's identity to Cloud Run: callers are admitted by their "
    "identity instead."
)
API_KEY_REPAIR = "list the callers: bezel:access: {invokers: [serviceAccount:NAME@PROJECT.iam.gserviceaccount.com]}."
# Options that a stack sets by itself, with the reason why the input's value is left out.
_OWN = {
    "host": "a stack's server listens on all addresses of its container.",
    "download-dir": "a stack's server downloads nothing to a folder of its own.",
    "config": "the options in that file were not read: write them into bezel:vllm.",
    "uds": "a stack's server listens on its port.",
}


def option_settings(
    written: Mapping[str, Any],
    choice: ModelChoice,
    argument: str,
    options: VllmOptions,
    *,
    memory_gib: int,
    leased: LeasedHardware | None,
) -> tuple[dict[str, Any], str | None, list[Remark]]:
    """`bezel:vllm`, `weights.loading` where the options mean another than the plan's choice, and what is to be known.

    Args:
        written: The input's options, as a stack file has them.
        choice: The checkpoint.
        argument: The input's model argument, under which vLLM serves the model where no name is given.
        options: Recorded of the release.
        memory_gib: Of the host.
        leased: The leased hardware; None for Cloud Run.
    """
    remarks: list[Remark] = []
    values = {name: moved_paths(value, choice) for name, value in written.items()}
    _leave_own(values, remarks, leased)
    record = choice.record
    if record is None:
        return values, None, remarks
    revision = values.pop(REVISION, None) if record.commit else None
    if revision is not None:
        reason = f"the project's row of the model is of the commit {record.commit}, which is served."
        remarks.append(remark("changes", f"--{REVISION}", revision, reason))
    if "served-model-name" not in values and argument != record.id:
        values["served-model-name"] = argument
    loading = choice.weights.get("loading")
    strategy = values.get(_STRATEGY)
    typed = typed_values(chosen_arguments(values, options))
    if loading is None and strategy in _BY_STRATEGY and leased is None:
        planned = loading_options(None, record, memory_gib, typed).get(_STRATEGY)
        loading = None if strategy == planned else _BY_STRATEGY[strategy]
        del values[_STRATEGY]
    if leased is None:
        defaults = default_options(record, loading=loading_options(loading, record, memory_gib, typed))
    else:
        defaults = leased_options(record, devices=leased.chips, tpu=leased.device == "tpu")
    settings = {name: value for name, value in values.items() if not _is_default(name, value, defaults, options)}
    missing = [name for name in defaults if name not in written and name not in (_STRATEGY, "port")]
    for name in missing:
        if name in _SEEN_BY_CALLERS:
            settings[name] = None
    _note_defaults({name: defaults[name] for name in missing if name not in (*_SEEN_BY_CALLERS, *values)}, remarks)
    return settings, loading if loading != choice.weights.get("loading") else None, remarks


def _leave_own(values: dict[str, Any], remarks: list[Remark], leased: LeasedHardware | None) -> None:
    """Take out what a stack sets by itself, and what is a credential."""
    for name, reason in _OWN.items():
        value = values.pop(name, None)
        if value is not None and value not in ("0.0.0.0", "::"):
            remarks.append(remark("not converted", f"--{name}", value, reason))
    port = values.pop("port", None)
    if port is not None and as_int(port) != PORT and leased is None:
        reason = f"a stack's server listens on {PORT} inside of its container; its address stays the same."
        remarks.append(remark("changes", "--port", port, reason))
    if "api-key" in values:
        del values["api-key"]
        remarks.append(Remark("not converted", "--api-key", NOT_SHOWN, API_KEY_REASON, API_KEY_REPAIR))
    if "hf-token" in values:
        del values["hf-token"]
        repair = "with bezel:weights: {loading: hub}: put it into Secret Manager, and write bezel:secrets: {HF_TOKEN: "
        repair += "hf-token}."
        reason = "a credential has no place in a stack file, and a bucket needs none."
        remarks.append(Remark("not converted", "--hf-token", NOT_SHOWN, reason, repair))
    for name in ("tensor-parallel-size", "pipeline-parallel-size", "data-parallel-size"):
        number = as_int(values.get(name))
        if number == 1 or (leased and name.startswith("tensor") and number == leased.chips):
            del values[name]
        elif number is not None and leased is None:
            del values[name]
            remarks.append(remark("not converted", f"--{name}", number, "an instance of Cloud Run has one GPU."))


def _is_default(name: str, value: Any, defaults: Mapping[str, object], options: VllmOptions) -> bool:
    match = options.find(f"--{name}")
    if match is None or name not in defaults:
        return False
    return bool(typed_value(match[0], value) == typed_value(match[0], defaults[name]))


def _note_defaults(defaults: Mapping[str, object], remarks: list[Remark]) -> None:
    if defaults:
        texts = ", ".join(f"{name} {_text(value)}" for name, value in sorted(defaults.items()))
        reason = f"the input does not set {'it' if len(defaults) == 1 else 'them'}; these are a stack's defaults."
        remarks.append(Remark("assumed", "bezel:vllm", texts, reason))


def _text(value: object) -> str:
    return ("on" if value else "off") if isinstance(value, bool) else str(value)
