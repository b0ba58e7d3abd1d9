"""Sampler of a metric: samples as long as its daemon runs, at the interval of Google's metrics.

Leaves out what is sampled, and when a sample can be read (`service_use`, `quota_use`).
"""

import asyncio
import logging
from abc import ABC, abstractmethod

from bezel_localcloud.core.background import BackgroundTasks
from bezel_localcloud.routing.context import Context

log = logging.getLogger(__name__)
_SAMPLED = 60.0  # seconds of the platform's time
_LEAST_TICK = 1.0


class Sampler(ABC):
    """A task that samples; a failure is in the daemon's log, and the next sample is tried."""

    subject: str
    """What is sampled, for the log."""

    def __init__(self, cloud: Context) -> None:
        self._cloud = cloud
        self._tasks = BackgroundTasks()

    @abstractmethod
    def sample(self) -> None:
        """Take a sample now."""

    def try_to_sample(self) -> None:
        """Take a sample now; a failure is in the daemon's log."""
        try:
            self.sample()
        except Exception:
            log.exception("%s could not be sampled", self.subject)

    def resume(self) -> None:
        """Start sampling."""
        self._tasks.keep(asyncio.create_task(self._tick()))

    async def close(self) -> None:
        """Stop sampling."""
        await self._tasks.end()

    async def _tick(self) -> None:
        while True:
            self.try_to_sample()
            await asyncio.sleep(max(_LEAST_TICK, self._cloud.pace.seconds(_SAMPLED)))
