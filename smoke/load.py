"""A small load: so many streamed chats by so many users at once, each timed.

Owns the requests and their times. Leaves out open-loop schedules, ramps and sweeps: it answers "about how fast is
what was just deployed", on httpx, which is good for some tens of users. Streams are only stored while they run and
read afterwards, so that parsing one does not delay the others.
"""

import asyncio
import json
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bezel.rest.transport import DIRECT, certificates
from smoke.server import usage_fault

if TYPE_CHECKING:
    import httpx

_WORDS = (
    *("river", "stone", "light", "market", "garden", "winter", "engine", "letter", "silver", "forest", "bridge"),
    *("window", "summer", "paper", "ocean", "mountain", "harbour", "coffee", "signal", "thread", "copper", "island"),
)
_TELL_SECONDS = 2.0
# vLLM's chunks carry text under any of these.
_CHANNELS = ("content", "reasoning", "reasoning_content", "tool_calls")


@dataclass(frozen=True)
class Load:
    """What is sent.

    Attributes:
        url: The server's address.
        model: The served id.
        requests: How many in all.
        concurrency: How many at once.
        prompt_tokens: Length of a prompt, about: words are counted, and the server's ``usage`` says the truth.
        output_tokens: Exact: generation goes on past the end of the text.
        seed: Of the prompts' words.
        deadline_seconds: After which what still runs counts as failed.
    """

    url: str
    model: str
    requests: int
    concurrency: int
    prompt_tokens: int
    output_tokens: int
    seed: int = 0
    deadline_seconds: float = 300.0


@dataclass(frozen=True)
class Sample:
    """One request. Times are seconds since it was sent; ``failure`` is "" or the kind of failure.

    Attributes:
        ttft: To the first token of any channel.
        e2e: To the last token.
    """

    failure: str = ""
    ttft: float = 0.0
    e2e: float = 0.0
    prompt_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0


def prompt(load: Load, index: int) -> str:
    """The text of a request: no two begin alike, so that no cached prefix answers for the server.

    Those of a run with other settings are others: the server may still hold the last run's.
    """
    dice = random.Random(f"{load}/{index}")  # noqa: S311 - words, no secrets
    words = [dice.choice(_WORDS) for _ in range(max(1, load.prompt_tokens - 8))]
    return f"{dice.getrandbits(64):016x} {' '.join(words)}"


def run(load: Load, headers: dict[str, str], show: Callable[[str], None]) -> tuple[list[Sample], float]:
    """Sends the load and returns each request's sample and the seconds from the first request to the last answer.

    Args:
        load: What is sent.
        headers: What authorises each request.
        show: Takes a message every few seconds, in another thread.
    """
    return asyncio.run(_run(load, headers, show))


async def _run(load: Load, headers: dict[str, str], show: Callable[[str], None]) -> tuple[list[Sample], float]:
    import httpx

    users = max(1, min(load.concurrency, load.requests))
    # The default of 100 would make users wait for each other and call it the server's time.
    limits = httpx.Limits(max_connections=users, max_keepalive_connections=users, keepalive_expiry=60)
    async with httpx.AsyncClient(
        base_url=load.url,
        headers=headers,
        limits=limits,
        timeout=load.deadline_seconds,
        verify=certificates(),
        mounts=dict.fromkeys(DIRECT),
    ) as client:
        # Connections are made before the clock starts.
        await asyncio.gather(*(client.get("/health") for _ in range(users)), return_exceptions=True)
        left = iter(range(load.requests))
        samples: dict[int, Sample] = {}
        began = time.perf_counter()

        async def user() -> None:
            for index in left:
                samples[index] = await _one(client, load, index, began + load.deadline_seconds)

        async def teller() -> None:
            while True:
                await asyncio.to_thread(show, f"{len(samples)} of {load.requests} requests answered, {users} at once")
                await asyncio.sleep(_TELL_SECONDS)

        telling = asyncio.create_task(teller())
        try:
            await asyncio.gather(*(user() for _ in range(users)))
            seconds = time.perf_counter() - began
        finally:
            telling.cancel()
        return [samples[index] for index in sorted(samples)], seconds


async def _one(client: "httpx.AsyncClient", load: Load, index: int, end: float) -> Sample:
    import httpx

    body = {
        "model": load.model,
        "messages": [{"role": "user", "content": prompt(load, index)}],
        "max_tokens": load.output_tokens,
        "ignore_eos": True,
        "temperature": 0,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    sent = time.perf_counter()
    chunks: list[tuple[float, bytes]] = []
    try:
        async with asyncio.timeout(max(0.0, end - sent)):
            async with client.stream("POST", "/v1/chat/completions", json=body) as answer:
                if answer.status_code != 200:
                    return Sample(failure=f"http_{answer.status_code}")
                async for chunk in answer.aiter_raw():
                    chunks.append((time.perf_counter() - sent, chunk))  # noqa: PERF401 - the time is the point
    except (TimeoutError, httpx.TimeoutException):
        return Sample(failure="timeout")
    except httpx.ConnectError:
        return Sample(failure="connect")
    except httpx.HTTPError:
        return Sample(failure="broken_stream" if chunks else "no_answer")
    return read_stream(chunks, load.output_tokens)


def read_stream(chunks: list[tuple[float, bytes]], asked: int) -> Sample:
    """A sample from a stream's raw chunks: (seconds since the request was sent, bytes) each.

    An event counts at the time of the chunk that completes its line.
    """
    first = last = 0.0
    usage: Any = None
    done = False
    rest = b""
    for at, chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            data = line.strip().removeprefix(b"data:").strip() if line.startswith(b"data:") else b""
            if not data:
                continue
            if data == b"[DONE]":
                done = True
                continue
            try:
                event = json.loads(data)
            except ValueError:
                return Sample(failure="bad_json")
            if "error" in event:
                return Sample(failure="error_in_stream")
            usage = event.get("usage") or usage
            if any(_has_token(choice) for choice in event.get("choices") or ()):
                first, last = first or at, at
    if not done:
        return Sample(failure="truncated")
    if usage_fault(usage, asked=asked) or not first:
        return Sample(failure="bad_usage" if first else "no_token")
    cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
    return Sample("", first, last, usage["prompt_tokens"], usage["completion_tokens"], cached)


def _has_token(choice: dict[str, Any]) -> bool:
    delta = choice.get("delta") or {}
    return any(delta.get(channel) for channel in _CHANNELS)
