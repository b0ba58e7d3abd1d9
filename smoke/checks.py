"""Checks of a deployed server, in order: each needs the result of the one before it.

Owns the definition of "healthy". Leaves retries to ``smoke.poller``, and reading the platform to ``smoke.platform``.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bezel.rest import ApiError, CredentialsError, GoogleClient, RestError
from smoke.client import error_text
from smoke.failure_patterns import REFRESH
from smoke.platform import ServiceState, described
from smoke.poller import CheckFailedError, NotJudged, Poller
from smoke.served import differences
from smoke.speculation import check_acceptance

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

# A grant of roles/run.invoker takes effect within about two minutes.
_GRANT_SECONDS = 120.0
_ASKED_TOKENS = 16
_PROMPT = "The capital of France is"
_REFUSALS = frozenset({401, 403})
_INVOKER = (
    "Grant the caller roles/run.invoker: add it to access.invokers (serviceAccount:NAME@PROJECT.iam.gserviceaccount.com"
    ", or user:YOU), or set smoke.impersonate to a service account that has it."
)
_OUTSIDE = (
    "Run the same command from a machine in a network of the project, or set access.ingress: all and remove "
    "smoke.inside; callers need an identity there too."
)
_SHUT = (
    "Remove allUsers and allAuthenticatedUsers from its roles/run.invoker and leave the invoker check on, or set "
    "access.public: true if that is meant."
)
_DEPLOY_AFRESH = f"Run {REFRESH}"


@dataclass(frozen=True)
class CheckSettings:
    """Settings of the checks, as plain values.

    Attributes:
        service: ``projects/P/locations/L/services/S``.
        planned: The declared inputs of the service, in the engine's names; None where they are not known.
        public: Whether anyone may call the service.
        speculative: Whether drafts must be accepted.
        min_draft_acceptance: The smallest share of accepted draft tokens; it must exceed 0 in any case.
        random_weights: Whether the share is reported and not judged.
    """

    service: str
    planned: "Mapping[str, Any] | None" = None
    public: bool = False
    speculative: bool = False
    min_draft_acceptance: float = 0.0
    random_weights: bool = False


class Checks:
    """One run of the checks.

    Args:
        settings: The settings.
        google: Client that reads the service's conditions.
        probe: Poller of the service itself.
    """

    def __init__(self, settings: CheckSettings, google: GoogleClient, probe: Poller) -> None:
        self._settings = settings
        self._google = google
        self._probe = probe
        self._inside = False
        self._described: Mapping[str, Any] = {}

    def run(self) -> dict[str, Any]:
        """Run all checks; return the verdict: ``ok``, ``seconds``, and for each check ``ok, judged, detail, seconds``.

        A check without anything to judge is ``judged: False``, with the reason in its ``detail``.

        Raises:
            CheckFailedError: A check failed; those after it were not run.
        """
        done: dict[str, Any] = {}
        checks: dict[str, Callable[[], str | NotJudged]] = {
            "conditions": self._conditions,
            **({} if self._settings.planned is None else {"plan": self._plan}),
            "health": self._health,
            "models": self._models,
            "completion": lambda: self._probe.complete("completion", _PROMPT, _ASKED_TOKENS),
            "refusal": self._refusal,
        }
        if self._settings.speculative:
            checks["speculation"] = lambda: check_acceptance(
                self._probe, self._settings.min_draft_acceptance, random_weights=self._settings.random_weights
            )
        for name, check in checks.items():
            began = self._probe.elapsed()
            self._probe.show(f"checking {name}")
            try:
                found = check()
            except CredentialsError as error:
                # The text contains its own repair.
                raise CheckFailedError(name, str(error), "") from None
            judged, detail = (False, found.why) if isinstance(found, NotJudged) else (True, found)
            seconds = round(self._probe.elapsed() - began, 3)
            done[name] = {"ok": True, "judged": judged, "detail": detail, "seconds": seconds}
        return {"ok": True, "seconds": round(self._probe.elapsed(), 3), "checks": done}

    def _conditions(self) -> str:
        found: list[ServiceState] = []

        def attempt() -> str | None:
            try:
                self._described = described(self._google, self._settings.service)
                state = ServiceState.read(self._described)
            except CredentialsError:
                raise
            except RestError as error:
                gone = isinstance(error, ApiError) and error.status == 404
                repair = _DEPLOY_AFRESH if gone else None
                raise CheckFailedError("conditions", f"the service cannot be read: {error}", repair) from None
            if state.ready:
                found.append(state)
                return None
            if state.settled:
                raise CheckFailedError("conditions", _why_not_ready(state))
            return str(state.terminal) if state.current else "it has not taken up the last change yet"

        self._probe.until("conditions", "the platform to report the newest revision ready", attempt)
        self._inside = found[-1].inside
        return f"revision {found[-1].ready_revision} is ready"

    def _plan(self) -> str:
        planned = self._settings.planned or {}
        if found := differences(planned, self._described):
            what = "\n".join(["the service is not what was declared", *(f"  {line}" for line in found)])
            raise CheckFailedError("plan", what, _DEPLOY_AFRESH)
        return f"it has what was declared: {', '.join(planned)}"

    def _health(self) -> str:
        patience = min(_GRANT_SECONDS, self._probe.deadline_seconds / 2)
        refused_at: list[float] = []

        def attempt() -> str | None:
            answer = self._probe.ask("GET", "/health")
            if isinstance(answer, str):
                return answer
            if answer.status_code == 200:
                return None
            outside = self._inside and answer.status_code == 404
            if answer.status_code not in _REFUSALS and not outside:
                return error_text(answer)
            refused_at.append(self._probe.elapsed())
            if refused_at[-1] - refused_at[0] >= patience:
                what = "only the project's own networks are let in" if outside else "the caller is refused"
                raise CheckFailedError("health", f"{what} ({error_text(answer)})", _OUTSIDE if outside else _INVOKER)
            return f"{error_text(answer)} (a new {'route' if outside else 'grant'} takes up to two minutes)"

        self._probe.until("health", "/health to answer 200", attempt)
        return "/health answers 200"

    def _models(self) -> str:
        listed = self._probe.answered_json("models", "GET", "/v1/models").get("data")
        served = [str(one.get("id")) for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
        if self._probe.model not in served:
            raise CheckFailedError(
                "models",
                f"/v1/models names {served or 'nothing'}, not {self._probe.model!r}",
                "Traffic goes to another revision, or --served-model-name says otherwise: compare `pulumi stack output "
                "arguments` with the service's newest revision.",
            )
        return f"{self._probe.model} is served"

    def _refusal(self) -> str | NotJudged:
        if self._settings.public:
            return NotJudged("access.public is set")
        body = {"model": self._probe.model, "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1}
        # vLLM's own --api-key leaves /invocations open: only the platform's identity check closes both.
        for method, path, sent in (("GET", "/v1/models", None), ("POST", "/invocations", body)):
            wanted = _REFUSALS | {200}
            answer = self._probe.answered("refusal", method, path, json=sent, anonymous=True, wanted=wanted)
            if answer.status_code not in _REFUSALS:
                raise CheckFailedError(
                    "refusal", f"{method} {path} without a token got HTTP 200: anybody can use this service", _SHUT
                )
        return "a caller without a token is refused, also on /invocations"


def _why_not_ready(state: ServiceState) -> str:
    if state.terminal.state != "CONDITION_SUCCEEDED":
        return "the platform says that it is not ready"
    return (
        f"revision {state.created_revision or '(none)'} was created, but {state.ready_revision or 'none'} "
        "is the newest that is ready"
    )
