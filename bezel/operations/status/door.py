"""Status of a stack's door for callers by key, by Cloud Run and its log; what it means for the stack's verdict."""

from pydantic import Field

from bezel.operations.context import Context
from bezel.operations.deployment.deployment import DeployedService, Deployment
from bezel.operations.redaction import clean_text
from bezel.operations.results import Result
from bezel.operations.status.door_log import read_failures
from bezel.operations.status.live_service import read_service
from bezel.operations.status.verdict import Judgement, Verdict, platform_verdict
from bezel.rest import RestError
from bezel_base.errors import one_line

_TEXT = 300


class DoorStatus(Result):
    """A door for callers by key."""

    url: str | None = Field(description="its address")
    service: str = Field(description="projects/P/locations/L/services/S")
    verdict: Verdict = Field(
        description="ready, deploying, failed or gone, by Cloud Run; failing or degraded, by its log"
    )
    reasons: tuple[str, ...] = Field(description="why it is not ready, or why its log is unknown")

    def line(self) -> str:
        """Its address and its state."""
        return ", ".join((self.url or "its address is not recorded", self.verdict))


def door_status(context: Context, deployment: Deployment) -> DoorStatus | None:
    """The status of a stack's door; None without one.

    Raises:
        RestError: Cloud Run could not be asked.
    """
    door = deployment.door
    if door is None:
        return None
    live = read_service(context, door)
    verdict, reasons = platform_verdict(live) if live is not None else ("gone", (f"Cloud Run has no {door.id}",))
    if verdict == "ready":
        verdict, reasons = _verdict_of_log(context, door)
    return DoorStatus(url=door.uri or None, service=door.id, verdict=verdict, reasons=reasons)


def _verdict_of_log(context: Context, door: DeployedService) -> Judgement:
    """The verdict of a door that Cloud Run has as ready."""
    try:
        failures = read_failures(context, door)
    except RestError as error:
        return "ready", (f"its log could not be read: {clean_text(one_line(error), _TEXT)}",)
    if not failures:
        return "ready", ()
    verdict: Verdict = "degraded" if all(failure.is_served for failure in failures) else "failing"
    return verdict, tuple(failure.text for failure in failures)


def with_door(judgement: Judgement, door: DoorStatus | None) -> Judgement:
    """The verdict with the state of the door: where it does not serve, callers by key get no answer. Pure."""
    if door is None or door.verdict == "ready":
        return judgement
    verdict, reasons = judgement
    served = verdict in {"ready", "no-callers", "off-hours"}
    of_door = f"the door for callers by key is {door.verdict}: {'; '.join(door.reasons)}"
    return "degraded" if served else verdict, (*reasons, of_door)
