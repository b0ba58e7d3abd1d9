"""Reads of labels: one prompt for each question, one token of each, and the probability of every label there.

The engine computes each read as a request of its own, so that load and metrics are those of the real server. There are
no weights: the probabilities are pseudo-random numbers of the prompt.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bezel_simulated_vllm.api import rendering
from bezel_simulated_vllm.api.bodies import CompletionBody
from bezel_simulated_vllm.api.errors import api_error
from bezel_simulated_vllm.api.generation import start_call
from bezel_simulated_vllm.release import is_since
from bezel_simulated_vllm.scheduling.fake_text import chance

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bezel_simulated_vllm.api.generation import Call
    from bezel_simulated_vllm.api.routes.decision_questions import Question
    from bezel_simulated_vllm.configuration.settings import EngineSettings
    from bezel_simulated_vllm.scheduling.engine import Engine

# Architectures that are asked so, with the first release that does; the others of vLLM's table are read otherwise.
_ARCHITECTURES = {
    "Qwen3ForCausalLM": "0.32.0",
    "Qwen3_5ForConditionalGeneration": "0.32.0",
    "Qwen3_5MoeForConditionalGeneration": "0.32.0",
    "Gemma4ForCausalLM": "0.33.0",
    "Gemma4ForConditionalGeneration": "0.33.0",
    "Gemma4UnifiedForConditionalGeneration": "0.33.0",
}
_LEAST_MASS = 0.7
_SPREAD = 4.0


@dataclass(frozen=True)
class Read:
    """What one question's prompt gave.

    Attributes:
        probabilities: of each label among the labels, 1 in sum.
        mass: of all labels among all tokens.
        input_tokens: tokens of the prompt; `cached_tokens` of them came from the prefix cache, and
            `cache_write_tokens` were added to it.
    """

    probabilities: list[float]
    mass: float
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    cache_write_tokens: int

    @property
    def is_label_likeliest(self) -> bool:
        """Whether the likeliest token of all is a label."""
        return max(self.probabilities) * self.mass > 1 - self.mass


def can_read(settings: EngineSettings) -> bool:
    """Return whether the served model is asked so by this release: by its architecture and its tokenizer."""
    since = _ARCHITECTURES.get(settings.model.architecture)
    return since is not None and is_since(since) and settings.model.has_label_tokens and settings.returns_logprobs


def start_reads(
    engine: Engine,
    questions: Sequence[Question],
    subject: str,
    *,
    model: str | None,
    instructions: str | None = None,
    images: Sequence[str] = (),
    cache_salt: str | None = None,
    template: dict[str, Any] | None = None,
) -> Call:
    """Queue a request of one token for each question.

    Args:
        engine: the engine.
        questions: what is asked.
        subject: what the questions are about.
        model: the client's name of the model.
        instructions: the system's message, None for none.
        images: addresses of images before the subject.
        cache_salt: keeps the prompts apart from others in the prefix cache.
        template: options of the chat template.

    Raises:
        ApiError: a prompt is refused, thoughts are switched on, a template of the client never begins the answer, or
            the queue is full.
    """
    if (template or {}).get("enable_thinking"):
        raise api_error("read-thinks")
    text = (template or {}).get("chat_template")
    if text is not None and "add_generation_prompt" not in str(text):
        raise api_error("read-template")
    settings = engine.settings
    system = [{"role": "system", "content": instructions}] if instructions else []
    parts = [{"type": "image_url", "image_url": {"url": address}} for address in images]
    prompts = []
    for question in questions:
        text = f"{subject}\n\n{question.prompt}"
        content = [*parts, {"type": "text", "text": text}] if parts else text
        messages: list[dict[str, Any]] = [*system, {"role": "user", "content": content}]
        prompts.append(rendering.tokens_of(rendering.messages_text(messages, settings), settings.max_model_len))
    body = CompletionBody(model=model, temperature=0.0, ignore_eos=True, cache_salt=cache_salt)
    return start_call(engine, body, prompts, max_tokens=1)


def reads_of(call: Call, questions: Sequence[Question]) -> list[Read]:
    """Return what the finished requests of `start_reads` gave, in the order of the questions."""
    return [
        _read(call, choice.request.key, len(choice.request.prompt), choice.request.cached, len(question.labels))
        for choice, question in zip(call.choices, questions, strict=True)
    ]


def _read(call: Call, key: int, length: int, cached: int, labels: int) -> Read:
    weights = [math.exp(_SPREAD * chance(key, place, 1)) for place in range(labels)]
    total = sum(weights)
    settings = call.engine.settings
    block = settings.memory.layout.full_block
    return Read(
        probabilities=[weight / total for weight in weights],
        mass=_LEAST_MASS + (1 - _LEAST_MASS) * chance(key, 0, 2),
        input_tokens=length,
        output_tokens=1,
        cached_tokens=cached,
        cache_write_tokens=max(0, length // block * block - cached) if settings.prefix_caching else 0,
    )
