"""Checks of a deployed server, in order: each needs the result of the one before it.

Owns the definition of "healthy". Leaves retries to `bezel_smoke.poller`, and reading the platform to
`bezel.diagnosis.platform`.
"""

import os
from typing import TYPE_CHECKING, Any

from bezel.diagnosis.client import error_text
from bezel.diagnosis.diagnosis import REFRESH
from bezel.diagnosis.platform import ServiceState, describe_service
from bezel.diagnosis.served import differences
from bezel.rest import ApiError, CredentialsError, GoogleClient, RestError
from bezel_smoke.outside import changes_of
from bezel_smoke.poller import CheckFailedError, NotJudged, Poller
from bezel_smoke.pooled_answer import CHECK as POOLED_CHECK
from bezel_smoke.pooled_answer import check_pooled_answer
from bezel_smoke.speculation import check_acceptance

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import httpx

# A grant of roles/run.invoker takes effect within about two minutes.
_GRANT_SECONDS = 120.0
_MAX_TOKENS = 16
_PROMPT = "The capital of France is"
_REFUSALS = frozenset({401, 403})
_INVOKER = (
    "grant the caller roles/run.invoker: add it to access.invokers (serviceAccount:NAME@PROJECT.iam.gserviceaccount.com"
    ", or user:YOU), or set smoke.impersonate to a service account that has it."
)
_OUTSIDE = (
    "run the same command from a machine in a network of the project, or set access.ingress: all and remove "
    "smoke.inside; callers need an identity there too."
)
_SHUT = (
    "remove allUsers and allAuthenticatedUsers from its roles/run.invoker and leave the invoker check on, or set "
    "access.public: true if that is intended."
)
_DEPLOY_AGAIN = f"run {REFRESH}"
_UNDO = f"run the commands above, or declare what they would undo in the stack file; then run {REFRESH}"
_OUTSIDE_SECONDS = 30.0


