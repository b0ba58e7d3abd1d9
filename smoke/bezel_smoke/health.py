"""`HealthCheck`: resource that completes a deployment only when its server answers.

It depends on the resource that it checks, runs again when the newest revision or the declared inputs of the service
change, and fails the update until it passes. Where neither has changed, one read compares the service with its declared
inputs: a failed update, or another user, may have left a different one, which the state does not show.

Where the program only declares further grants, jobs or rules, an update notes them and checks nothing: a later deploy
that removes them deletes them after its check, which must know them as this stack's own.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pulumi
from pulumi.dynamic import DiffResult, UpdateResult

from bezel.diagnosis.passed import PASSED, TOKEN, passed_in, with_this
from bezel_base.errors import Problem
from bezel_components.base.check_resource import CheckResource
from bezel_components.base.dynamic import Progress, differ, own_urn
from bezel_smoke.base import SmokeError, SmokeProvider

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bezel.rest import GoogleClient
    from bezel_smoke.poller import CheckFailedError

_ATTEMPT_SECONDS = 5.0
_LOOK_SECONDS = 20.0
"""An answer that is lost or late must not hide a difference: without it a deploy is green over another service."""
_UNSET = frozenset({"resources", "leases", "start"})
"""Arguments that do not run the check again."""
_EARLIER = "earlier"
"""As of bezel_smoke.outside, which only a check imports."""


@dataclass(frozen=True)
class HealthCheckArgs:
    """Arguments of `HealthCheck`.

    Attributes:
        service: `projects/P/locations/L/services/S`, for reading the conditions and the log.
        url: The address for the requests, and the audience of the identity token.
        audience: Another audience: a tag's address is none, its tokens have the service's own address.
        revision: The newest revision that was **created** (not the newest ready one: after a failed update that stays
            the same, and the check would not run again). A new value runs the check again.
        served_model: The model's id at the server.
        planned: The declared inputs of the service, as far as the platform returns them. The served state is compared
            with them field by field. `VllmService` writes those of its service, which only it knows.
        resources: Type and inputs of each resource that the program declares (`bezel_services.declared`): what the
            cloud has of them is compared, as far as it costs money or opens access. Another list alone does not run the
            check again; further entries are noted. `VllmService` notes them while the program runs.
        public: Whether anyone may call the service.
        speculative: Whether the server must draft tokens, and have some accepted.
        min_draft_acceptance: The smallest share of accepted draft tokens, 0 to 1, of at least 256 drafts.
        random_weights: Whether the model is a test model with random weights: the share is reported and not judged.
            `BEZEL_RANDOM_WEIGHTS` in the environment says so too.
        pooled_at: The endpoint of a model that pools, e.g. /v1/embeddings, whose answer is checked in place of a
            completion; "" where only a plugin of the server can ask it. None for a model that generates.
        deadline_seconds: For the whole check; `BEZEL_DEADLINE_SECONDS` in the environment may lower it.
        impersonate: E-mail of the service account to call as; needed where the deployer is a user's own login.
        start: What a start of this revision takes by the plan: `seconds` and `usd`, each as [low, high], None where
            unknown. Kept with the revision; another one alone does not run the check again. `VllmService` writes its
            plan's.
        leases: The leases behind a gateway, as `bezel_smoke.lease_end` reads them: once none can serve any more, the
            check ends. Others alone do not run it again. `LeasedVllmService` writes its own.
    """

    service: pulumi.Input[str]
    url: pulumi.Input[str]
    revision: pulumi.Input[str]
    served_model: pulumi.Input[str]
    public: pulumi.Input[bool] = False
    speculative: pulumi.Input[bool] = False
    min_draft_acceptance: pulumi.Input[float] | None = None
    random_weights: pulumi.Input[bool] = False
    deadline_seconds: pulumi.Input[float] = 2400
    impersonate: pulumi.Input[str] | None = None
    audience: pulumi.Input[str] | None = None
    planned: "pulumi.Input[Mapping[str, Any]] | None" = None
    resources: "pulumi.Input[Sequence[Sequence[Any]]] | None" = None
    leases: "Sequence[Mapping[str, Any]] | None" = None
    start: "Mapping[str, Any] | None" = None
    pooled_at: pulumi.Input[str] | None = None


class HealthCheckProvider(SmokeProvider):
    """Provider that runs the checks, and on a failure reads the cause from the platform."""

    kind = "health"
    # A failed service may have neither a url nor a revision; the check then reports the cause.
    required = ("service", "served_model")
    settings = tuple(name for name in HealthCheckArgs.__dataclass_fields__ if name not in _UNSET)

    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> DiffResult:
        """Report a change when a setting or the service differs, and when further resources are declared."""
        return DiffResult(changes=_declares_more(_olds, _news) or self._must_run(_olds, _news))

    def update(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> UpdateResult:
        """Run again, with what the last run knew as declared; without a reason to run, note the further resources."""
        kept = {"verdict": _olds.get("verdict"), PASSED: passed_in(_olds)}
        if _declares_more(_olds, _news) and not self._must_run(_olds, _news):
            news = {key: value for key, value in _news.items() if key != "__provider"}
            # What is declared no more stays noted: this deploy deletes it last, and may fail before.
            noted = {"resources": [*_olds["resources"], *_further(_olds, _news)], **_note_of(_olds.get(_EARLIER))}
            return UpdateResult({**news, **kept, **noted})
        outputs = self._outputs({**_with_earlier(_olds, _news), PASSED: kept[PASSED]})
        outputs.pop(_EARLIER, None)
        declared = _news.get("resources") or ()
        gone = [entry for entry in _olds.get("resources") or () if entry not in declared]
        return UpdateResult({**outputs, **_note_of(gone)})  # these are deleted last too

    def _must_run(self, olds: dict[str, Any], news: dict[str, Any]) -> bool:
        return differ(olds, news, self.settings) or _differs(_with_earlier(olds, news))

    def run(self, props: dict[str, Any], progress: Progress) -> dict[str, Any]:
        """See `SmokeProvider.run`: the outputs are `verdict` and `passed`."""
        # Late, here and below: the program only declares the resource, in every preview.
        from bezel.rest import Credentials, GoogleClient
        from bezel_smoke.checks import Checks
        from bezel_smoke.poller import CheckFailedError, polling

        with GoogleClient(Credentials(props.get("impersonate"))) as google, polling(props, progress) as poller:
            try:
                return {"verdict": Checks(props, google, poller).run(), PASSED: with_this(props)}
            except CheckFailedError as failure:
                raise SmokeError(_problem(failure, google, props["service"])) from None


class HealthCheck(CheckResource, module="smoke", name="HealthCheck"):
    """The check of one service.

    Attributes:
        verdict: `ok`, `seconds` and `checks`: for each its `ok`, `judged`, `detail` and `seconds`.
        passed: The revisions that passed, the newest last, 50 at most: for each its `revision`, `model` and `start`. A
            rollback moves the traffic to one of them.
    """

    verdict: pulumi.Output[dict[str, Any]]
    passed: pulumi.Output[list[dict[str, Any]]]

    def __init__(self, name: str, args: HealthCheckArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        props = {**vars(args), "urn": own_urn(name, TOKEN, opts), "verdict": None, PASSED: None}
        super().__init__(HealthCheckProvider(), name, props, opts)


def _with_earlier(olds: dict[str, Any], news: dict[str, Any]) -> dict[str, Any]:
    """The new properties, with the resources that the last check knew; an older version's check knew none."""
    earlier = olds.get("resources")
    return news if earlier is None else {**news, _EARLIER: [*(olds.get(_EARLIER) or ()), *earlier]}


