"""A stand-in as the engine has it: started by its name, quick to answer, gone when the engine is."""

import os
import select
import signal
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

import grpc
import pytest
from google.protobuf import empty_pb2
from pulumi.runtime.proto import provider_pb2 as pb
from pulumi.runtime.proto import provider_pb2_grpc

from pulumi_offline_support.client import PLUGINS, StartedProvider, urn
from pulumi_offline_support.google import FakeGoogle
from pulumi_offline_support.kills import Outcome, Scene
from pulumi_offline_support.programs import PROGRAMS

pytestmark = pytest.mark.slow

SECRET = "gcp:secretmanager/secret:Secret"


@pytest.mark.parametrize("name", ["gcp", "docker"])
def test_it_prints_its_port_and_ends_at_an_interrupt(name: str) -> None:
    provider = StartedProvider(name, {})
    assert provider.configured.supportsPreview
    provider.channel.close()
    provider.process.send_signal(signal.SIGINT)
    provider.process.wait(60)
    out, err = provider.process.communicate(timeout=60)
    assert (provider.process.returncode, out, err) == (0, "", "")


@pytest.mark.parametrize("name", ["gcp", "docker"])
def test_an_interrupt_while_it_imports_ends_it_without_a_word(name: str, tmp_path: Path) -> None:
    (tmp_path / "grpc.py").write_text("import time\nprint('importing', flush=True)\ntime.sleep(60)\n")
    pipe = subprocess.PIPE
    command = [sys.executable, "-m", f"bezel_pulumi_offline.{name}"]
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, env={"PYTHONPATH": str(tmp_path)}) as plugin:
        assert plugin.stdout is not None
        assert plugin.stdout.readline() == b"importing\n"
        plugin.send_signal(signal.SIGINT)
        assert plugin.communicate(timeout=30) == (b"", b"")
    assert plugin.returncode == -signal.SIGINT


SLOW = """
import threading
from bezel_pulumi_offline.plugin.server import Plugin, serve
class Slow(Plugin):
    stops = 0
    def stop(self):
        self.stops += 1
        if self.stops > 1:
            threading.Event().wait()
serve(Slow())
"""


def test_an_engine_that_has_called_off_waits_for_nothing_of_it() -> None:
    """It waits for the last of its plugins: what one takes to end in order once more, every run takes."""
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", SLOW], stdin=pipe, stdout=pipe, cwd=PLUGINS.parents[1]) as plugin:
        assert plugin.stdout is not None
        with grpc.insecure_channel(f"127.0.0.1:{int(plugin.stdout.readline())}") as channel:
            provider_pb2_grpc.ResourceProviderStub(channel).Cancel(empty_pb2.Empty(), timeout=60)
        plugin.send_signal(signal.SIGINT)
        try:
            assert plugin.wait(60) == 0
        finally:
            plugin.kill()


def test_it_names_the_version_that_the_installed_sdk_asks_for() -> None:
    provider = StartedProvider("gcp", {})
    assert provider.call("GetPluginInfo", empty_pb2.Empty()).version == version("pulumi_gcp")
    provider.close()


def test_a_start_imports_nothing_heavy() -> None:
    heavy = ("httpx", "cryptography", "pulumi.output", "google.auth", "pydantic", "starlette", "asyncio")
    script = (
        "import sys; from bezel_pulumi_offline.plugin.fast_import import lighten; lighten();"
        "import bezel_pulumi_offline.plugin.google_plugin, bezel_pulumi_offline.plugin.server;"
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=PLUGINS.parents[1]
    )
    assert done.stdout == "[]\n"


def test_a_later_import_of_asyncio_is_the_real_one() -> None:
    script = (
        "from bezel_pulumi_offline.plugin.fast_import import lighten; lighten();"
        "import asyncio; print(asyncio.run(asyncio.sleep(0, 'slept')))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "slept\n"


def test_it_works_in_its_own_process(google: FakeGoogle) -> None:
    provider = StartedProvider("gcp", google.environment())
    resource_id, _ = provider.create(SECRET, PROGRAMS[SECRET])
    assert resource_id == "projects/bezel-local/secrets/hf"
    provider.close()


def test_after_a_kill_the_next_one_goes_on() -> None:
    service = "gcp:cloudrunv2/service:Service"
    points = [(SECRET, "create", 0, "before"), (SECRET, "read", 0, "after"), (service, "update", 1, "before")]
    with Scene() as scene:
        for point in [*points, (service, "delete", 0, "after")]:
            assert scene.kill(*point) == Outcome(taken_over=False, left=[])
        assert scene.kill(SECRET, "create", 0, "after") == Outcome(taken_over=True, left=[])


@pytest.mark.parametrize("name", ["gcp", "docker"])
def test_it_ends_with_an_engine_that_was_killed_before_it_had_started(name: str) -> None:
    """Its parent is another process already when it first looks; the pipe to its standard input tells all the same."""
    listening, engine = os.pipe()
    os.close(engine)
    environment = {**os.environ, "BEZEL_PYTHON": sys.executable}
    with os.fdopen(listening) as closed:
        command = [str(PLUGINS / f"pulumi-resource-{name}"), "127.0.0.1:1"]
        ended = subprocess.run(
            command, stdin=closed, capture_output=True, env=environment, cwd=PLUGINS.parents[1], timeout=60, check=False
        )
    assert ended.returncode == 1


def test_it_does_not_outlive_a_killed_engine() -> None:
    engine = (
        "import subprocess, sys, time; p = subprocess.Popen(sys.argv[1:]); print(p.pid, flush=True); time.sleep(60)"
    )
    environment = {**os.environ, "BEZEL_PYTHON": sys.executable}
    with subprocess.Popen(
        [sys.executable, "-c", engine, str(PLUGINS / "pulumi-resource-gcp")],
        stdout=subprocess.PIPE,
        env=environment,
        cwd=PLUGINS.parents[1],
    ) as parent:
        assert parent.stdout is not None
        assert [parent.stdout.readline().strip().isdigit() for _ in range(2)] == [True, True], "both have started"
        parent.kill()
        # The plugin holds its output as long as it lives.
        assert select.select([parent.stdout], [], [], 60)[0]
        assert parent.stdout.read() == b""


def test_an_interrupt_during_a_create_still_hands_over_the_service(google: FakeGoogle) -> None:
    google.polls = 10_000
    provider = StartedProvider("gcp", google.environment())
    kind = "gcp:cloudrunv2/service:Service"
    request = pb.CreateRequest(urn=urn(kind), properties=provider.check(kind, PROGRAMS[kind]).inputs)
    waiting = provider.stub.Create.future(request, timeout=60)
    deadline = time.monotonic() + 60
    while not google.requests_of("GET") and time.monotonic() < deadline:
        time.sleep(0.01)
    provider.process.send_signal(signal.SIGINT)
    assert "cancelled during a wait" in str(waiting.exception(timeout=60).details())
    assert provider.process.wait(60) == 0
    provider.close()
