"""Generation of a project: from its start, empty or with what an earlier daemon left, to its reset or its end."""

import asyncio
from dataclasses import dataclass, field


@dataclass
class Generation:
    """One generation of the project that a daemon serves.

    Attributes:
        number: 1 for the first one of the daemon.
        ready: Whether it has what the daemon was started with: enabled APIs, contents of buckets.
        reset: Set once it is to end, and a new project to follow.
    """

    number: int = 1
    ready: bool = False
    reset: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def ready_number(self) -> int:
        """Number of the generation that is ready: this one, or as long as it is not the one before."""
        return self.number if self.ready else self.number - 1
