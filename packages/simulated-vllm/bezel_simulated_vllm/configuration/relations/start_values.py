"""Values of single options that vLLM's parser takes and its start refuses, as vLLM 0.32.0's classes judge them.

Owns limits of media (config/multimodal.py), names of KV connectors (distributed/kv_transfer/kv_connector/factory.py)
and the unit of prefix matches (v1/core/kv_cache_utils.py). The texts are those of the real classes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pydantic
from pydantic_core import ValidationError

from bezel_simulated_vllm.configuration.failures import VALIDATION_ERROR, StartError, refusal
from bezel_simulated_vllm.configuration.kv_layout import BLOCK

if TYPE_CHECKING:
    import argparse

    from bezel_simulated_vllm.configuration.kv_layout import KvLayout

# Built where an option asks for them: few starts have limits of media.
_LATE = pydantic.ConfigDict(defer_build=True)
_STRICT = pydantic.ConfigDict(extra="forbid", defer_build=True)
_LIMITS = pydantic.create_model(
    "ModelConfig", __config__=_LATE, limit_mm_per_prompt=(dict[str, int | dict[str, int]], ...)
)


@pydantic.dataclasses.dataclass(config=_LATE)
class _Options:
    count: int = pydantic.Field(999, ge=0)


@pydantic.dataclasses.dataclass(config=_STRICT)
class _Image(_Options):
    width: int | None = pydantic.Field(None, gt=0)
    height: int | None = pydantic.Field(None, gt=0)


@pydantic.dataclasses.dataclass(config=_STRICT)
class _Video(_Options):
    num_frames: int | None = pydantic.Field(None, gt=0)
    width: int | None = pydantic.Field(None, gt=0)
    height: int | None = pydantic.Field(None, gt=0)


@pydantic.dataclasses.dataclass(config=_STRICT)
class _Audio(_Options):
    length: int | None = pydantic.Field(None, gt=0)


_KINDS: dict[str, type[_Options]] = {"image": _Image, "video": _Video, "audio": _Audio}
# The factory's registry. Of the last column vLLM's own image has no package (requirements/kv_connectors.txt).
_CONNECTORS: dict[str, str] = dict.fromkeys(
    (
        *("ExampleConnector", "ExampleHiddenStatesConnector", "LMCacheConnectorV1", "LMCacheMPConnector"),
        *("NixlConnector", "NixlPullConnector", "NixlPushConnector", "MultiConnector", "HiSparseConnector"),
        *("OffloadingConnector", "DecodeBenchConnector", "MooncakeConnector", "MooncakeStoreConnector"),
        "SimpleCPUOffloadConnector",
    ),
    "",
) | {
    "FlexKVConnectorV1": "FlexKV is not installed. Please install it to use FlexKVConnectorV1. See "
    "https://github.com/taco-project/FlexKV for installation instructions.",
    "HF3FSKVConnector": "hf3fs_fuse.io is not available. Please install the hf3fs_fuse package.",
    "MoRIIOConnector": "MoRIIO is not available. Please ensure the 'mori' package is installed and properly "
    "configured.",
}


def check_media(options: argparse.Namespace, *, multimodal: bool) -> None:
    """Check the limits of media; a model of text alone reads no more of them than their types.

    Raises:
        StartError: a limit is no number, below its bound, or of an unknown size.
    """
    if options.limit_mm_per_prompt is None:
        return
    try:
        made = _LIMITS(limit_mm_per_prompt=options.limit_mm_per_prompt)
    except ValidationError as error:
        raise StartError(VALIDATION_ERROR, str(error)) from None
    limits: dict[str, Any] = made.limit_mm_per_prompt  # type: ignore[attr-defined]
    options.limit_mm_per_prompt = limits
    for medium, limit in limits.items() if multimodal else ():
        try:
            _KINDS.get(medium, _Options)(**({"count": limit} if isinstance(limit, int) else limit))
        except ValidationError as error:
            lines: list[Any] = [
                {
                    "type": each["type"],
                    "loc": ("limit_per_prompt", *each["loc"]),
                    "input": each["input"],
                    "ctx": each.get("ctx", {}),
                }
                for each in error.errors()
            ]
            text = str(ValidationError.from_exception_data("MultiModalConfig", lines))
            raise StartError(VALIDATION_ERROR, text) from None


def check_connector(transfer: object) -> None:
    """Check the name of a KV connector and of those within it, and that vLLM's image has what it needs.

    Raises:
        StartError: it is none of the factory's, or its package is missing.
    """
    if not isinstance(transfer, dict) or transfer.get("kv_connector_module_path"):
        return
    name = str(transfer.get("kv_connector"))
    if name not in _CONNECTORS:
        raise refusal("unknown-connector", name=name)
    if name == "MultiConnector":
        connectors = (transfer.get("kv_connector_extra_config") or {}).get("connectors")
        if connectors is None:
            raise refusal("no-connectors")
        for inner in connectors:
            if inner.get("kv_connector") and not inner.get("kv_role"):
                raise refusal("no-kv-role")
            check_connector(inner)
    if missing := _CONNECTORS[name]:
        raise StartError("RuntimeError" if name.startswith("MoRIIO") else "ImportError", missing, "engine")


def check_match_unit(options: argparse.Namespace, layout: KvLayout) -> None:
    """Check that blocks of every group of the cache can be divided into the unit of prefix matches.

    Raises:
        StartError: they cannot.
    """
    unit = options.prefix_match_unit
    if unit is None or (options.enable_prefix_caching is False and options.kv_transfer_config is None):
        return
    scale = (options.block_size or BLOCK) // BLOCK or 1
    full, sliding = layout.full_block * scale, layout.sliding_block * scale
    if not layout.sliding_groups or not layout.full_groups:
        only = sliding if layout.sliding_groups else full
        if unit != only:
            raise refusal("single-match-unit", unit=unit, block=only)
        return
    sizes = [full] * layout.full_groups + [sliding] * layout.sliding_groups
    if any(size % unit for size in sizes):
        raise refusal("match-unit", unit=unit, sizes=sizes)
