"""A localcloud in this process, with a clock that a test moves and machines that only note what is asked of them."""

import asyncio
import atexit
import shutil
import tempfile
import threading
from dataclasses import replace
from functools import cache
from pathlib import Path

import httpx

from bezel_localcloud.cloud import Cloud
from bezel_localcloud.core.clock import InstanceTiming
from bezel_localcloud.core.paths import DEPLOYER, PROJECT, Paths
from localcloud_support.discovery_check import answer_problems, method_of, request_problems

PARENT = f"projects/{PROJECT}"
BASE = "http://127.0.0.1:1"
SCOPE = "https://www.googleapis.com/auth/cloud-platform"


class Clock:
    """The pace of a cloud whose time is set by hand; the platform's waits go by `speed` times as fast."""

    def __init__(self, speed=1.0):
        self.speed = speed
        self.time = 1_800_000_000.0

    def now(self):
        return self.time

    def seconds(self, simulated):
        return simulated / self.speed


class Nodes:
    """Machines that only note what is asked of them."""

    def __init__(self):
        self.running = {}
        self.calls = []
        self.attributes = {}

    def boot(self, spec):
        self.calls.append(("boot", spec.id))
        self.running[spec.name] = spec

    def end(self, name):
        self.calls.append(("end", name.rpartition("/")[2]))
        self.running.pop(name, None)

    def set_metadata(self, name, metadata):
        self.calls.append(("set_metadata", name.rpartition("/")[2]))
        if name in self.running:
            self.running[name] = replace(self.running[name], metadata=metadata)

    def guest_attributes(self, name):
        return self.attributes.get(name, {})

    def serial_output(self, name):
        return "booting\nready\n" if name in self.running else ""

    async def close(self):
        self.running.clear()


@cache
def _runner():
    runner = asyncio.Runner()
    atexit.register(runner.close)
    return runner


def run(coroutine):
    """As `asyncio.run`, on one event loop for all requests of the run: to make one takes as long as a request.

    Not by the runner's own `run`, which sets the handler of SIGINT each time: that takes a fifth of a request.
    """
    if threading.current_thread() is not threading.main_thread():
        return asyncio.run(coroutine)
    try:
        return _runner().get_loop().run_until_complete(coroutine)
    finally:
        if left := asyncio.all_tasks(_runner().get_loop()):
            _runner().run(_end(left))


async def _end(tasks):
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


class _ApplicationTransport(httpx.AsyncBaseTransport):
    """Passes each request to the application that it names."""

    async def handle_async_request(self, request):
        return await request.extensions["application"].handle_async_request(request)


@cache
def _client():
    """The client of all projects: to make one takes as long as a request."""
    return httpx.AsyncClient(transport=_ApplicationTransport(), base_url=BASE, trust_env=False)


@cache
def _prepare_directory():
    """A directory with what a new project has."""
    layout = Paths(Path(tempfile.mkdtemp(prefix="cloud-")))
    layout.create()
    cloud = Cloud(layout, Clock(), launcher=None, timing=InstanceTiming(1, 900, 0.5, 1.0), nodes=lambda _: Nodes())
    cloud.prepare()
    cloud.store.close()
    atexit.register(shutil.rmtree, layout.root)
    return layout.root


class Project:
    """A client of the whole application; every answer is held against Google's discovery documents.

    Attributes:
        clock: Moves only by hand, unless another one is given.
        nodes: What was asked of the machines.
        application: The whole application.
    """

    def __init__(self, directory, speed=1.0, clock=None, *, default_network=True):
        self._layout = Paths(directory)
        # Keys take long to make: all projects of a run have the same ones.
        shutil.copytree(_prepare_directory(), directory, dirs_exist_ok=True)
        self.clock = clock or Clock(speed)
        self.start()
        for kind in () if default_network else ("firewall", "subnetwork", "network"):  # as if it had been deleted
            for name, _ in list(self.cloud.store.rows(kind)):
                self.cloud.store.delete(kind, name)

    def start(self):
        """Begin, or begin again with what is stored."""
        self.nodes = Nodes()
        timing = InstanceTiming(1, 900, 0.5, 1.0)
        self.cloud = Cloud(self._layout, self.clock, launcher=None, timing=timing, nodes=lambda _: self.nodes)
        self.cloud.base = BASE
        self.cloud.prepare()
        self.cloud.store.put("api", "tpu.googleapis.com", {"state": "ENABLED"})
        self.application = self.cloud.application()
        self.token = self.cloud.tokens.access_token(DEPLOYER, SCOPE, 1e7)[0]

    def close(self):
        self.cloud.store.close()

    def call(self, verb, path, body=None, **query):
        """The answer to a request."""

        content = {} if body is None else {"json": body}
        answer = self._send(verb, path, {"Authorization": f"Bearer {self.token}"}, params=query, **content)
        method = method_of(verb, answer.request.url.raw_path.decode().partition("?")[0])
        if method is not None:
            problems = answer_problems(method, answer.status_code, answer.content)
            if answer.is_success:
                problems += request_problems(method, list(answer.request.url.params.multi_items()), body)
            assert problems == [], f"{verb} {path}: {problems}"
        return answer

    def raw(self, verb, path, content=b"", headers=None, *, token=True):
        """The answer to a request as it is, with its path and query encoded by the caller."""

        sent = ({"Authorization": f"Bearer {self.token}"} if token else {}) | (headers or {})
        return self._send(verb, path, sent, raises=False, content=content)

    def _send(self, verb, path, headers, *, raises=True, **request):
        extensions = {"application": httpx.ASGITransport(self.application, raise_app_exceptions=raises)}
        return run(_client().request(verb, path, headers=headers, extensions=extensions, **request))

    def ok(self, verb, path, body=None, **query):
        """The JSON of an answer that is no refusal."""
        answer = self.call(verb, path, body, **query)
        assert answer.is_success, answer.text
        return answer.json()

    def refusal(self, status, verb, path, body=None, **query):
        """The error of an answer that is a refusal."""
        answer = self.call(verb, path, body, **query)
        assert answer.status_code == status, answer.text
        return answer.json()["error"]

    def passes(self, seconds):
        """Let time go by."""
        self.clock.time += seconds

    def restart(self):
        """A daemon that was killed, and another one with what it left."""
        self.cloud.store.close()
        self.start()

        async def resume():
            self.cloud.machines.resume()
            await self.cloud.machines.close()

        run(resume())

    def network(self, name="net", region="us-east5", cidr="10.64.0.0/20"):
        """A network with one subnetwork; names of both."""
        self.ok("POST", f"{COMPUTE}/global/networks", {"name": name, "autoCreateSubnetworks": False})
        network = f"{PARENT}/global/networks/{name}"
        self.subnetwork(network, region, cidr)
        return network, f"{PARENT}/regions/{region}/subnetworks/{name}-{region}"

    def subnetwork(self, network, region, cidr):
        """A subnetwork with access to Google."""
        name = f"{network.rpartition('/')[2]}-{region}"
        body = {"name": name, "network": network, "ipCidrRange": cidr, "privateIpGoogleAccess": True}
        self.ok("POST", f"{COMPUTE}/regions/{region}/subnetworks", body)


def two_region_project(directory):
    """A project whose network has subnetworks in us-east5 and europe-west4, the regions with TPUs."""
    project = Project(directory)
    network, _ = project.network()
    project.subnetwork(network, "europe-west4", "10.64.16.0/20")
    return project


COMPUTE = f"/compute/v1/{PARENT}"
