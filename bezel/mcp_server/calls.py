"""Calls of tools: arguments are checked, the operation runs in a thread with progress, its result is bounded.

Every failure that the client can repair is a result marked as an error, as the protocol asks, with a code and the
problems; an unknown tool is an error of the protocol. No traceback leaves the server.
"""

import json
import logging
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import anyio
import anyio.from_thread
import anyio.to_thread
from mcp_types import CallToolResult, TextContent
from pydantic import ValidationError

from bezel.errors import UserError, shown
from bezel.mcp_server.scope import OutOfScopeError, Scope
from bezel.operations.context import Context
from bezel.operations.registry import Operation
from bezel.operations.results import Arguments, Result

log = logging.getLogger(__name__)
MAX_TEXT = 20_000
"""Characters of the text of a result."""
MAX_STRUCTURED = 200_000
"""Characters of the structured content of a result as JSON."""
MAX_ARGUMENTS = 100_000
# Codes of failures beside those of an error's exit code.
_CODES = {1: "failed", 2: "invalid_arguments", 3: "refused", 4: "drifted", 5: "locked"}

Progress = Callable[[str], None]


async def run(
    operation: Operation, given: Mapping[str, Any], scope: Scope, folder: Path, report: Callable[[float, str], Any]
) -> CallToolResult:
    """Run an operation; return its result, or its failure as a result.

    Args:
        operation: The operation.
        given: Arguments as the client sent them.
        scope: What the server serves.
        folder: Folder of the Pulumi project.
        report: Coroutine function that is called with the number and the text of each line of progress.
    """
    try:
        arguments = checked(operation, scope, given)
    except _InvalidError as error:
        return failure("invalid_arguments", error.text, error.problems)
    lines = 0

    def show(line: str) -> None:
        nonlocal lines
        lines += 1
        anyio.from_thread.run(report, float(lines), line)

    def called() -> Result:
        with Context(folder, os.environ, show=show) as context:
            return operation.load()(context, arguments)

    try:
        return success(await anyio.to_thread.run_sync(called))
    except UserError as error:
        return failure(_CODES.get(error.exit_code, "failed"), str(error), error.as_json()["problems"])
    except Exception:
        # The client gets no traceback: it may hold what no message may show.
        log.exception("%s failed", operation.name)
        return failure("internal", "the operation failed by a fault of bezel; the server's log has the traceback.", [])


class _InvalidError(Exception):
    def __init__(self, text: str, problems: object) -> None:
        super().__init__(text)
        self.text, self.problems = text, problems


def checked(operation: Operation, scope: Scope, given: Mapping[str, Any]) -> Arguments:
    """The arguments of a call as the operation's model."""
    if len(json.dumps(given, default=str)) > MAX_ARGUMENTS:
        raise _InvalidError(f"the arguments are longer than {MAX_ARGUMENTS} characters.", [])
    try:
        return operation.arguments().model_validate(scope.arguments(operation, given))
    except OutOfScopeError as error:
        raise _InvalidError(str(error), []) from None
    except ValidationError as error:
        problems = [
            {"key": ".".join(map(str, each["loc"])), "value": shown(each["input"]), "consequence": each["msg"]}
            for each in error.errors(include_url=False, include_context=False)
        ]
        text = "\n".join(f"{problem['key']} = {problem['value']}: {problem['consequence']}" for problem in problems)
        raise _InvalidError(text, problems) from None


def success(result: Result) -> CallToolResult:
    """A result with its text and its structured content."""
    structured = result.model_dump(mode="json")
    length = len(json.dumps(structured, ensure_ascii=False))
    if length > MAX_STRUCTURED:
        text = f"the result has {length} characters, {MAX_STRUCTURED} may be sent: narrow the call by its arguments."
        return failure("too_large", text, [])
    return CallToolResult(content=[TextContent(text=_bounded(result.text()))], structured_content=structured)


def failure(code: str, text: str, problems: object) -> CallToolResult:
    """A failure that the client is to see."""
    error = {"error": {"code": code, "problems": problems}}
    content = [TextContent(text=_bounded(f"{code}: {text}"))]
    return CallToolResult(content=content, structured_content=error, is_error=True)


def _bounded(text: str) -> str:
    if len(text) <= MAX_TEXT:
        return text
    return f"{text[:MAX_TEXT]}\n[{len(text) - MAX_TEXT} further characters: see the structured content]\n"
