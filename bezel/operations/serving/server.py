"""Requests of operations to a deployed server: with the identity of its smoke check, bounded in bytes and in time.

Owns one request and its answer, whole and cut where it is too long, or line by line. Leaves out retries, and what the
answers mean.
Nothing here decides whether a request may start an instance: see bezel.operations.service_use.instances.
"""

from __future__ import annotations

import json
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import httpx

from bezel.diagnosis.client import Server
from bezel.operations.address.access import reachable_access
from bezel.operations.redaction import clean_text
from bezel.rest import Credentials
from bezel.rest.transport import new_client, reason_of
from bezel_base.errors import Problem, UserError
from bezel_base.front.refusals import Refusal, any_refusal, page_words
from bezel_base.text.shell import shell_word

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bezel.operations.context import Context
    from bezel.operations.deployment.deployment import Deployment

_MESSAGE = 500


class ServerError(UserError):
    """The server could not be asked, or refused."""


@dataclass(frozen=True)
class Reply:
    """Answer of a server.

    Attributes:
        status: The HTTP status.
        text: The body; without its last, incomplete line where it was cut.
        is_cut: Whether the body was longer than it may be.
    """

    status: int
    text: str
    is_cut: bool = False

    def json(self) -> dict[str, Any]:
        """The body's JSON object; {} for anything else."""
        try:
            parsed = json.loads(self.text)
        except (ValueError, RecursionError):
            return {}
        return parsed if isinstance(parsed, dict) else {}


class DeployedServer:
    """The endpoint of a stack. A context manager.

    Attributes:
        refusals: Status, refusal and message of each answer that was no 200.
        notes: Why it is not asked at the stack's address; () where it is.

    Args:
        context: The context of the operation.
        deployment: The deployed stack.
        path: Path below its address that is asked, without a slash at its end.

    Raises:
        UserError: The stack has no address.
    """

    def __init__(self, context: Context, deployment: Deployment, path: str = "") -> None:
        access = reachable_access(context, deployment)
        credentials = None if access.public else Credentials(access.impersonate, environ=context.environ)
        self.url = f"{access.url}{path}"
        self.refusals: list[tuple[int, Refusal, str]] = []
        self.notes = (access.note,) if access.note else ()
        self._stack = deployment.stack
        self._identity = Server(access.url, credentials, audience=access.audience)
        self._client = new_client(30.0) if access.connect_to is None else access.connect_to.client(30.0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()
        self._identity.__exit__()

    def ask(
        self, path: str, body: dict[str, Any] | None = None, *, max_bytes: int, seconds: float, fresh: bool = False
    ) -> Reply:
        """Send one request, a POST where it has a body, and again with a new token if the token was refused.

        Args:
            path: Path below the server's address.
            body: JSON to send.
            max_bytes: Size at which the answer is cut.
            seconds: Time limit of the whole answer.
            fresh: Whether to connect anew: a platform may route each connection to another instance.

        Raises:
            ServerError: No answer came in time.
            RestError: There is no identity token for it.
        """
        extra = {"Connection": "close"} if fresh else {}
        reply = self._once(path, body, max_bytes, seconds, {**self._identity.headers(), **extra})
        if reply.status == 401:
            reply = self._once(path, body, max_bytes, seconds, {**self._identity.headers(fresh=True), **extra})
        return reply

    def lines(self, path: str, body: dict[str, Any], *, seconds: float) -> Iterator[str]:
        """Lines of the answer to a POST as they arrive. A connection that breaks afterwards ends them.

        Args:
            path: Path below the server's address.
            body: JSON to send.
            seconds: Time limit of the whole answer.

        Raises:
            ServerError: The server refused, or did not answer.
            RestError: There is no identity token for it.
        """
        for fresh in (False, True):
            with self._stream(path, body, seconds, self._identity.headers(fresh=fresh)) as response:
                if response.status_code == 401 and not fresh:
                    continue
                if response.status_code != 200:
                    raise self.refusal_error(path, Reply(response.status_code, _begin(response)))
                yield from self._lines(response, time.monotonic() + seconds)
                return

    def refusal_error(self, path: str, reply: Reply) -> ServerError:
        """The error of an answer that is not a 200: the server's own, or that of what stands in front of it."""
        refusal = any_refusal(reply.status, reply.text, self._stack)
        message = clean_text(error_message(reply), _MESSAGE).rstrip(".")
        self.refusals.append((reply.status, refusal, message))
        consequence = {
            "platform": f"{refusal.cause} (HTTP {reply.status}, answered by the platform, not by the server).",
            "gateway": f"{refusal.cause} (HTTP {reply.status}, answered by the gateway: {message}).",
            "server": f"{refusal.cause}: HTTP {reply.status}" + (f": {message}." if message else "."),
        }[refusal.by]
        return ServerError(Problem(f"{self.url}{path}", None, consequence, refusal.advice))

    def _once(
        self, path: str, body: dict[str, Any] | None, max_bytes: int, seconds: float, headers: dict[str, str]
    ) -> Reply:
        end, data = time.monotonic() + seconds, bytearray()
        with self._stream(path, body, seconds, headers) as response:
            for chunk in response.iter_bytes():
                data += chunk
                if len(data) > max_bytes:
                    break
                if time.monotonic() > end:
                    raise httpx.ReadTimeout(f"the answer took longer than {seconds:g} s")
        is_cut = len(data) > max_bytes
        text = bytes(data[:max_bytes]).decode("utf-8", "replace")
        return Reply(response.status_code, text.rpartition("\n")[0] if is_cut else text, is_cut)

    @contextmanager
    def _stream(
        self, path: str, body: dict[str, Any] | None, seconds: float, headers: dict[str, str]
    ) -> Iterator[httpx.Response]:
        """A response whose body is not read yet; failures of the connection are the server's."""
        try:
            with self._client.stream(
                "GET" if body is None else "POST",
                self.url + path,
                json=body,
                headers=headers,
                timeout=httpx.Timeout(seconds, connect=min(10.0, seconds)),
            ) as response:
                yield response
        except httpx.HTTPError as error:
            consequence = f"it did not answer: {reason_of(error)}."
            repair = f"`bezel advise {shell_word(self._stack)}` names what the platform and its log show."
            raise ServerError(Problem(f"{self.url}{path}", None, consequence, repair)) from None

    def _lines(self, response: httpx.Response, end: float) -> Iterator[str]:
        begun = False
        try:
            for line in response.iter_lines():
                if time.monotonic() > end:
                    raise httpx.ReadTimeout("the answer took too long")
                begun = begun or bool(line)
                yield line
        except httpx.HTTPError:
            if not begun:
                raise


def _begin(response: httpx.Response) -> str:
    """The first bytes of a body, as text."""
    data = b""
    for chunk in response.iter_bytes():
        data += chunk
        if len(data) > 4 * _MESSAGE:
            break
    return data.decode("utf-8", "replace")


def error_message(reply: Reply) -> str:
    """The message of an error in vLLM's forms, or the begin of any other body, without markup."""
    parsed = reply.json()
    error = parsed.get("error", parsed.get("detail"))
    text = error.get("message") if isinstance(error, dict) else error
    return str(text or "" if parsed else page_words(reply.text[: 4 * _MESSAGE]))
