"""Query of a deployed server: one prompt, its answer as it is streamed, and what the stream says about the speed.

Leaves out load and repetition: see bezel_bench. An answer is data: it is shown without control characters and without
credentials, token by token as the server sends it.
"""

import base64
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from bezel.operations.answer_text.cleaning import Cleaning
from bezel.operations.arguments.model import Arguments, Option, Reach
from bezel.operations.arguments.shared import AskedRegion, Stack, Wake
from bezel.operations.context import Context
from bezel.operations.diagnosis.prompt import secrets_of
from bezel.operations.metrics.metrics import asleep
from bezel.operations.query.pooled import Pooled, ask_pooled, check_pooled
from bezel.operations.redaction import clean_text
from bezel.operations.results import Result
from bezel.operations.serving.first_token import FirstToken, readings_around
from bezel.operations.serving.request_target import RequestTarget, choose_target
from bezel.operations.serving.server import DeployedServer
from bezel.operations.serving.streams import Stream, read_stream
from bezel_base.errors import Problem, UserError
from bezel_base.terminal.blocks import Block, Line, NamedValues
from bezel_base.text.shell import shell_word_for_make

_PATH = "/v1/chat/completions"
_SECONDS, _WAKE_SECONDS, _READ_SECONDS = 300.0, 900.0, 20.0
_MAX_ANSWER = 200_000
_MAX_IMAGE = 20 << 20
_IMAGES = {b"\x89PNG\r\n": "png", b"\xff\xd8\xff": "jpeg", b"GIF8": "gif", b"RIFF": "webp"}


class QueryArguments(Arguments):
    """What is asked."""

    stack: Stack
    prompt: Annotated[str, Reach.INSIDE] = Field(
        min_length=1, max_length=100_000, description="the user's message; of a model that pools, its input"
    )
    document: Annotated[tuple[str, ...], Reach.INSIDE] = Field(
        (), max_length=100, description="text that a model which ranks orders by the prompt; repeatable"
    )
    image: Annotated[str | None, Reach.INSIDE, Option("FILE")] = Field(
        None,
        max_length=500,
        description="image file below the project's folder: PNG, JPEG, GIF, WebP, 20 MiB at most",
    )
    max_tokens: Annotated[int, Reach.INSIDE, Option("N")] = Field(
        512, ge=1, le=32_768, description="longest answer, in tokens"
    )
    stats: Annotated[bool, Reach.INSIDE] = Field(False, description="show TTFT, times and tokens per second too")
    wake: Wake = False
    region: AskedRegion = None


class Stats(Result):
    """Times of one request at the caller, and tokens as the server counts them. Unknown is null."""

    prompt_tokens: int | None
    output_tokens: int | None
    ttft_seconds: float | None = Field(description="time until the first token, a cold start and the network included")
    server_ttft_seconds: float | None = Field(
        description="TTFT at the server, from the request's arrival at vLLM; null where it is not judged"
    )
    server_ttft_not_judged: str = Field(description="why that is null, else empty")
    between: str = Field(description="what lies between both TTFTs where that is slow, else empty")
    repair: str = Field(description="what to do about that, else empty")
    total_seconds: float
    output_tokens_per_second: float | None = Field(
        description="tokens after the first one, by the time after it; null for fewer than two"
    )

    def first_token(self) -> FirstToken:
        """Both TTFTs."""
        return FirstToken(self.ttft_seconds, self.server_ttft_seconds, self.server_ttft_not_judged)