def _note_of(earlier: "Sequence[Any] | None") -> dict[str, Any]:
    """The property with what a deploy that ends before its deletions leaves; none where that is nothing."""
    return {_EARLIER: [*earlier]} if earlier else {}


def _declares_more(olds: dict[str, Any], news: dict[str, Any]) -> bool:
    """Whether the program declares resources that a later check must know, as far as a preview knows them."""
    return olds.get("resources") is not None and bool(_further(olds, news))


def _further(olds: dict[str, Any], news: dict[str, Any]) -> list[Any]:
    from pulumi.output import contains_unknowns

    resources = news.get("resources") or ()
    if contains_unknowns(resources) or all(entry in olds["resources"] for entry in resources):
        return []
    from bezel_smoke.outside import further_entries

    return [*further_entries(olds["resources"], resources)]


def _differs(props: dict[str, Any]) -> bool:
    """Whether a read shows a difference from the declared service; a failed read leaves that to a later check."""
    from bezel.diagnosis.platform import describe_service
    from bezel.diagnosis.served import differences
    from bezel.rest import ApiError, Credentials, GoogleClient, RestError
    from bezel_smoke.outside import changes_of

    if not props.get("planned"):
        return False
    credentials = Credentials(props.get("impersonate"))
    try:
        with GoogleClient(credentials, timeout_seconds=_ATTEMPT_SECONDS, deadline_seconds=_LOOK_SECONDS) as google:
            service = describe_service(google, props["service"])
            if differences(props["planned"], service):
                return True
            return bool(changes_of(props, google, service, _LOOK_SECONDS).changes)
    except ApiError as error:
        return error.status == 404
    except (RestError, ValueError):
        return False


def _problem(failure: "CheckFailedError", google: "GoogleClient", service: str) -> Problem:
    from bezel.diagnosis.diagnosis import explain
    from bezel.diagnosis.platform import report

    what = f"the {failure.check} check fails: {failure.what}"
    if failure.repair is None:
        return explain(report(google, service, errors=(failure.what,)), service, what, repeat_errors=False)
    return Problem(f"service {service.rpartition('/')[2]}", None, what.replace("\n", "\n   "), failure.repair)
