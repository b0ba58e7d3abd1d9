"""Calls of tools: arguments are checked, the operation runs in a thread with progress, its result is bounded.

Every failure that the client can repair is a result marked as an error, as the protocol asks, with a code and the
problems; an unknown tool is an error of the protocol. No traceback leaves the server.
"""

import asyncio
import json
import logging
import os
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import anyio.from_thread
import anyio.lowlevel
import anyio.to_thread
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, TextContent
from pydantic import ValidationError

from bezel.engine.outcomes import Exit
from bezel.operations.arguments.model import Arguments
from bezel.operations.context import Context
from bezel.operations.results import Result
from bezel_base.ending_signals import INTERRUPTED
from bezel_base.errors import UserError
from bezel_base.text.printable import encodable, encodable_values
from bezel_base.text.redaction import redact_forms, redact_forms_of_values

log = logging.getLogger(__name__)
MAX_TEXT = 20_000
"""Characters of the text of a result."""
MAX_STRUCTURED = 200_000
"""Characters of the structured content of a result as JSON."""
MAX_ARGUMENTS = 100_000
ERROR = "bezel/error"
"""Key of a failure's metadata: its `code`, its `problems`, and the `outcome` of a change that failed."""
CODES: Mapping[int, str] = {
    Exit.FAILED: "failed",
    Exit.USAGE: "invalid_arguments",
    Exit.REFUSED: "refused",
    Exit.LOCKED: "locked",
    INTERRUPTED: "cancelled",
}
"""Exit code that an error or an outcome of an operation has -> code of the failure."""

# What sending to a client raises that is gone, or has cancelled the call.
_NOT_SENT = (
    RuntimeError,
    anyio.ClosedResourceError,
    anyio.BrokenResourceError,
    MCPError,
    CancelledError,
    asyncio.CancelledError,
)


@dataclass(frozen=True)
class Call:
    """A call of a tool.

    Attributes:
        name: Name of the tool.
        model: Model of its arguments.
        function: What it runs, in a thread.
        raw_arguments: Arguments as the client sent them, within the server's scope.
        may_fail: Whether a result with another exit code than 0 is a failure; else it is an answer, e.g. "unhealthy".
        check: Called with the context and the arguments before it runs, in the same thread: raises where they name
            what this server does not serve.
    """

    name: str
    model: Callable[[], type[Arguments]]
    function: Callable[[Context, Any], Result]
    raw_arguments: Mapping[str, Any]
    may_fail: bool = False
    check: Callable[[Context, Any], None] | None = None


async def run(
    call: Call, folder: Path, report: Callable[[float, str], Any], stacks: tuple[str, ...] = ()
) -> CallToolResult:
    """Run a call; return its result, or its failure as a result.

    A cancelled call sets `Context.cancelled` and is awaited: what it has begun in the cloud ends in order.

    Args:
        call: The call.
        folder: Folder of the Pulumi project.
        report: Coroutine function that is called with the number and the text of each line of progress.
        stacks: The only stacks that the call may see; empty for all.
    """
    try:
        arguments = check_arguments(call)
    except _InvalidError as error:
        return failure("invalid_arguments", error.text, error.problems)
    cancelled, loop = threading.Event(), anyio.lowlevel.current_token()
    lines = 0

    def show(line: str) -> None:
        nonlocal lines
        lines += 1
        try:
            anyio.from_thread.run(report, float(lines), line, token=loop)  # an engine's lines come from its own thread
        except _NOT_SENT as error:
            # What runs must not fail by that.
            log.info("a line of progress was not sent: %s", type(error).__name__)

    def call_function() -> Result:
        with Context(folder, os.environ, show=show, cancelled=cancelled, scope=stacks) as context:
            if call.check is not None:
                call.check(context, arguments)
            return call.function(context, arguments)

    async def note_cancellation() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            cancelled.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(note_cancellation)
        answer = await _result_of(call, call_function)
        tasks.cancel_scope.cancel()
    return answer


async def _result_of(call: Call, called: Callable[[], Result]) -> CallToolResult:
    try:
        result = await anyio.to_thread.run_sync(called)
        if call.may_fail and result.exit_code:
            return failure(CODES.get(result.exit_code, "failed"), result.text(), [], result.model_dump(mode="json"))
        return success(result)
    except UserError as error:
        return failure(CODES.get(error.exit_code, "failed"), str(error), error.as_json()["problems"])
    except Exception:
        # The client gets no traceback: it may hold what no message may show.
        log.exception("%s failed", call.name)
        return failure("internal", "the operation failed by a fault of bezel; the server's log has the traceback.", [])


class _InvalidError(Exception):
    def __init__(self, text: str, problems: object) -> None:
        super().__init__(text)
        self.text, self.problems = text, problems


def check_arguments(call: Call) -> Arguments:
    """The arguments of a call as its model."""
    text = json.dumps(call.raw_arguments, default=str, ensure_ascii=False)
    if len(text) > MAX_ARGUMENTS:
        raise _InvalidError(f"the arguments are longer than {MAX_ARGUMENTS} characters.", [])
    try:
        text.encode()
    except UnicodeEncodeError:
        # JSON can escape half of a pair, which no answer could repeat.
        raise _InvalidError("expected Unicode text, got half of a surrogate pair.", []) from None
    model = call.model()
    try:
        return model.model_validate(call.raw_arguments)
    except ValidationError as error:
        from bezel.operations.arguments.errors import argument_problems  # imported with the first mistake

        refusal = UserError(*argument_problems(error, model))
        raise _InvalidError(str(refusal), refusal.as_json()["problems"]) from None


def success(result: Result) -> CallToolResult:
    """A result with its text and its structured content."""
    structured = redact_forms_of_values(encodable_values(result.model_dump(mode="json")))
    length = len(json.dumps(structured, ensure_ascii=False))
    if length > MAX_STRUCTURED:
        text = f"the result has {length} characters, {MAX_STRUCTURED} may be sent: narrow the call by its arguments."
        return failure("too_large", text, [])
    return CallToolResult(content=[TextContent(text=_shorten(result.text()))], structured_content=structured)


def failure(code: str, text: str, problems: object, outcome: object = None) -> CallToolResult:
    """A failure that the client is to see, with what was done in spite of it.

    The code and the problems are metadata: clients compare structured content with the tool's schema of a result, that
    of a failure too.
    """
    error = {"code": code, "problems": problems} | ({"outcome": outcome} if outcome else {})
    error = redact_forms_of_values(encodable_values(error))
    content = [TextContent(text=_shorten(f"{code}: {text}"))]
    return CallToolResult(content=content, is_error=True, _meta={ERROR: error})


def _shorten(text: str) -> str:
    text = redact_forms(encodable(text))
    if len(text) <= MAX_TEXT:
        return text
    return f"{text[:MAX_TEXT]}\n[{len(text) - MAX_TEXT} further characters: see the structured content]\n"
