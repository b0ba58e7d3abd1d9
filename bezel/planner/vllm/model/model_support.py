"""Models of a project against the release of vLLM and the accelerator: classes, kernels, layers without a formula.

Owns the refusals; what a release and an accelerator serve is recorded in bezel_catalog.architectures. The catalogue's
own models carry what they do not run on in their rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bezel.planner.base.problems import EXITS, setting
from bezel_base.errors import Problem
from bezel_catalog.architectures.quantisation import read_form
from bezel_catalog.architectures.registry import recorded_releases, refusal
from bezel_catalog.architectures.support import gpu_refusal, tpu_refusal
from bezel_catalog.architectures.weights import Weights

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bezel_catalog import Accelerator, Model


def check_support(model: Model, release: str, gpu: Accelerator | None, *, tpu: bool) -> Iterator[Problem]:
    """Refuse a model that the release or the accelerator does not serve, or whose memory cannot be computed.

    Args:
        model: the checkpoint.
        release: of vLLM, as its options are recorded.
        gpu: the accelerator; None for a TPU, or where it is unknown.
        tpu: whether tpu-inference serves the model.
    """
    if model.files is None:
        return
    where = setting("model")
    names = [str(name) for name in model.config.get("architectures") or ()]
    if names and release in recorded_releases() and all(refusal(name, release) for name in names):
        others = [other for other in recorded_releases() if not refusal(names[0], other)]
        newer = f"set {setting('vllm_version')}: {others[-1]}, or " if others else ""
        reason = f"{refusal(names[0], release)}; {EXITS}"
        yield Problem(where, model.id, reason, f"{newer}choose a model of another architecture.")
        return
    for reason in model.architecture.unknown:
        consequence = f"the KV cache of some of its layers cannot be computed: {reason}."
        yield Problem(where, model.id, consequence, "choose another model: its memory fit cannot be planned.")
    weights = Weights(
        bytes=model.weight_bytes,
        parameters=model.architecture.parameters,
        active_parameters=model.architecture.active_parameters,
        encoding=model.encoding,
        method=read_form(model.config).method or None,
    )
    if gpu is not None and release in recorded_releases():
        unserved = gpu_refusal(weights, gpu.compute_capability, release=release)
    else:
        unserved = tpu_refusal(model.architecture, weights) if tpu else None
    if unserved:
        repair = "choose another accelerator, or a checkpoint in another form."
        yield Problem(where, model.id, f"{unserved}: {EXITS}", repair)
