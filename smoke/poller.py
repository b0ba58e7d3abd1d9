"""Poller of a server: repeats requests until it answers, within a deadline, with progress messages.

Owns which responses are retried, the deadline, and the error of a failed check. Time is passed in.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bezel.rest import redact
from smoke.client import Server, error_text, no_json, object_of, usage_fault

if TYPE_CHECKING:
    import httpx

_POLLS = (0.5, 1.0, 2.0, 5.0)
_REQUEST_SECONDS = 60.0
# Statuses of a server that is full or behind a starting instance: no failure yet.
_BUSY = frozenset({429, 502, 503, 504})
_CUT = (
    "The answer was cut or changed on its way, or something else than vLLM answers at this address: look at proxies on "
    "the way, then run the same command again."
)
_NOT_VLLM = "Something else than vLLM answers at this address: check the image and its arguments."


@dataclass(frozen=True)
class NotJudged:
    """Result of a check that had nothing to judge, or must not judge: it did not pass, and the deploy continues."""

    why: str


class CheckFailedError(Exception):
    """A check failed.

    Attributes:
        check: Its name.
        what: The observed result.
        repair: The repair, where the check knows it; "" where ``what`` holds it; None where the platform and the log
            must be read for it.
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
    """

    def __init__(
        self,
        server: Server,
        model: str,
        deadline_seconds: float,
        *,
        show: Callable[[str], None],
        clock: Callable[[], float],
        sleep: Callable[[float], None],
    ) -> None:
        self.model = model
        self.deadline_seconds = deadline_seconds
        self.show = show
        self._server = server
        self._clock = clock
        self._sleep = sleep
        self._start = clock()

    def elapsed(self) -> float:
        """Seconds since the poller was made."""
        return self._clock() - self._start

    def until(self, check: str, what: str, attempt: Callable[[], str | None]) -> None:
        """Call ``attempt`` until it returns None; any other result is shown as the reason for waiting.

        Raises:
            CheckFailedError: The deadline came first.
        """
        began = self.elapsed()
        tries = 0
        while (missing := attempt()) is not None:
            wait = _POLLS[min(tries, len(_POLLS) - 1)]
            tries += 1
            now = self.elapsed()
            if now + wait >= self.deadline_seconds:
                raise CheckFailedError(check, f"waited {now - began:.0f} s for {what}, the last state was: {missing}")
            self.show(f"waiting for {what}: {redact(missing)} ({now:.0f} s of {self.deadline_seconds:.0f} s)")
            self._sleep(wait)

    def ask(self, method: str, path: str, *, json: Any = None, anonymous: bool = False) -> "httpx.Response | str":
        """The response, or the reason why there is none."""
        import httpx

        left = max(1.0, self.deadline_seconds - self.elapsed())
        try:
            return self._server.ask(
                method, path, json=json, anonymous=anonymous, timeout_seconds=min(_REQUEST_SECONDS, left)
            )
        except httpx.HTTPError as error:
            return f"no answer ({type(error).__name__})"

    def answered(
        self,
        check: str,
        method: str,
        path: str,
        *,
        json: Any = None,
        anonymous: bool = False,
        wanted: frozenset[int] = frozenset({200}),
    ) -> "httpx.Response":
        """A response with a status in ``wanted``, after waiting while the server is busy.

        Raises:
            CheckFailedError: It has another status, or never comes.
        """
        answers: list[httpx.Response] = []

        def attempt() -> str | None:
            answer = self.ask(method, path, json=json, anonymous=anonymous)
            if isinstance(answer, str):
                return answer
            if answer.status_code in wanted:
                answers.append(answer)
                return None
            if answer.status_code in _BUSY:
                return error_text(answer)
            raise CheckFailedError(check, f"{method} {path} got {error_text(answer)}")

        self.until(check, f"{method} {path}", attempt)
        return answers[-1]

    def answered_json(self, check: str, method: str, path: str, *, json: Any = None) -> dict[str, Any]:
        """The JSON object of a 200 response, after waiting while the server is busy.

        Raises:
            CheckFailedError: It has another status, holds no JSON, or never comes.
        """
        answer = self.answered(check, method, path, json=json)
        if found := no_json(answer):
            raise CheckFailedError(check, f"{method} {path} got HTTP 200 with {found}", _CUT)
        return object_of(answer)

    def complete(self, check: str, prompt: str, asked: int) -> str:
        """Request a completion, check that it is plausible, and return its size as text.

        Raises:
            CheckFailedError: It is not plausible, or never comes.
        """
        body = {"model": self.model, "prompt": prompt, "max_tokens": asked, "temperature": 0}
        parsed = self.answered_json(check, "POST", "/v1/completions", json=body)
        if "error" in parsed:
            # A 200 response may hold an error.
            raise CheckFailedError(check, f"HTTP 200 with an error inside: {parsed['error']}")
        choices = parsed.get("choices")
        first = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(first, dict) or not isinstance(first.get("text"), str):
            raise CheckFailedError(check, "the completion has no text", _NOT_VLLM)
        fault = usage_fault(parsed.get("usage"), asked=asked)
        if fault:
            raise CheckFailedError(check, fault, _NOT_VLLM)
        usage = parsed["usage"]
        return f"{usage['completion_tokens']} tokens after a prompt of {usage['prompt_tokens']}"
