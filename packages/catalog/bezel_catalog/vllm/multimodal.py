"""Tokens of the longest multimodal item of Gemma 4 in vLLM. Data: vllm/multimodal.toml."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from bezel_catalog.loader import make, read_toml


@dataclass(frozen=True, slots=True)
class MultimodalTokens:
    """Tokens of one image, one audio clip and one frame of a video, and the most frames of a video.

    `image_token_choices` are the values that vLLM takes for `max_soft_tokens` of an image; `release` is the vLLM whose
    source holds them.
    """

    release: str
    image_tokens: int
    image_token_choices: tuple[int, ...]
    audio_tokens: int
    video_frames: int
    tokens_per_frame: int


@functools.cache
def multimodal_tokens() -> MultimodalTokens:
    """Return the recorded figures."""
    return make(MultimodalTokens, "vllm/multimodal.toml", read_toml("vllm/multimodal.toml"))
