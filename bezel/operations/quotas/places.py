"""Arguments that name a place of a quota, and the project that is asked."""

from typing import Annotated

from pydantic import Field

from bezel.errors import NOT_SET, Problem, UserError
from bezel.operations.context import Context
from bezel.pulumi_engine.project import ProjectError, cloud_project_of

# They become parts of addresses and filters.
Region = Annotated[str, Field(pattern=r"^[a-z]+-[a-z]+[0-9]+$", max_length=40)]
Zone = Annotated[str, Field(pattern=r"^[a-z]+-[a-z]+[0-9]+-[a-z]$", max_length=40)]


def is_in(place: str, region: str | None, zone: str | None) -> bool:
    """Whether a region or zone is one of those that are asked for: a region has its zones, a zone is in its region."""
    if zone is not None:
        return place in {zone, zone.rpartition("-")[0]}
    return region is None or place == region or place.rpartition("-")[0] == region


def cloud_project(context: Context, stack: str | None) -> str:
    """The Google Cloud project of a stack, without one that of the environment.

    Raises:
        UserError: None is named, or there is no such stack.
    """
    named = (
        cloud_project_of(context.environ) if stack is None else context.project.cloud_project(stack, context.environ)
    )
    if named is None:
        consequence = "no Google Cloud project is named."
        repair = "set GOOGLE_CLOUD_PROJECT, or name a stack whose file has gcp:project: --stack NAME."
        raise ProjectError(Problem("GOOGLE_CLOUD_PROJECT", NOT_SET, consequence, repair))
    return named


def refuse_both(region: str | None, zone: str | None) -> None:
    """Refuse a region together with a zone.

    Raises:
        UserError: Both are given.
    """
    if region is not None and zone is not None:
        text = "a zone names its region too."
        raise UserError(Problem("--region", region, text, f"leave it out, or leave --zone {zone} out."))
