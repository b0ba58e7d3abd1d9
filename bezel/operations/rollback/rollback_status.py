"""The rollback that is in force, as part of a stack's status."""

from typing import Self

from pydantic import Field

from bezel.operations.results import Result
from bezel.outside_changes.rollback import Rollback


class RollbackStatus(Result):
    """A rollback."""

    revision: str = Field(description="revision that all traffic is pinned to")
    since: str = Field(description="time of the rollback, RFC 3339")
    origin: tuple[str, ...] = Field(description="revisions that had the traffic before")

    @classmethod
    def of(cls, rollback: Rollback | None) -> Self | None:
        """From its record; None without one."""
        if rollback is None:
            return None
        return cls(revision=rollback.revision, since=rollback.since, origin=rollback.origin)

    def line(self) -> str:
        """The rollback as a line."""
        origin = " and ".join(self.origin)
        return f"pinned to {self.revision} since {self.since}, from {origin}; the next deploy moves the traffic"
