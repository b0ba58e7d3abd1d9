"""Checks of the weights' bucket and folder names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from bezel.planner.base.names import is_folder, is_project_id
from bezel.planner.base.problems import setting
from bezel_base.errors import NOT_SET, Problem, format_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from bezel.planner.base.settings import Weights
    from bezel_catalog import Model

# Linux's limit on a name in a folder; Cloud Storage's limit on an object's name, less the name of a model's file.
_PART_BYTES, _PATH_BYTES = 255, 900
# Google's rules of names: https://cloud.google.com/storage/docs/buckets#naming. Names with dots may be longer.
_BUCKET = re.compile(r"[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]")
_BUCKET_PART, _ADDRESS = 63, re.compile(r"\d+\.\d+\.\d+\.\d+")
# Its own name, a beginning of it, and what reads like it: a name with g00gl3 was refused.
_GOOGLE = re.compile(r"^goog|g[o0]{2}g[l1i][e3]")


def bucket_of(weights: Weights, project: str) -> str:
    """The stack's bucket; bucket names are global, so the default name contains the project's."""
    return weights.bucket or f"{project}-models"


def check_weights(weights: Weights, project: str, *, in_bucket: bool) -> Iterator[Problem]:
    """Check that the bucket is a bare name and the folder a relative path.

    Args:
        weights: of the stack file.
        project: id of the project, which is part of the default name; "" where it is not known.
        in_bucket: whether the stack reads its model from a bucket.
    """
    bucket, path = weights.bucket, weights.path
    if (
        bucket is None
        and in_bucket
        and is_project_id(project)
        and not is_bucket(default := bucket_of(weights, project))
    ):
        consequence = f"its default, {default}, is not a valid name of a bucket: Cloud Storage refuses it."
        yield Problem(setting("weights.bucket"), NOT_SET, consequence, "write the name of a bucket of your own.")
    if bucket is not None and not is_bucket(bucket):
        bare = bucket.removeprefix("gs://").split("/")[0]
        form = (
            "3 to 63 lower case letters, digits, hyphens, underscores and dots, which are no IP address, do not begin "
            "with goog and do not contain google"
        )
        repair = f"write {bare if is_bucket(bare) else form}."
        yield Problem(setting("weights.bucket"), bucket, "it is not a valid name of a bucket.", repair)
    if path is None:
        return
    size = len(path.encode())
    if not is_folder(path):
        yield Problem(
            setting("weights.path"),
            path,
            "it is not a folder inside the bucket: the server would not find the model.",
            "write the folder relative to the bucket, e.g. gemma-4-12B-it-qat-w4a16-ct, or leave it out.",
        )
    elif size > _PATH_BYTES or any(len(part.encode()) > _PART_BYTES for part in path.split("/")):
        yield Problem(
            setting("weights.path"),
            f"{format_value(path)[:60]}... ({size} bytes)",
            f"a mounted bucket shows no name above {_PART_BYTES} bytes, and an object's whole name has at most 1,024: "
            "the model's files could not be opened.",
            f"write a folder with parts of at most {_PART_BYTES} bytes, {_PATH_BYTES} together.",
        )


def check_regional_buckets(weights: Weights, project: str, regions: Iterable[str]) -> Iterator[Problem]:
    """Check that the name of each region's bucket is valid: it is longer than that of the stack's.

    Args:
        weights: of the stack file.
        project: id of the project, which is part of the default name.
        regions: of the stack.
    """
    bucket = bucket_of(weights, project)
    for name in (f"{bucket}-{region}" for region in regions) if weights.regional_buckets and is_bucket(bucket) else ():
        if not is_bucket(name):
            yield Problem(
                setting("weights.bucket"),
                weights.bucket or NOT_SET,
                f"with weights.regional_buckets a region reads {name} ({len(name)} characters): Cloud Storage refuses "
                "such a name.",
                f"write a shorter name, of at most {_BUCKET_PART - len(name) + len(bucket)} characters.",
            )
            return


def is_bucket(name: str) -> bool:
    """Whether Cloud Storage accepts a name of a bucket."""
    parts = name.split(".")
    return bool(
        _BUCKET.fullmatch(name)
        and all(0 < len(part) <= _BUCKET_PART for part in parts)
        and not _ADDRESS.fullmatch(name)
        and not _GOOGLE.search(name)
    )


def check_own_copy(weights: Weights, model: Model) -> Iterator[Problem]:
    """Require the folder of weights that are not published: their copy has no known name."""
    if not model.folder and not weights.path:
        yield Problem(
            setting("weights.path"),
            NOT_SET,
            f"{model.id} is not published, so its folder in the bucket is not known.",
            f"write the folder of your own copy, e.g. weights: {{path: {model.id}}}.",
        )
