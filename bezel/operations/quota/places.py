"""Places of quotas: which of them a region or a zone names."""

from bezel_base.errors import Problem, UserError


def is_in(place: str, region: str | None, zone: str | None) -> bool:
    """Whether a region or zone is one of those that are asked for: a region has its zones, a zone is in its region."""
    if zone is not None:
        return place in {zone, zone.rpartition("-")[0]}
    return region is None or place == region or place.rpartition("-")[0] == region


def refuse_both(region: str | None, zone: str | None) -> None:
    """Refuse a region together with a zone.

    Raises:
        UserError: Both are given.
    """
    if region is not None and zone is not None:
        text = "a zone names its region too."
        raise UserError(Problem("--region", region, text, f"leave it out, or leave --zone {zone} out."))
