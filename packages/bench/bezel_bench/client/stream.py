"""Reader of one response, whole or in pieces, into its `Sample`: events, tokens, `usage`, errors inside.

Pure: takes pieces of a body with their arrival instants, however the network cut them. Owns the definition of a token
of any channel, and of the complete responses that are failures. Leaves out HTTP, and when pieces are read: the sender
stores them until it has time, so that reading one response delays no other. Events that need no parser are matched by
`bezel_bench.client.sse_template`.
"""

from collections.abc import Sequence
from typing import Any, Final

import orjson

from bezel_bench.client.sse_template import Alike
from bezel_bench.result import sample as kinds
from bezel_bench.result.failures import error_message, error_text, of_status, short
from bezel_bench.result.sample import Sample

# An event stream begins with a comment or a field (data, event, id, retry); anything else is one document.
_BEGINS_STREAM: Final = b":deir"
_LESSONS: Final = 4
# Fields of documents whose values are computed of the prompt: embeddings, and ranks.
_COMPUTED: Final = ("data", "results")


class AnswerReader:
    """Fills the sample of one response.

    An event counts at the instant of the piece that completed its line. Of several failures the first is recorded.

    Attributes:
        alike: The template of the stream's events, once known; None where texts are kept.
        texts: The response's texts in order; None where they are not needed, which is faster.
        rest: The beginning of an unfinished line.
        sample: The sample to fill.
        since: While no token is known: the instant (ns) after which a piece arrived, by that of the piece.
    """

    __slots__ = (
        *("_computed", "_document", "_ended", "_is_stream", "_lessons", "_usage"),
        *("_wordless", "alike", "rest", "sample", "since", "texts"),
    )

    def __init__(self, sample: Sample, keeps: bool = False) -> None:
        self.sample = sample
        self.texts: list[str] | None = [] if keeps else None
        self._document: list[bytes] = []
        self.rest = b""
        self.since: dict[int, int] = {}
        self._is_stream = self._ended = False
        # Embeddings or ranks came, of a request for no token.
        self._computed = False
        self._usage: Any = None
        # Chunks with a token but without text.
        self._wordless = 0
        self.alike: Alike | None = None
        self._lessons = 0 if keeps else _LESSONS

    def feed(self, instants: list[int], pieces: list[bytes]) -> None:
        """Read pieces of the body, in order, each with the instant (ns) of its arrival; no piece is empty."""
        for number, piece in enumerate(pieces):
            at = instants[number]
            if not self._is_stream:
                if self._document or self.sample.status != 200 or piece[0] not in _BEGINS_STREAM:
                    self._document.append(piece)
                    continue
                self._is_stream = True
            lines = piece.split(b"\n")
            if self.rest:
                lines[0] = self.rest + lines[0]
            self.rest = lines.pop()
            for line in lines:
                if line and line[:5] == b"data:" and not (self.alike and self.alike.event(at, line + b"\n\n")):
                    self._event(at, line[5:])

    def finish(self, at: int, *, cut: bool = False) -> Sample:
        """Return the sample, with `failure` and `detail` set.

        Args:
            at: The instant at which the response ended (ns).
            cut: Whether the connection closed before the response's end, or only its closing could mark the end.
        """
        sample = self.sample
        if self.rest and self.rest[:5] == b"data:":
            before = sample.failure, sample.detail
            self._event(at, self.rest[5:])
            if sample.failure == kinds.BAD_JSON:
                # Half an event is not a malformed one: the stream was cut.
                sample.failure, sample.detail = before
        if sample.chunks and (last := sample.chunks[-1]) > sample.last:
            sample.last = last
        if sample.status != 200 and (kind := of_status(sample.status)):
            sample.failure, sample.detail = kind, error_message(b"".join(self._document))
            return sample
        if self._is_stream:
            if not self._ended:
                self._fail(kinds.TRUNCATED, "the stream ended without [DONE]")
        elif self._document:
            self._whole(at, b"".join(self._document), cut=cut)
        else:
            self._fail(kinds.TRUNCATED if cut else kinds.NO_TOKEN, "the answer has no body")
        self._count()
        return sample

    def _end(self) -> None:
        self._ended = True
        self.alike = None

    def _event(self, at: int, data: bytes) -> None:
        if self._ended:
            return
        if data == b" [DONE]":
            self._end()
            return
        try:
            event: dict[str, Any] = orjson.loads(data)
            if event.get("error") or event.get("object") == "error":
                self._fail(kinds.ERROR_IN_STREAM, error_text(event))
                return
            if usage := event.get("usage"):
                self._usage = usage
            if choices := event.get("choices"):
                self._choices(at, choices, data)
        except orjson.JSONDecodeError:
            if data.startswith(b" [DONE]") or data.strip() == b"[DONE]":
                self._end()
            elif data.strip():
                self._fail(kinds.BAD_JSON, f"an event is not JSON: {data[:80].decode(errors='replace')}")
        except (AttributeError, TypeError):
            self._fail(kinds.BAD_JSON, f"an event is not a completion: {data[:80].decode(errors='replace')}")

    def _choices(self, at: int, choices: Sequence[dict[str, Any]], data: bytes) -> None:
        content = text = call = False
        for choice in choices:
            delta: dict[str, Any] | None = choice.get("delta")
            if self.texts is not None:
                self.texts.append(str((choice.get("text") if delta is None else delta.get("content")) or ""))
            if delta is None:
                content = content or bool(choice.get("text"))
            elif delta.get("content"):
                content = True
            elif delta.get("reasoning") or delta.get("reasoning_content"):
                text = True
            elif calls := delta.get("tool_calls"):
                call = call or _calls(calls)
        text = text or content
        if text or call:
            # Not from the first event, which may hold a role.
            chunks = self.sample.chunks
            if text and self._lessons and len(chunks) > self._wordless and (alike := Alike.learn(data, chunks.append)):
                self._lessons -= 1
                self.alike = alike
            self._token(at, content=content, text=text)
        else:
            # A token without a text, which `usage` counts: part of a character's bytes, or a special token.
            self.sample.last = at

    def _token(self, at: int, *, content: bool, text: bool) -> None:
        sample = self.sample
        if not sample.first:
            sample.first = at
        elif at == sample.first:
            sample.first_after = self.since.get(at, 0)
        if content and not sample.first_content:
            sample.first_content = at
        sample.last = at
        sample.chunks.append(at)
        self._wordless += not text

    def _whole(self, at: int, document: bytes, *, cut: bool) -> None:
        """Read a response that is one document: its tokens arrive when all of it has."""
        try:
            answer = orjson.loads(document)
            if answer.get("error") or answer.get("object") == "error":
                self._fail(kinds.ERROR_IN_BODY, error_text(answer))
                return
            self._usage = answer.get("usage")
            content = text = call = False
            for choice in answer.get("choices") or ():
                message = choice.get("message") or {"content": choice.get("text")}
                if self.texts is not None:
                    self.texts.append(str(message.get("content") or ""))
                content = content or bool(message.get("content"))
                text = text or bool(message.get("reasoning") or message.get("reasoning_content"))
                call = call or bool(message.get("tool_calls"))
        except (AttributeError, TypeError, orjson.JSONDecodeError):
            if cut:
                self._fail(kinds.TRUNCATED, "the connection closed inside the answer")
            else:
                self._fail(kinds.BAD_JSON, f"the response is not a completion: {error_message(document[:80])}")
        else:
            if content or text or call:
                self._token(at, content=content, text=content or text)
            elif answer.get("choices"):
                self.sample.last = at
            elif not self.sample.asked_tokens and any(isinstance(answer.get(name), list) for name in _COMPUTED):
                self.sample.last, self._computed = at, True

    def _count(self) -> None:
        """Take the counts of `usage`, and record contradictions among them."""
        sample, usage = self.sample, self._usage
        counts = usage if isinstance(usage, dict) else None
        if counts is not None:
            # (`_number`, inlined.)
            prompt, output = counts.get("prompt_tokens"), counts.get("completion_tokens")
            sample.prompt_tokens = prompt if type(prompt) is int else -1
            sample.output_tokens = output if type(output) is int else -1
            if details := counts.get("prompt_tokens_details"):
                sample.cached_tokens = _detail(details, "cached_tokens")
            if details := counts.get("completion_tokens_details"):
                sample.reasoning_tokens = _detail(details, "reasoning_tokens")
        if self._computed:
            total = -1 if counts is None else _number(counts.get("total_tokens"))
            sample.prompt_tokens = sample.prompt_tokens if sample.prompt_tokens > 0 else total
            sample.output_tokens = 0
            if sample.prompt_tokens < 1:
                self._fail(kinds.BAD_USAGE, short(f"usage counts no tokens: {usage}"))
            return
        # Tokens without a text count too, as the server generated them: only the arrival of the first is unknown.
        if not sample.chunks and (sample.output_tokens < 1 or not sample.last):
            self._fail(kinds.NO_TOKEN, "the answer is complete and holds no token")
        elif counts is None:
            self._fail(kinds.BAD_USAGE, "the answer has no usage")
        elif sample.prompt_tokens < 1 or sample.output_tokens < 1:
            self._fail(kinds.BAD_USAGE, short(f"usage counts no tokens: {usage}"))
        elif sample.output_tokens < (texts := len(sample.chunks) - self._wordless):
            self._fail(kinds.BAD_USAGE, f"usage counts {sample.output_tokens} tokens, and {texts} chunks held one")

    def _fail(self, kind: str, detail: str) -> None:
        if not self.sample.failure:
            self.sample.failure, self.sample.detail = kind, detail


def _calls(calls: Any) -> bool:
    """Whether a delta of tool calls has content: one with neither name nor arguments is empty."""
    functions = (call.get("function") or {} for call in calls)
    return any(function.get("name") or function.get("arguments") for function in functions)


def _number(value: Any) -> int:
    return value if type(value) is int else -1


def _detail(details: Any, key: str) -> int:
    return _number(details.get(key)) if isinstance(details, dict) else -1
