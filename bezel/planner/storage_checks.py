"""Names of the bucket and of the folder with the weights."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from bezel.planner.problems import NOT_SET, Problem, setting, shown

if TYPE_CHECKING:
    from bezel.catalog import Model
    from bezel.planner.settings import Weights

_BUCKET = re.compile(r"[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]")


def bucket_of(weights: Weights, project: str) -> str:
    """The stack's bucket; names of buckets are the world's, so one without a name of its own bears the project's."""
    return weights.bucket or f"{project}-models"


def check_weights(weights: Weights) -> list[Problem]:
    """The bucket by its bare name, the folder inside it by a relative path."""
    problems = []
    bucket, path = weights.bucket, weights.path
    if bucket is not None and not _BUCKET.fullmatch(bucket):
        bare = bucket.removeprefix("gs://").split("/")[0]
        problems.append(
            Problem(
                setting("weights.bucket"),
                shown(bucket),
                "Cloud Storage has no bucket of such a name.",
                f"write {bare}."
                if _BUCKET.fullmatch(bare)
                else "write 3 to 63 lower case letters, digits, hyphens, underscores and dots.",
            )
        )
    if path is not None and (not path.strip("/") or "://" in path or ".." in path.split("/") or not path.isprintable()):
        problems.append(
            Problem(
                setting("weights.path"),
                shown(path),
                "it is no folder inside the bucket: nothing would be found under the mount.",
                "write the folder relative to the bucket, e.g. gemma-4-12B-it-qat-w4a16-ct, or leave it out.",
            )
        )
    return problems


def check_own_copy(weights: Weights, model: Model) -> list[Problem]:
    """A form of the weights that nobody publishes has no folder of a known name: the stack says where its copy is."""
    if model.folder or weights.path:
        return []
    return [
        Problem(
            setting("weights.path"),
            NOT_SET,
            f"nobody publishes {model.id}, so no folder of the bucket is known to hold it.",
            f"write the folder of your own copy, e.g. weights: {{path: {model.id}}}.",
        )
    ]
