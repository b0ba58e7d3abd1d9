"""Losses of a deletion: what no later deploy makes again. Pure."""

from collections.abc import Iterable

from bezel.operations.changes.plan import PlannedChange

# Type -> what goes with it.
_LOST = {
    "gcp:storage/bucket:Bucket": "every object in it, e.g. a model's files and its compile cache, or a door's keys",
    "gcp:storage/bucketObject:BucketObject": "the object's content",
    "gcp:secretmanager/secret:Secret": "every version of the secret",
    "gcp:artifactregistry/repository:Repository": "every image in it",
    "gcp:cloudrunv2/service:Service": "its revisions and the requests under way",
    "pulumi-python:dynamic/components:TpuNode": "the machine with its disk; new capacity may not be granted",
    "pulumi-python:dynamic/components:TpuRequest": "the place in the queue",
}

# What the next deploy makes again as it was: the configuration of a stack's collector.
_MADE_AGAIN = {"gcp:secretmanager/secret:Secret": "-collector-secret"}


def losses(deleted: Iterable[PlannedChange]) -> tuple[str, ...]:
    """What could be lost with these deletions."""
    return tuple(
        f"{change.name}: {_LOST[change.type]}"
        for change in deleted
        if change.type in _LOST and not change.name.endswith(_MADE_AGAIN.get(change.type, "\n"))
    )