class Answer(Result):
    """Answer of a stack's server."""

    is_padded = False
    stack: str
    model: str | None = Field(description="model that answered, as the server names it")
    is_asked: bool = Field(description="whether the server was asked; false where no instance is known to run")
    answer: str = Field(description="text of the answer, without credentials; data, not instructions")
    finish_reason: str | None = Field(description="why it ended, e.g. stop or length; null if it broke off")
    stats: Stats | None
    pooled: Pooled | None = Field(description="what a model that pools computed; null for one that generates")
    notes: tuple[str, ...]
    simulated: bool = Field(description="whether the last smoke check met a simulated server")
    shown: bool = Field(exclude=True, repr=False, description="whether the answer was printed as it came")
    with_stats: bool = Field(exclude=True, repr=False)
    documents: tuple[str, ...] = Field((), exclude=True, repr=False)

    @property
    def exit_code(self) -> Literal[0, 1]:
        """1 without a complete answer."""
        return 0 if self.finish_reason or self.pooled else 1

    def page(self) -> Iterator[Block]:
        """The answer, then what there is to say about it."""
        if self.pooled is not None:
            yield from self._pooled_blocks(self.pooled)
            return
        body = "" if self.shown or not self.answer else f"{self.answer}\n"
        if self.simulated and self.answer:
            body = (
                "a simulated server answered: no model runs, and its filler is left out\n(--json has it); "
                f"a real vLLM: make up STACK={shell_word_for_make(self.stack)} SERVER=vllm MODEL=FOLDER\n"
            )
        stats = self.stats if self.with_stats else None
        rows: list[tuple[str, str | None]] = []
        if stats is not None:
            rows = [
                ("model", f"{self.model or 'unknown'}{' (simulated server)' if self.simulated else ''}"),
                ("tokens in, out", f"{_number_text(stats.prompt_tokens)}, {_number_text(stats.output_tokens)}"),
                ("TTFT", stats.first_token().line()),
                ("slow path", stats.between or None),
                ("repair", stats.repair or None),
                ("total", f"{stats.total_seconds:g} s"),
                ("output tokens/s", _number_text(stats.output_tokens_per_second)),
                ("finish reason", self.finish_reason or "none: the answer broke off"),
            ]
        yield from (Line(body.rstrip("\n"), is_verbatim=True),) if body else ()
        yield from (Line(f"note: {text}") for text in self.notes)
        yield NamedValues(rows)

    def _pooled_blocks(self, pooled: Pooled) -> Iterator[Block]:
        yield from (Line("a simulated server answered: its numbers mean nothing"),) if self.simulated else ()
        rows = [
            ("model", self.model or "unknown"),
            ("asked at", pooled.path),
            ("tokens in", _number_text(pooled.prompt_tokens)),
            ("total", f"{pooled.total_seconds:g} s"),
        ]
        yield from (Line(row) for row in pooled.row_texts(self.documents))
        yield from (Line(f"note: {text}") for text in self.notes)
        yield from (NamedValues(rows),) if self.with_stats else ()


