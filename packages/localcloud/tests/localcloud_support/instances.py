"""An instance of Cloud Run with the tiny fake as its container, without a service around it."""

import asyncio
import json
import os
import sys

from bezel_localcloud.core.clock import PlatformClock
from bezel_localcloud.core.logbook import Logbook, LogSource
from bezel_localcloud.core.store import Store
from bezel_localcloud.processes.sockets import Sockets
from bezel_localcloud.services.cloud_run.runtime.autoscaler import DEMAND
from bezel_localcloud.services.cloud_run.runtime.container_command import Command
from bezel_localcloud.services.cloud_run.runtime.instance import Instance
from bezel_localcloud.services.cloud_run.runtime.upstream import passes
from bezel_localcloud.services.cloud_run.spec import ProbeSpec, revision_spec
from localcloud_support.fake_daemon import FAKE


def make_instance(folder):
    logbook = Logbook(Store(folder / "cloud.db"), PlatformClock(1))
    return Instance(LogSource("l", "s", "r"), revision_spec({}, {}), Sockets(folder / "sockets").new(8080), logbook)


async def ask_instance(instance, path):
    """What the container saw of a request."""
    reader, writer = await asyncio.open_unix_connection(instance.address)
    writer.write(f"GET {path} HTTP/1.1\r\n\r\n".encode())
    content = await reader.read()
    writer.close()
    return json.loads(content.partition(b"\r\n\r\n")[2])


async def start_instance(instance):
    """The instance once it listens."""
    environment = {"LOCALCLOUD_LISTEN": f"unix:{instance.address}", "PATH": os.environ["PATH"]}
    await instance.start(Command((sys.executable, "-S", "-E", str(FAKE)), environment), DEMAND)
    while not await passes(ProbeSpec(None, 0, 0.0, 1.0, 1.0, 1), instance.address, 1.0):  # noqa: ASYNC110 - another process
        await asyncio.sleep(0.01)
