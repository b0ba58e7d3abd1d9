"""Dynamic provider of `StackGuard`: its deletion fails while the bucket holds the state of another stack.

The class is pickled into the state by reference: neither it nor this module may be renamed, and it holds no data.
"""

from typing import Any

from pulumi.dynamic import CreateResult, DiffResult, ResourceProvider

from bezel.foundation.stacks_in_bucket import refusal, stacks_in
from bezel.rest import GoogleClient, RestError
from bezel_base.errors import caused_by
from bezel_components.base.dynamic import DeployError

_SECONDS = 60.0


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
                stacks = stacks_in(client, bucket)
        except RestError as error:
            consequence = "it is unknown whether it holds stacks, so nothing was destroyed"
            repair = "make Cloud Storage reachable with credentials that may list the bucket, then run it again."
            raise StackGuardError(caused_by(error, f"gs://{bucket}", consequence, repair)) from None
        if others := [name for name in stacks if name != _props.get("own")]:
            raise StackGuardError(refusal(bucket, others))
