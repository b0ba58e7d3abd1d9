"""Digests of a stack's images, looked up before anything is declared."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from bezel.planner import Problem
from bezel.planner.base.deployment import ImagePlan
from bezel_components.lookups.image import ImageNotFoundError, look_up_digest


@dataclass(frozen=True)
class FoundImages:
    """Planned images, each with the digest that its registry returned.

    Attributes:
        by_plan: Planned image -> the same with its digest.
        problems: One for each image that was not found.
    """

    by_plan: Mapping[ImagePlan, ImagePlan]
    problems: tuple[Problem, ...]


def look_up_images(*images: ImagePlan) -> FoundImages:
    """Look up the digest of each image that has none."""
    by_plan: dict[ImagePlan, ImagePlan] = {}
    problems: list[Problem] = []
    for image in images:
        try:
            by_plan[image] = image if image.digest else replace(image, digest=look_up_digest(image.name))
        except ImageNotFoundError as error:
            problems += error.problems
    return FoundImages(by_plan, tuple(problems))
