"""Clock, and the speed-up of the platform's waits."""

import time
from dataclasses import dataclass


@dataclass(frozen=True)
class PlatformClock:
    """Waits of the platform (operations, probes) divided by a factor; traffic is never sped up.

    Attributes:
        speed: Simulated seconds of platform time in one real second.
    """

    speed: float

    def seconds(self, simulated: float) -> float:
        """Real seconds for some seconds of the platform's time."""
        return simulated / self.speed

    @staticmethod
    def now() -> float:
        """Unix seconds."""
        return time.time()


@dataclass(frozen=True)
class InstanceTiming:
    """Times of instances.

    Attributes:
        startup_speed: Simulated seconds in one real second while a container starts; 1 for a real engine.
        idle_seconds: Real seconds that an instance without requests keeps running.
        machine_seconds: Real seconds that a container gets beyond its startup probe's window, as this machine needs
            some to start a process; 0 for a real engine, which gets exactly the window.
        queue_seconds: Real seconds that a request waits for a free slot where no further instance may start.
    """

    startup_speed: float
    idle_seconds: float = 900.0
    machine_seconds: float = 15.0
    queue_seconds: float = 10.0