class Checks:
    """One run of the checks.

    Args:
        props: The properties of the `HealthCheck`.
        google: Client that reads the service's conditions.
        poller: Poller of the service itself.
    """

    def __init__(self, props: "Mapping[str, Any]", google: GoogleClient, poller: Poller) -> None:
        self._props = props
        self._google = google
        self._poller = poller
        self._inside = False
        self._described: Mapping[str, Any] = {}

    def run(self) -> dict[str, Any]:
        """Run all checks; return the verdict: `ok`, `seconds`, and for each check `ok, judged, detail, seconds`.

        A check without anything to judge is `judged: False`, with the reason in its `detail`.

        Raises:
            CheckFailedError: A check failed; those after it were not run.
            CredentialsError: No token can be obtained.
        """
        done: dict[str, Any] = {}
        checks: dict[str, Callable[[], str | NotJudged]] = {
            "conditions": self._conditions,
            **({} if self._props.get("planned") is None else {"plan": self._plan}),
            **({} if self._props.get("resources") is None else {"drift": self._drift}),
            "health": self._health,
            "models": self._models,
            **self._answer(),
            "refusal": self._refusal,
        }
        if self._props.get("speculative"):
            checks["speculation"] = lambda: check_acceptance(
                self._poller,
                float(self._props.get("min_draft_acceptance") or 0),
                random_weights=bool(self._props.get("random_weights") or os.environ.get("BEZEL_RANDOM_WEIGHTS")),
            )
        for name, check in checks.items():
            began = self._poller.elapsed_seconds()
            self._poller.show(f"checking {name}")
            result = check()
            judged, detail = (False, result.why) if isinstance(result, NotJudged) else (True, result)
            seconds = round(self._poller.elapsed_seconds() - began, 3)
            done[name] = {"ok": True, "judged": judged, "detail": detail, "seconds": seconds}
        return {"ok": True, "seconds": round(self._poller.elapsed_seconds(), 3), "checks": done}

    def _answer(self) -> "dict[str, Callable[[], str | NotJudged]]":
        """The check of one answer: of the endpoint that a model which pools serves, else of a completion."""
        pooled_at = self._props.get("pooled_at")
        if pooled_at is None:
            return {"completion": lambda: self._poller.complete("completion", _PROMPT, _MAX_TOKENS)}
        return {POOLED_CHECK: lambda: check_pooled_answer(self._poller, str(pooled_at))}

    def _conditions(self) -> str:
        def attempt() -> ServiceState | str:
            try:
                self._described = describe_service(self._google, self._props["service"])
                state = ServiceState.read(self._described)
            except CredentialsError:
                raise
            except RestError as error:
                gone = isinstance(error, ApiError) and error.status == 404
                repair = _DEPLOY_AGAIN if gone else None
                raise CheckFailedError("conditions", f"the service cannot be read: {error}", repair) from None
            if state.ready:
                return state
            if state.is_settled:
                raise CheckFailedError("conditions", _why_not_ready(state))
            return str(state.terminal) if state.current else "it has not processed the last change yet"

        state = self._poller.until("conditions", "the platform to report the newest revision ready", attempt)
        self._inside = state.inside
        return f"revision {state.ready_revision} is ready"

    def _plan(self) -> str:
        planned = self._props["planned"]
        if lines := differences(planned, self._described):
            what = "\n".join(["the service differs from its declaration", *(f"  {line}" for line in lines)])
            raise CheckFailedError("plan", what, _DEPLOY_AGAIN)
        return f"it matches its declaration: {', '.join(planned)}"

    def _drift(self) -> str | NotJudged:
        findings = changes_of(self._props, self._google, self._described, _OUTSIDE_SECONDS)
        if findings.changes:
            lines = [f"  {change.line()}\n    {change.repair}" for change in findings.changes]
            what = "\n".join(["settings were changed outside of the program", *lines])
            raise CheckFailedError("drift", what, _UNDO)
        if findings.not_judged:
            return NotJudged("; ".join(item.line() for item in findings.not_judged))
        return "what costs money or opens access is as the program declares it"

    def _health(self) -> str:
        grace = min(_GRANT_SECONDS, self._poller.deadline_seconds / 2)
        refused_at: list[float] = []

        def attempt() -> "httpx.Response | str":
            response = self._poller.send("GET", "/health")
            if isinstance(response, str) or response.status_code == 200:
                return response
            outside = self._inside and response.status_code == 404
            if response.status_code not in _REFUSALS and not outside:
                return error_text(response)
            refused_at.append(self._poller.elapsed_seconds())
            if refused_at[-1] - refused_at[0] >= grace:
                what = "only the project's own networks have access" if outside else "the caller is refused"
                raise CheckFailedError("health", f"{what} ({error_text(response)})", _OUTSIDE if outside else _INVOKER)
            return f"{error_text(response)} (a new {'route' if outside else 'grant'} takes up to two minutes)"

        self._poller.until("health", "/health to return 200", attempt)
        return "/health returns 200"

    def _models(self) -> str:
        listed = self._poller.json_response("models", "GET", "/v1/models").get("data")
        served = (
            [str(entry.get("id")) for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
        )
        if self._poller.model not in served:
            raise CheckFailedError(
                "models",
                f"/v1/models lists {served or 'nothing'}, not {self._poller.model!r}",
                "compare `pulumi stack output arguments` with the service's newest revision: traffic goes to another "
                "revision, or --served-model-name differs.",
            )
        return f"{self._poller.model} is served"

    def _refusal(self) -> str | NotJudged:
        if self._props.get("public"):
            return NotJudged("access.public is set")
        body = {"model": self._poller.model, "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1}
        # vLLM's own --api-key leaves /invocations open: only the platform's identity check closes both.
        for method, path, sent in (("GET", "/v1/models", None), ("POST", "/invocations", body)):
            response = self._poller.response(
                "refusal", method, path, json=sent, anonymous=True, statuses=_REFUSALS | {200}
            )
            if response.status_code not in _REFUSALS:
                raise CheckFailedError(
                    "refusal", f"{method} {path} without a token got HTTP 200: anyone can use this service", _SHUT
                )
        return "a caller without a token is refused, also on /invocations"


def _why_not_ready(state: ServiceState) -> str:
    if state.terminal.state != "CONDITION_SUCCEEDED":
        return "the platform reports that it is not ready"
    return (
        f"revision {state.created_revision or '(none)'} was created, but {state.ready_revision or 'none'} "
        "is the newest that is ready"
    )
