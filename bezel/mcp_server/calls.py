"""Calls of tools: arguments are checked, the operation runs in a thread with progress, its result is checked.

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
from mcp_types import CallToolResult
from pydantic import ValidationError

from bezel.engine.outcomes import Exit
from bezel.mcp_server.answers import DETAIL, DETAILS, SHORT, Detail, failure, success
from bezel.operations.arguments.model import Arguments
from bezel.operations.context import Context
from bezel.operations.results import Result
from bezel_base.ending_signals import INTERRUPTED
from bezel_base.errors import Problem, UserError

log = logging.getLogger(__name__)
MAX_ARGUMENTS = 100_000
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
        result: Model of its result.
        narrowing: Those of its arguments that make its answer smaller.
    """

    name: str
    model: Callable[[], type[Arguments]]
    function: Callable[[Context, Any], Result]
    raw_arguments: Mapping[str, Any]
    may_fail: bool = False
    check: Callable[[Context, Any], None] | None = None
    result: Callable[[], type[Result]] = lambda: Result
    narrowing: tuple[str, ...] = ()


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
        arguments, detail = check_arguments(call)
    except _InvalidError as error:
        return failure("invalid_arguments", error.text, error.problems)
    cancelled, loop = threading.Event(), anyio.lowlevel.current_token()
    lines = 0

    async def send(line: str) -> None:
        nonlocal lines
        lines += 1  # here, and not in a thread: progress never falls, whichever of several threads is first
        await report(float(lines), line)

    def show(line: str) -> None:
        try:
            anyio.from_thread.run(send, line, token=loop)  # an engine's lines come from its own thread
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
        answer = await _result_of(call, call_function, detail)
        tasks.cancel_scope.cancel()
    return answer


async def _result_of(call: Call, called: Callable[[], Result], detail: Detail) -> CallToolResult:
    try:
        result = await anyio.to_thread.run_sync(called)
        _check_model(call, result)
        if call.may_fail and result.exit_code:
            outcome = result.model_dump(mode="json")
            return failure(CODES.get(result.exit_code, "failed"), result.text(), [], outcome, detail)
        return success(result, detail, call.narrowing)
    except UserError as error:
        return failure(CODES.get(error.exit_code, "failed"), str(error), error.as_json()["problems"], detail=detail)
    except Exception:
        # The client gets no traceback: it may hold what no message may show.
        log.exception("%s failed", call.name)
        return failure("internal", "the operation failed by a fault of bezel; the server's log has the traceback.", [])


def _check_model(call: Call, result: Result) -> None:
    if not isinstance(result, call.result()):  # a model checks its fields where it is made
        raise TypeError(f"{call.name} answered {type(result).__name__}, which is not its result")


class _InvalidError(Exception):
    def __init__(self, text: str, problems: object) -> None:
        super().__init__(text)
        self.text, self.problems = text, problems


def check_arguments(call: Call) -> tuple[Arguments, Detail]:
    """The arguments of a call as its model, and the form of its answer."""
    text = json.dumps(call.raw_arguments, default=str, ensure_ascii=False)
    if len(text) > MAX_ARGUMENTS:
        raise _InvalidError(f"the arguments are longer than {MAX_ARGUMENTS} characters.", [])
    try:
        text.encode()
    except UnicodeEncodeError:
        # JSON can escape half of a pair, which no answer could repeat.
        raise _InvalidError("expected Unicode text, got half of a surrogate pair.", []) from None
    model, problems = call.model(), []
    of_operation = {name: value for name, value in call.raw_arguments.items() if name != DETAIL}
    detail = call.raw_arguments.get(DETAIL, SHORT)
    if detail not in DETAILS:
        problems.append(Problem(DETAIL, detail, "it is not one of the known values.", f"choose {', '.join(DETAILS)}."))
    try:
        arguments = model.model_validate(of_operation)
    except ValidationError as error:
        from bezel.operations.arguments.errors import argument_problems  # imported with the first mistake

        problems += argument_problems(error, model)
    if problems:
        refusal = UserError(*problems)
        raise _InvalidError(str(refusal), refusal.as_json()["problems"])
    return arguments, detail
