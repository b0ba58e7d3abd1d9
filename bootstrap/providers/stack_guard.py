"""Dynamic provider of `StackGuard`: its deletion fails while the bucket holds the state of another stack.

The class is pickled into the state by reference: neither it nor this module may be renamed, and it holds no data.
"""

from typing import Any

from pulumi.dynamic import CreateResult, DiffResult, ResourceProvider

from bezel.errors import Problem, caused_by
from bezel.rest import GoogleClient, RestError
from bootstrap.stacks_in_bucket import stacks_in
from components.base.dynamic import DeployError

_SECONDS = 60.0
_SHOWN = 10


class StackGuardError(DeployError):
    """The bucket holds stacks, or could not be listed."""


class StackGuardProvider(ResourceProvider):
    """Provider of `StackGuard`. Inputs: bucket, own (`PROJECT/STACK`)."""

    serialize_as_secret_always = False

    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> DiffResult:
        """Replace the guard for another bucket; nothing else is a change."""
        changed = [key for key in ("bucket",) if _olds.get(key) != _news.get(key)]
        return DiffResult(changes=bool(changed), replaces=changed)

    def create(self, props: dict[str, Any]) -> CreateResult:
        """Make nothing."""
        return CreateResult(f"gs://{props['bucket']}", props)

    def delete(self, _id: str, _props: dict[str, Any]) -> None:
        """Refuse while there are other stacks.

        Raises:
            StackGuardError: There are, or it is unknown.
        """
        bucket = str(_props["bucket"])
        try:
            with GoogleClient(timeout_seconds=_SECONDS, deadline_seconds=_SECONDS) as client:
                found = stacks_in(client, bucket)
        except RestError as error:
            consequence = "it is unknown whether it holds stacks, so nothing was destroyed"
            repair = "make Cloud Storage reachable with credentials that may list the bucket, then run it again."
            raise StackGuardError(caused_by(error, f"gs://{bucket}", consequence, repair)) from None
        if others := [name for name in found if name != _props.get("own")]:
            raise StackGuardError(refusal(bucket, others))


def refusal(bucket: str, stacks: list[str]) -> Problem:
    """The problem of a destroy while a bucket holds stacks."""
    listed = ", ".join(stacks[:_SHOWN]) + (f" and {len(stacks) - _SHOWN} more" if len(stacks) > _SHOWN else "")
    return Problem(
        f"gs://{bucket}",
        listed,
        "it holds the states of these stacks: without them what they deployed could be neither changed nor destroyed, "
        "and it would cost on. Nothing was destroyed.",
        "destroy each stack and remove it (`pulumi destroy`, then `pulumi stack rm`), or move it to another backend "
        "(`pulumi stack export`, `pulumi stack import`); then run the same command again.",
    )
