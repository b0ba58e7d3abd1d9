"""Calls of the completion and chat API: from a prompt to requests in the engine, and the code that both APIs share."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bezel_simulated_vllm.api import rendering
from bezel_simulated_vllm.api.beam_search import BeamSearch
from bezel_simulated_vllm.api.bodies import ChatBody, CompletionBody
from bezel_simulated_vllm.api.errors import EngineRefusedError, api_error
from bezel_simulated_vllm.api.structured import required_tool, scripted_answer
from bezel_simulated_vllm.api.tool_calls.parsers import reads_no_answer
from bezel_simulated_vllm.api.validation.parameters import (
    check_compilation,
    check_engine,
    check_experts,
    check_sampling,
)
from bezel_simulated_vllm.release import has_change
from bezel_simulated_vllm.scheduling.channel import Channel
from bezel_simulated_vllm.scheduling.detokenize import Choice, prompt_logprobs
from bezel_simulated_vllm.scheduling.engine import Engine, QueueFullError
from bezel_simulated_vllm.scheduling.fake_text import key_of, thought_tokens
from bezel_simulated_vllm.scheduling.request import Group, Request

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bezel_simulated_vllm.configuration.settings import EngineSettings
    from bezel_simulated_vllm.scheduling.channel import Piece


@dataclass
class Call:
    """A call that the engine works on.

    Attributes:
        id: the id in the response, with its prefix.
        model: the name of the model in the request.
        prompt_tokens: tokens of all prompts together.
        refusal: why the engine refuses the call, reported inside the stream; None where it works on it.
        searches: the beam searches, one for each prompt; none where the engine runs the choices themselves.
        cached_tokens: how many of them came from the prefix cache, known once they have run.
        weight_versions: whether the release has the versions of weights among the keys of its answers.
    """

    engine: Engine
    id: str
    model: str
    body: ChatBody | CompletionBody
    prompt_tokens: int
    refusal: EngineRefusedError | None = None
    channel: Channel = field(init=False)
    choices: list[Choice] = field(default_factory=list)
    searches: list[BeamSearch] = field(default_factory=list)
    created: int = field(default_factory=lambda: int(time.time()))
    weight_versions: bool = field(default_factory=lambda: has_change("weight-versions"))

    def __post_init__(self) -> None:
        self.channel = Channel(self.engine.ring)

    @property
    def completion_tokens(self) -> int:
        """Tokens generated so far, all choices together."""
        return sum(choice.produced for choice in self.choices)

    @property
    def cached_tokens(self) -> int:
        """Tokens of the prompt that the prefix cache supplied."""
        return max((choice.request.cached for choice in self.choices), default=0)

    def prompt_logprobs(self, prompt: Sequence[int]) -> list[dict[str, object] | None] | None:
        """Return the probabilities of a prompt's tokens, None where they are not requested."""
        number = self.body.prompt_logprobs
        if number is None and self.body.echo:
            number = self.body.top_logprobs if isinstance(self.body, ChatBody) else self.body.logprobs
        if number is None or self.body.use_beam_search:
            return None
        return prompt_logprobs(self.choices[0].request.key, prompt, number)

    def abort(self) -> None:
        """Stop the requests that are still running, because the client is gone or the call has ended."""
        for search in self.searches:
            search.abort()
        for choice in self.choices:
            self.engine.abort(choice.request)

    def usage(self, *, details: bool) -> dict[str, object]:
        """Return the `usage` of the response.

        Args:
            details: whether the keys for details are always present, as everywhere but in the last chunk of a stream.
        """
        produced = self.completion_tokens
        usage: dict[str, object] = {
            "prompt_tokens": self.prompt_tokens,
            "total_tokens": self.prompt_tokens + produced,
            "completion_tokens": produced,
        }
        cached = self._cached_details(all_keys=details) if self.engine.settings.prompt_tokens_details else None
        reasoning = {"reasoning_tokens": self.thought_tokens} if self.parses_thoughts else None
        if details or cached:
            usage["prompt_tokens_details"] = cached
        if details or reasoning:
            usage["completion_tokens_details"] = reasoning
        return usage

    @property
    def created_tokens(self) -> int:
        """Tokens of the prompt that were added to the prefix cache: those of its whole blocks."""
        if not self.engine.settings.prefix_caching:
            return 0
        block = self.engine.settings.memory.layout.full_block
        return max(0, self.prompt_tokens // block * block - self.cached_tokens)

    def _cached_details(self, *, all_keys: bool) -> dict[str, int | None]:
        """Return the details of the prompt's tokens; only chat has created tokens, and a stream leaves out nulls."""
        created = self.created_tokens if isinstance(self.body, ChatBody) else None
        details = {"cached_tokens": self.cached_tokens, "created_cache_tokens": created, "multimodal_tokens": None}
        return details if all_keys else {key: value for key, value in details.items() if value is not None}

    def versions_of(self, tokens: int) -> dict[str, object]:
        """Return the key with the versions of the weights that made a choice; none where the release has none.

        Args:
            tokens: how many tokens the choice has; weights are never exchanged here.
        """
        if not self.weight_versions:
            return {}
        asked = self.body.return_weight_versions and not self.body.use_beam_search
        return {"weight_versions": [{"version": "default", "start": 0, "end": tokens}] if asked else None}

    def answer(
        self, kind: str, choices: list[dict[str, object]], extra: dict[str, object] | None = None
    ) -> dict[str, object]:
        """Return the body of a response that is not streamed.

        Args:
            kind: its `object`.
            choices: the choices, in order.
            extra: the keys that only this kind has.
        """
        return {
            "id": self.id,
            "object": kind,
            "created": self.created,
            "model": self.model,
            "choices": choices,
            "service_tier": None,
            "system_fingerprint": self.engine.settings.fingerprint,
            "usage": self.usage(details=True),
            **(extra or {}),
            "kv_transfer_params": None,
            "ec_transfer_params": None,
            "metrics": self._metrics(),
        }

    def _metrics(self) -> dict[str, float] | None:
        """Return the `metrics` of the response, with --enable-per-request-metrics."""
        if not self.engine.settings.per_request_metrics:
            return None
        request = self.choices[0].request
        first = request.first_token or request.arrival
        generation = request.last_token - first
        steps = max(1, len(request.answer) - 1)
        return {
            "time_to_first_token_ms": (first - request.arrival) * 1e3,
            "generation_time_ms": generation * 1e3,
            "queue_time_ms": ((request.scheduled or request.arrival) - request.arrival) * 1e3,
            "mean_itl_ms": generation / steps * 1e3,
            "tokens_per_second": steps / generation if generation else 0.0,
        }

    @property
    def thought_tokens(self) -> int:
        """Tokens of all thoughts so far."""
        return sum(choice.thought_tokens for choice in self.choices)

    def count_parsed(self, pieces: Sequence[Piece], kind: str = "chat_completions", *, streaming: bool = False) -> None:
        """Count the pieces that the parser of tool calls has read, where the server has one."""
        if self.engine.settings.tool_parser and isinstance(self.body, ChatBody):
            called = required_tool(self.body) is not None
            self.engine.metrics.count_parser_use(kind, streaming=streaming, called=called, times=len(pieces))

    @property
    def parses_thoughts(self) -> bool:
        """Whether thoughts are separated from the answer."""
        return self.engine.settings.reasoning_parser is not None and isinstance(self.body, ChatBody)


def start_call(
    engine: Engine,
    body: ChatBody | CompletionBody,
    prompts: Sequence[Sequence[int]],
    *,
    max_tokens: int | None,
    pools: bool = False,
) -> Call:
    """Check a call's parameters and queue its requests.

    Args:
        engine: the engine.
        body: the call.
        prompts: token ids, several only for /v1/completions.
        max_tokens: the client's limit of output tokens, None for as many as fit.
        pools: whether the model pools over the prompts, so that a prompt may be as long as the context.

    Raises:
        ApiError: a parameter or the prompt is refused, or the queue is full.
    """
    settings = engine.settings
    longest = settings.max_model_len if max_tokens is None else max_tokens
    limits = [min(longest, settings.max_model_len - len(prompt)) for prompt in prompts]
    # A prompt that leaves no room is refused like a limit of 0 tokens. An echo alone makes a token that is left out.
    only_echo = isinstance(body, CompletionBody) and bool(body.echo) and max_tokens == 0
    limits = [1 if only_echo or pools else limit for limit in limits]
    check_sampling(body, min(limits))
    for prompt in prompts:
        rendering.check_ids(prompt)
    refusal = _refusal(body, engine, prompts)
    if refusal is not None and not body.stream:
        raise refusal
    if settings.machine.accelerator.xla and body.seed is not None and body.temperature != 0:
        raise api_error("tpu-seed")  # vLLM's TPU plugin, at each request
    count = (body.n or 1) * len(prompts)
    try:
        engine.check_admission(count)
    except QueueFullError:
        raise api_error("busy") from None
    chat = isinstance(body, ChatBody)
    scripted = scripted_answer(body) if refusal is None else None
    call = Call(
        engine=engine,
        id=("chatcmpl-" if chat else "cmpl-") + (body.request_id or secrets.token_hex(8)),
        model=body.model or settings.served_names[0],
        body=body,
        prompt_tokens=sum(map(len, prompts)),
        refusal=refusal,
    )
    seed = _seed(body, settings.seed)
    groups = [Group(body.n or 1) for _ in prompts]
    beams = body.use_beam_search and refusal is None
    for index in range(count):
        prompt = prompts[index // (body.n or 1)]
        choice = Choice(
            index=index,
            stops=body.stops,
            keep_stop=body.include_stop_str_in_output,
            streams=bool(body.stream),
            parses=call.parses_thoughts,
            channel=call.channel,
            engine=engine,
        )
        key = key_of(prompt, seed, index)
        choice.request = Request(
            prompt=prompt,
            max_tokens=limits[index // (body.n or 1)],
            key=key,
            deliver=choice.deliver,
            ignore_eos=body.ignore_eos,
            min_tokens=body.min_tokens,
            group=groups[index // (body.n or 1)],
            cache_salt=body.cache_salt or "",
            thought=thought_tokens(key) if isinstance(body, ChatBody) and thinks(body, settings) else (),
            scripted=scripted,
            pools=pools,
        )
        call.choices.append(choice)
        if refusal is None and not beams:
            engine.add(choice.request)
    if beams:
        width = body.n or 1
        call.searches = [BeamSearch(engine, call.choices[at : at + width]) for at in range(0, count, width)]
        for search in call.searches:
            search.start()
    return call


def _refusal(
    body: ChatBody | CompletionBody, engine: Engine, prompts: Sequence[Sequence[int]]
) -> EngineRefusedError | None:
    """Return why the engine refuses a call, None where it does not."""
    settings = engine.settings
    labels, parses = bool(body.logprob_token_ids), settings.reasoning_parser is not None
    try:
        check_engine(body, settings.model.vocabulary, labels=labels, thinks=parses, judge=engine.judge)
        for prompt in prompts:
            check_experts(body.routed_experts_prompt_start, len(prompt))
        check_compilation(body, engine.judge)
    except EngineRefusedError as error:
        return error
    if isinstance(body, ChatBody) and reads_no_answer(settings, body):
        return EngineRefusedError(api_error("parser-of-another-model"))
    if body.parallel_rank not in (None, 0) and not body.use_beam_search:
        return EngineRefusedError(api_error("parallel-rank", rank=body.parallel_rank))
    return None


def thinks(body: ChatBody, settings: EngineSettings) -> bool:
    """Whether the chat template switches thinking on; the client's value overrides the server's default."""
    return bool({**settings.template_defaults, **(body.chat_template_kwargs or {})}.get("enable_thinking"))


def _seed(body: ChatBody | CompletionBody, server_seed: int) -> int:
    """Return the seed of a call: greedy and seeded calls are reproducible, others are not."""
    if body.temperature == 0:
        return 0
    return body.seed if body.seed is not None else server_seed + secrets.randbits(32)
