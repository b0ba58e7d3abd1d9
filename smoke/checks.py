"""The six checks of a deployed server, in order: each needs what the one before it proved.

Owns what "healthy" means. Time is passed in; requests go through ``smoke.server`` and ``smoke.platform``.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bezel.rest import CredentialsError, GoogleClient, RestError, redact
from smoke.platform import ServiceState, service_state
from smoke.server import Server, counters, error_text, object_of, usage_fault

# A grant of roles/run.invoker is in force within about two minutes.
_GRANT_SECONDS = 120.0
_ASKED_TOKENS = 16
_DRAFT_TOKENS = 64
_DRAFT_REQUESTS = 4
_POLLS = (0.5, 1.0, 2.0, 5.0)
_DRAFTS = "vllm:spec_decode_"
_PROMPTS = (
    "The three primary colours are red, yellow and",
    "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18,",
    "def add(a, b):\n    return a + b\n\ndef subtract(a, b):\n",
    "Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday. January, February, March,",
)


class CheckFailedError(Exception):
    """A check does not hold.

    Attributes:
        check: Its name.
        what: What was found instead.
        repair: What mends it, where the check knows; "" where ``what`` says it; None where the platform and the log
            must be asked.
    """

    def __init__(self, check: str, what: str, repair: str | None = None) -> None:
        self.check = check
        self.what = redact(what)
        self.repair = repair
        super().__init__(f"{check}: {self.what}")


@dataclass(frozen=True)
class Settings:
    """What is checked, as plain values.

    Attributes:
        service: ``projects/P/locations/L/services/S``.
        served_model: The id that /v1/models must name.
        public: Whether anybody may call the service.
        speculative: Whether drafts must be accepted.
        min_draft_acceptance: The least share of draft tokens accepted; more than 0 in any case.
        deadline_seconds: For all checks together.
    """

    service: str
    served_model: str
    public: bool = False
    speculative: bool = False
    min_draft_acceptance: float = 0.0
    deadline_seconds: float = 900.0


class Checks:
    """One run of the checks.

    Args:
        settings: What is checked.
        google: Reads the service's conditions.
        server: The service itself.
        show: Takes each message about what is waited for.
        clock: Seconds that only go forward.
        sleep: Waits that many seconds.
    """

    def __init__(
        self,
        settings: Settings,
        google: GoogleClient,
        server: Server,
        *,
        show: Callable[[str], None],
        clock: Callable[[], float],
        sleep: Callable[[float], None],
    ) -> None:
        self._settings = settings
        self._google = google
        self._server = server
        self._show = show
        self._clock = clock
        self._sleep = sleep
        self._start = clock()
        self._end = self._start + settings.deadline_seconds

    def run(self) -> dict[str, Any]:
        """Runs all checks and returns the verdict: ``ok``, ``seconds``, and each check's ``ok, detail, seconds``.

        Raises:
            CheckFailedError: One does not hold; those after it were not tried.
        """
        done: dict[str, Any] = {}
        checks: dict[str, Callable[[], str]] = {
            "conditions": self._conditions,
            "health": self._health,
            "models": self._models,
            "completion": self._completion,
            "refusal": self._refusal,
        }
        if self._settings.speculative:
            checks["speculation"] = self._speculation
        for name, check in checks.items():
            began = self._clock()
            self._show(f"checking {name}")
            try:
                detail = check()
            except CredentialsError as error:
                # The text holds its own repair.
                raise CheckFailedError(name, str(error), "") from None
            done[name] = {"ok": True, "detail": detail, "seconds": round(self._clock() - began, 3)}
        return {"ok": True, "seconds": round(self._clock() - self._start, 3), "checks": done}

    def _conditions(self) -> str:
        def attempt() -> str | None:
            try:
                state = service_state(self._google, self._settings.service)
            except CredentialsError:
                raise
            except RestError as error:
                raise CheckFailedError("conditions", f"the service cannot be read: {error}") from None
            if state.ready:
                found.append(state)
                return None
            if state.settled:
                raise CheckFailedError("conditions", _why_not_ready(state))
            return str(state.terminal) if state.current else "it has not taken up the last change yet"

        found: list[ServiceState] = []
        self._until("conditions", "the platform to report the newest revision ready", attempt)
        return f"revision {found[-1].ready_revision} is ready"

    def _health(self) -> str:
        refused_since: list[float] = []

        def attempt() -> str | None:
            answer = self._ask("GET", "/health")
            if isinstance(answer, str):
                return answer
            if answer.status_code == 200:
                return None
            if answer.status_code in {401, 403}:
                refused_since.append(self._clock())
                if self._clock() - refused_since[0] >= min(_GRANT_SECONDS, self._settings.deadline_seconds / 2):
                    raise CheckFailedError("health", f"the caller is refused ({error_text(answer)})", _INVOKER)
                return f"{error_text(answer)} (a new grant takes up to two minutes)"
            return error_text(answer)

        self._until("health", "/health to answer 200", attempt)
        return "/health answers 200"

    def _models(self) -> str:
        answer = self._answered("models", "GET", "/v1/models")
        listed = object_of(answer).get("data")
        served = [str(one.get("id")) for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
        wanted = self._settings.served_model
        if wanted not in served:
            raise CheckFailedError(
                "models",
                f"/v1/models names {served or 'nothing'}, not {wanted!r}",
                "Traffic goes to another revision, or --served-model-name says otherwise: compare `pulumi stack output "
                "arguments` with the service's newest revision.",
            )
        return f"{wanted} is served"

    def _completion(self) -> str:
        return self._complete("completion", _PROMPTS[0], _ASKED_TOKENS)

    def _complete(self, check: str, prompt: str, asked: int) -> str:
        body = {"model": self._settings.served_model, "prompt": prompt, "max_tokens": asked, "temperature": 0}
        answer = self._answered(check, "POST", "/v1/completions", json=body)
        parsed = object_of(answer)
        if "error" in parsed:
            # An answer may begin well and fail inside.
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

    def _refusal(self) -> str:
        if self._settings.public:
            return "not asked: access.public is set"
        body = {"model": self._settings.served_model, "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1}
        # vLLM's own --api-key leaves /invocations open: only the platform's door closes both.
        for method, path, sent in (("GET", "/v1/models", None), ("POST", "/invocations", body)):
            answer = self._ask(method, path, json=sent, anonymous=True)
            if isinstance(answer, str):
                raise CheckFailedError("refusal", f"{method} {path} without a token: {answer}")
            if answer.status_code not in {401, 403}:
                raise CheckFailedError(
                    "refusal",
                    f"{method} {path} without a token got HTTP {answer.status_code}: anybody can use this service",
                    "Remove allUsers and allAuthenticatedUsers from its roles/run.invoker and leave the invoker check "
                    "on, or set access.public: true if that is meant.",
                )
        return "a caller without a token is refused, also on /invocations"

    def _speculation(self) -> str:
        for _ in range(3):
            before = self._drafts()
            for prompt in _PROMPTS[:_DRAFT_REQUESTS]:
                self._complete("speculation", prompt, _DRAFT_TOKENS)
            after = self._drafts()
            drafted = after["draft_tokens"] - before["draft_tokens"]
            accepted = after["accepted_tokens"] - before["accepted_tokens"]
            # Another instance may have answered: its counters are its own.
            if drafted > 0 and accepted >= 0:
                return self._judged(accepted / drafted, int(drafted))
        raise CheckFailedError(
            "speculation",
            "no draft was counted during the completions",
            "Look for speculative_config in the container's log: it must name a method and a draft model.",
        )

    def _judged(self, share: float, drafted: int) -> str:
        least = self._settings.min_draft_acceptance
        if share <= 0 or share < least:
            raise CheckFailedError(
                "speculation",
                f"{share:.1%} of {drafted} draft tokens were accepted, at least {max(least, 0.001):.1%} is wanted",
                "The draft model does not fit the model: set vllm.spec-model to its own assistant, lower "
                "vllm.spec-tokens, or remove speculation, which costs time as it is.",
            )
        return f"{share:.1%} of {drafted} draft tokens were accepted"

    def _drafts(self) -> dict[str, float]:
        answer = self._answered("speculation", "GET", "/metrics")
        sums = counters(answer.text, _DRAFTS)
        names = {key: f"{_DRAFTS}num_{key}_total" for key in ("draft_tokens", "accepted_tokens")}
        missing = [name for name in names.values() if name not in sums]
        if missing:
            raise CheckFailedError(
                "speculation",
                f"/metrics has no {missing[0]}: the server runs without speculative decoding",
                "Set vllm.spec-method and vllm.spec-model (and no vllm.disable-log-stats), or leave speculation out.",
            )
        return {key: sums[name] for key, name in names.items()}

    def _answered(self, check: str, method: str, path: str, json: Any = None) -> Any:
        """A 200, after waiting while the server is busy; anything else fails the check."""
        answers: list[Any] = []

        def attempt() -> str | None:
            answer = self._ask(method, path, json=json)
            if isinstance(answer, str):
                return answer
            if answer.status_code in {429, 502, 503, 504}:
                return error_text(answer)
            if answer.status_code != 200:
                raise CheckFailedError(check, f"{method} {path} got {error_text(answer)}")
            answers.append(answer)
            return None

        self._until(check, f"{method} {path}", attempt)
        return answers[-1]

    def _ask(self, method: str, path: str, **options: Any) -> Any:
        """The answer, or in words why there is none."""
        import httpx

        left = max(1.0, self._end - self._clock())
        try:
            return self._server.ask(method, path, timeout_seconds=min(60.0, left), **options)
        except httpx.HTTPError as error:
            return f"no answer ({type(error).__name__})"

    def _until(self, check: str, what: str, attempt: Callable[[], str | None]) -> None:
        """Tries until ``attempt`` returns None; what it returns else is shown as what is missing."""
        began = self._clock()
        tries = 0
        while (missing := attempt()) is not None:
            wait = _POLLS[min(tries, len(_POLLS) - 1)]
            tries += 1
            now = self._clock()
            if now + wait >= self._end:
                raise CheckFailedError(check, f"waited {now - began:.0f} s for {what}, the last state was: {missing}")
            self._show(
                f"waiting for {what}: {redact(missing)} "
                f"({now - self._start:.0f} s of {self._settings.deadline_seconds:.0f} s)"
            )
            self._sleep(wait)


_INVOKER = (
    "Grant the caller roles/run.invoker: add it to access.invokers (serviceAccount:NAME@PROJECT.iam.gserviceaccount.com"
    ", or user:YOU), or set smoke.impersonate to a service account that has it."
)
_NOT_VLLM = "Something else than vLLM answers at this address: check the image and its arguments."


def _why_not_ready(state: ServiceState) -> str:
    if state.terminal.state != "CONDITION_SUCCEEDED":
        return "the platform says that it is not ready"
    return (
        f"revision {state.created_revision or '(none)'} was created, but {state.ready_revision or 'none'} "
        "is the newest that is ready"
    )
