"""Slow path before a server: the first token of a short request, at the caller and at the server, as a finding."""

from bezel.operations.context import Context
from bezel.operations.deployment.deployment import Deployment
from bezel.operations.diagnosis.rules import Finding
from bezel.operations.serving.first_token import FirstToken, probe
from bezel.operations.serving.server import DeployedServer
from bezel_base.errors import UserError, one_line

_READ_SECONDS = 30.0


def measure_first_token(
    context: Context, deployment: Deployment, server: DeployedServer, notes: list[str], *, is_awake: bool
) -> FirstToken | None:
    """Both times of a request of one token; None, and a note, where the server does not answer it.

    Args:
        context: The context of the operation.
        deployment: The deployed stack.
        server: Its server.
        notes: Gets why there is no answer.
        is_awake: Whether an instance runs.
    """
    context.show("measures the time to the first token")
    try:
        return probe(server, deployment.model, is_awake=is_awake, seconds=_READ_SECONDS)
    except UserError as error:
        notes.append(f"the time to the first token could not be measured: {one_line(error)}")
        return None


def slow_path(first: FirstToken | None) -> tuple[Finding, ...]:
    """The finding that most of a caller's time passes outside of the server; () where it does not, or is unknown."""
    if first is None or not first.between:
        return ()
    return (
        Finding(
            kind="slow_path",
            source="metrics",
            cause=f"the first token is late outside of the server: {first.between}",
            repair=first.repair,
            evidence=f"TTFT {first.line()}",
            at=None,
            is_past=False,
        ),
    )