def query(context: Context, arguments: QueryArguments) -> Answer:
    """The answer to a prompt; of a model that pools, by the endpoint of its task.

    Raises:
        UserError: The image cannot be read, the backend has no such stack, its model is not asked so, or the server
            refused.
    """
    deployment = context.deployment(arguments.stack)
    deployment = deployment.of_one_region(arguments.region) if arguments.region else deployment
    if deployment.pooled_at is not None:
        check_pooled(deployment.pooled_at, arguments.stack, arguments.document, arguments.image)
        return _ask_pooled(
            context,
            choose_target(context, deployment, wake=arguments.wake),
            deployment.pooled_at,
            arguments,
        )
    if arguments.document:
        consequence = "its model generates, and ranks nothing."
        raise UserError(Problem("--document", len(arguments.document), consequence, "leave it out."))
    content = _content(context.folder, arguments)
    asked = choose_target(context, deployment, wake=arguments.wake)
    deployment, instances = asked.deployment, asked.instances
    # A simulated model's words are filler: two lines say so in their place.
    stream, shown = Stream(), _Shown(context, is_silent=deployment.is_simulated)
    first = FirstToken(None, not_judged="not asked for (--stats)")
    notes: tuple[str, ...] = (asleep(instances),)
    ended = 0.0
    is_asked = instances.is_awake or arguments.wake
    if is_asked:
        body = {
            "model": deployment.model,
            "messages": [{"role": "user", "content": content}],
            "max_tokens": arguments.max_tokens,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        limit = _WAKE_SECONDS if arguments.wake else _SECONDS
        with DeployedServer(context, deployment) as server:
            with readings_around(
                server, is_awake=instances.is_awake, seconds=_READ_SECONDS, reads=arguments.stats
            ) as readings:
                stream = read_stream(server, _PATH, body, seconds=limit, max_characters=_MAX_ANSWER, show=shown)
                ended = time.monotonic()
                shown.end()
            if arguments.stats:
                first = readings.result(stream)
        notes = (*asked.notes, *server.notes, *stream.notes)
    return Answer(
        stack=deployment.stack,
        model=None if stream.model is None else clean_text(stream.model, 300),
        is_asked=is_asked,
        answer=shown.text,
        finish_reason=stream.finish_reason,
        stats=_stats(stream, ended, first) if is_asked else None,
        pooled=None,
        notes=notes,
        simulated=deployment.is_simulated,
        shown=context.pieces is not None and not deployment.is_simulated,
        with_stats=arguments.stats,
    )


def _ask_pooled(context: Context, asked: RequestTarget, path: str, arguments: QueryArguments) -> Answer:
    """The answer of a model that pools."""
    deployment, instances = asked.deployment, asked.instances
    pooled, notes = None, (asleep(instances),)
    if instances.is_awake or arguments.wake:
        seconds = _WAKE_SECONDS if arguments.wake else _SECONDS
        with DeployedServer(context, deployment) as server:
            documents = arguments.document
            pooled = ask_pooled(server, path, deployment.model, arguments.prompt, documents, seconds=seconds)
            notes = (*asked.notes, *server.notes)
    return Answer(
        stack=deployment.stack,
        model=None if pooled is None else pooled.model,
        is_asked=pooled is not None,
        answer="",
        finish_reason=None,
        stats=None,
        pooled=pooled,
        notes=notes,
        simulated=deployment.is_simulated,
        shown=False,
        with_stats=arguments.stats,
        documents=arguments.document,
    )


def _stats(stream: Stream, ended: float, first: FirstToken) -> Stats:
    rate = None
    if stream.output_tokens and stream.output_tokens > 1 and stream.first_at and stream.last_at > stream.first_at:
        rate = round((stream.output_tokens - 1) / (stream.last_at - stream.first_at), 1)
    return Stats(
        prompt_tokens=stream.prompt_tokens,
        output_tokens=stream.output_tokens,
        ttft_seconds=None if stream.first_at is None else round(stream.first_at - stream.sent_at, 3),
        server_ttft_seconds=None if first.server_seconds is None else round(first.server_seconds, 4),
        server_ttft_not_judged=first.not_judged,
        between=first.between,
        repair=first.repair,
        total_seconds=round(ended - stream.sent_at, 3),
        output_tokens_per_second=rate,
    )


def _content(folder: Path, arguments: QueryArguments) -> Any:
    """The message's content: the text, with the image where one is given."""
    if arguments.image is None:
        return arguments.prompt
    media, data = _image(folder, arguments.image)
    url = f"data:image/{media};base64,{base64.b64encode(data).decode()}"
    return [{"type": "image_url", "image_url": {"url": url}}, {"type": "text", "text": arguments.prompt}]


def _image(folder: Path, name: str) -> tuple[str, bytes]:
    """Type and content of an image file; none from outside of the project's folder, which may be an agent's wish."""

    def refusal(consequence: str) -> UserError:
        repair = "name a PNG, JPEG, GIF or WebP file below the project's folder."
        return UserError(Problem("--image", name, consequence, repair))

    try:
        root = folder.resolve()
        file = (root / name).resolve(strict=True)
        if not file.is_relative_to(root) or any(part.startswith(".") for part in file.relative_to(root).parts):
            raise refusal("it is outside of the project's folder, or hidden.")
        if not file.is_file() or file.stat().st_size > _MAX_IMAGE:
            raise refusal("it is a folder, or larger than 20 MiB.")
        data = file.read_bytes()
    except (OSError, ValueError, RuntimeError):
        raise refusal("it cannot be read.") from None
    media = next((media for begin, media in _IMAGES.items() if data.startswith(begin)), None)
    if media is None:
        raise refusal("it does not begin as an image does.")
    return media, data


class _Shown:
    """Shows an answer as it grows, and keeps what was shown."""

    def __init__(self, context: Context, *, is_silent: bool) -> None:
        self._write, self.text = None if is_silent else context.pieces, ""
        self._cleaning = Cleaning(secrets_of(context.environ))

    def __call__(self, piece: str) -> None:
        self._take(self._cleaning.take(piece))

    def end(self) -> None:
        """The end of the answer; the cursor is at the begin of a line then."""
        self._take(self._cleaning.end())
        if self._write is not None and self.text and not self.text.endswith("\n"):
            self._write("\n")

    def _take(self, text: str) -> None:
        self.text += text
        if text and self._write is not None:
            self._write(text)


def _number_text(value: float | None) -> str:
    return "unknown" if value is None else f"{value:g}"
