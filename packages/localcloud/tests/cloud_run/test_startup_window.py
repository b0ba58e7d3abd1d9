"""The window of a startup probe is one of the platform's time, whatever the clock's speed and this machine's."""

import asyncio
import os
import sys

import pytest

from bezel_localcloud.core.clock import InstanceTiming, PlatformClock
from bezel_localcloud.core.logbook import Logbook, LogSource
from bezel_localcloud.core.store import Store
from bezel_localcloud.processes.sockets import Sockets
from bezel_localcloud.services.cloud_run.runtime.container_command import Command
from bezel_localcloud.services.cloud_run.runtime.instance import Instance
from bezel_localcloud.services.cloud_run.spec import ProbeSpec, revision_spec
from localcloud_support.fake_daemon import FAKE

pytestmark = pytest.mark.slow  # whole processes


@pytest.fixture
def healthy(tmp_path):
    """Whether a container with some arguments is healthy in time under a probe with a window."""
    store = Store(tmp_path / "cloud.db")

    async def outcome(arguments, window, timing):
        address = Sockets(tmp_path / "sockets").new(8080)
        instance = Instance(LogSource("l", "s", "r"), revision_spec({}, {}), address, Logbook(store, PlatformClock(1)))
        environment = {"LOCALCLOUD_LISTEN": f"unix:{instance.address}", "PATH": os.environ["PATH"]}
        await instance.start(Command((sys.executable, "-S", "-E", str(FAKE), *arguments), environment), "DEMAND")
        try:
            return await instance.healthy(ProbeSpec("/health", 0, 0.0, 1.0, 1.0, window), timing)
        finally:
            await instance.stop()

    yield lambda *arguments, window, timing: asyncio.run(outcome(arguments, window, timing))
    store.close()


@pytest.mark.parametrize("speed", [60, 10_000])
@pytest.mark.parametrize(("window", "passes"), [(2, False), (92, False), (93, True)])
def test_a_simulated_start_counts_in_simulated_seconds_at_any_speed(healthy, speed, window, passes):
    assert healthy("--starts-in=92.6", window=window, timing=InstanceTiming(speed)) is passes


def test_what_tells_no_start_has_the_window_in_real_time(healthy):
    exact = InstanceTiming(10, machine_seconds=0.0)
    assert healthy("--boot=60", window=2, timing=exact) is False
    assert healthy("--boot=0.2", window=600, timing=exact) is True
