"""Poller of a server: repeats requests until it answers, within a deadline, with progress messages.

Owns which responses are retried, the deadline, and the error of a failed check. Time is passed in.
"""

import math
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from bezel.diagnosis.client import Server, error_text, json_object, usage_error
from bezel.rest import Credentials
from bezel_base.text.redaction import redact

if TYPE_CHECKING:
    import httpx

_Result = TypeVar("_Result")
_POLLS = (0.5, 1.0, 2.0, 5.0)
_REQUEST_SECONDS = 60.0
_END_SECONDS = 15.0
"""Between two questions whether the leases have ended."""
# Statuses of a server that is full or behind a starting instance: no failure yet.
_BUSY = frozenset({429, 502, 503, 504})
_CUT = (
    "check proxies on the way, which may cut or change responses, and that vLLM serves at this address; then run the "
    "same command again."
)
_LEASE_AGAIN = (
    "run `pulumi up` again: it says how the lease ended and what another one costs, and leases one with "
    "`bezel:lease.renew: true`, or within `bezel:lease.hours`."
)
_NOT_VLLM = "check the image and its arguments: another server than vLLM responds at this address."


@dataclass(frozen=True)
class NotJudged:
    """Result of a check that had nothing to judge, or must not judge: it did not pass, and the deploy continues."""

    why: str


class CheckFailedError(Exception):
    """A check failed.

    Attributes:
        check: Its name.
        what: The observed result.
        repair: The repair, where the check knows it; else the platform and the log must be read for it.
    """

    def __init__(self, check: str, what: str, repair: str | None = None) -> None:
        self.check = check
        self.what = redact(what)
        self.repair = repair
        super().__init__(f"{check}: {self.what}")


class Poller:
    """Poller of one server.

    Args:
        server: The server.
        model: The served id, for completions.
        deadline_seconds: Time limit for all requests together.
        show: Takes progress messages.
        clock: Monotonic clock in seconds.
        sleep: Waits that many seconds.
        end: Says why nothing can serve any more, "" while something may; asked while a check waits.
    """

    def __init__(
        self,
        server: Server,
        model: str,
        deadline_seconds: float,
        *,
        show: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        end: Callable[[], str] | None = None,
    ) -> None:
        self.model = model
        self.deadline_seconds = deadline_seconds
        self.show = show
        self._server = server
        self._clock = clock
        self._sleep = sleep
        self._end = end
        self._end_asked = -math.inf
        self._start = clock()

    def elapsed_seconds(self) -> float:
        """Seconds since the poller was made."""
        return self._clock() - self._start

    def until(self, check: str, what: str, attempt: Callable[[], _Result | str]) -> _Result:
        """Call `attempt` until it returns a result; a text is shown as the reason for waiting.

        Raises:
            CheckFailedError: The deadline came first, or nothing can serve any more.
        """
        began = self.elapsed_seconds()
        tries = 0
        while isinstance(result := attempt(), str):
            wait = _POLLS[min(tries, len(_POLLS) - 1)]
            tries += 1
            if over := self._over():
                raise CheckFailedError(check, f"{over}; no machine serves {what}: {result}", _LEASE_AGAIN)
            now = self.elapsed_seconds()
            if now + wait >= self.deadline_seconds:
                raise CheckFailedError(check, f"waited {now - began:.0f} s for {what}, the last state was: {result}")
            self.show(f"waiting for {what}: {redact(result)} ({now:.0f} s of {self.deadline_seconds:.0f} s)")
            self._sleep(wait)
        return result

    def _over(self) -> str:
        """Why nothing can serve any more, asked now and then."""
        if self._end is None or self.elapsed_seconds() - self._end_asked < _END_SECONDS:
            return ""
        self._end_asked = self.elapsed_seconds()
        return self._end()

    def send(
        self, method: str, path: str, *, json: Any = None, anonymous: bool = False, key: str = ""
    ) -> "httpx.Response | str":
        """The response, or the reason why there is none; a key stands for the identity token."""
        import httpx

        left = max(1.0, self.deadline_seconds - self.elapsed_seconds())
        try:
            return self._server.send(
                method, path, json=json, anonymous=anonymous, key=key, timeout_seconds=min(_REQUEST_SECONDS, left)
            )
        except httpx.HTTPError as error:
            return f"no response ({type(error).__name__})"

    def response(
        self,
        check: str,
        method: str,
        path: str,
        *,
        json: Any = None,
        anonymous: bool = False,
        statuses: frozenset[int] = frozenset({200}),
    ) -> "httpx.Response":
        """A response with one of these statuses, after waiting while the server is busy.

        Raises:
            CheckFailedError: It has another status, or never comes.
        """

        def attempt() -> "httpx.Response | str":
            response = self.send(method, path, json=json, anonymous=anonymous)
            if isinstance(response, str) or response.status_code in statuses:
                return response
            if response.status_code in _BUSY:
                return error_text(response)
            raise CheckFailedError(check, f"{method} {path} got {error_text(response)}")

        return self.until(check, f"{method} {path}", attempt)

    def json_response(self, check: str, method: str, path: str, *, json: Any = None) -> dict[str, Any]:
        """The JSON object of a 200 response, after waiting while the server is busy.

        Raises:
            CheckFailedError: It has another status, holds no JSON, or never comes.
        """
        parsed = json_object(self.response(check, method, path, json=json))
        if isinstance(parsed, str):
            raise CheckFailedError(check, f"{method} {path} got HTTP 200 with {parsed}", _CUT)
        return parsed

    def complete(self, check: str, prompt: str, max_tokens: int) -> str:
        """Request a completion, check that it is plausible, and return its size as text.

        Raises:
            CheckFailedError: It is not plausible, or never comes.
        """
        body = {"model": self.model, "prompt": prompt, "max_tokens": max_tokens, "temperature": 0}
        parsed = self.json_response(check, "POST", "/v1/completions", json=body)
        if "error" in parsed:
            # A 200 response may hold an error.
            raise CheckFailedError(check, f"HTTP 200 with an error inside: {parsed['error']}")
        choices = parsed.get("choices")
        first = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(first, dict) or not isinstance(first.get("text"), str):
            raise CheckFailedError(check, "the completion has no text", _NOT_VLLM)
        if error := usage_error(parsed.get("usage"), max_tokens=max_tokens):
            raise CheckFailedError(check, error, _NOT_VLLM)
        usage = parsed["usage"]
        return f"{usage['completion_tokens']} tokens after a prompt of {usage['prompt_tokens']}"


def server_of(props: Mapping[str, Any]) -> Server:
    """The server that a resource's properties describe."""
    credentials = None if props.get("public") else Credentials(props.get("impersonate"))
    return Server(props.get("url") or "", credentials, audience=props.get("audience") or "")


@contextmanager
def polling(props: Mapping[str, Any], show: Callable[[str], None], max_seconds: float = math.inf) -> Iterator[Poller]:
    """Poll the server that a resource's properties describe; `BEZEL_DEADLINE_SECONDS` may lower the deadline."""
    limit = float(os.environ.get("BEZEL_DEADLINE_SECONDS") or "inf")
    seconds = min(max_seconds, float(props["deadline_seconds"]), limit)
    with server_of(props) as server:
        yield Poller(server, props["served_model"], seconds, show=show, end=_end_of_leases(props))


def _end_of_leases(props: Mapping[str, Any]) -> Callable[[], str] | None:
    """What says that the leases behind a gateway have ended; None for a server without leases."""
    leases = props.get("leases")
    if not leases:
        return None
    from bezel_smoke.lease_end import end_of  # late: most servers have none

    return lambda: end_of(leases)
