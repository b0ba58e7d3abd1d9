"""Status of a stack's door for callers by key, as Cloud Run has it now; what it means for the stack's verdict."""

from pydantic import Field

from bezel.operations.context import Context
from bezel.operations.deployment.deployment import Deployment
from bezel.operations.results import Result
from bezel.operations.status.live_service import read_service
from bezel.operations.status.verdict import Judgement, Verdict, platform_verdict


class DoorStatus(Result):
    """A door for callers by key."""

    url: str | None = Field(description="its address")
    service: str = Field(description="projects/P/locations/L/services/S")
    verdict: Verdict = Field(description="ready, deploying, failed or gone, by Cloud Run's conditions")
    reasons: tuple[str, ...] = Field(description="why it is not ready")

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
    return DoorStatus(url=door.uri or None, service=door.id, verdict=verdict, reasons=reasons)


def with_door(judgement: Judgement, door: DoorStatus | None) -> Judgement:
    """The verdict with the state of the door: where it does not serve, callers by key get no answer. Pure."""
    if door is None or door.verdict == "ready":
        return judgement
    verdict, reasons = judgement
    served = verdict in {"ready", "no-callers", "off-hours"}
    of_door = f"the door for callers by key is {door.verdict}: {'; '.join(door.reasons)}"
    return "degraded" if served else verdict, (*reasons, of_door)
