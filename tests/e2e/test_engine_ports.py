"""What another user of the machine reaches at the ports of a run of the engine, by plain `pulumi up` in a checkout."""

import base64
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf import empty_pb2, struct_pb2
from pulumi.runtime.proto import (
    analyzer_pb2_grpc,
    callback_pb2,
    callback_pb2_grpc,
    language_pb2_grpc,
    provider_pb2,
    provider_pb2_grpc,
)
from pulumi.runtime.proto import resource_pb2 as monitor
from pulumi.runtime.proto import resource_pb2_grpc as monitor_grpc

from tests.support.e2e.rehearsal import Rehearsal
from tests.support.other_user import reachable_by_other_user

PULUMI = Path(sys.executable).parent / "pulumi"
SECONDS = 60
WAITS = """
import os, time
from pulumi.dynamic import CreateResult, ResourceProvider
class Waits(ResourceProvider):
    def create(self, props):
        open(props["begun"], "w").close()
        while not os.path.exists(props["go"]):
            time.sleep(0.05)
        return CreateResult("id", {"said": "made"})
"""
PROGRAM = """
import os, pulumi
from pulumi.dynamic import Resource
from waits import Waits
class Made(Resource):
    def __init__(self, name, props, opts):
        super().__init__(Waits(), name, {"said": None, **props}, opts)
def note(_):
    with open(os.environ["HOOKED"], "a") as file:
        file.write("x")
hooks = pulumi.ResourceHookBinding(after_create=[pulumi.ResourceHook("note", note)])
props = {name: os.environ[name.upper()] for name in ("begun", "go")}
Made("own", props, pulumi.ResourceOptions(hooks=hooks))
"""
HOST, PACK, PLUGIN = "bezel_pulumi_offline/language_host", "pulumi.policy", "bezel_components.dynamic_plugin"
PROCESS = "pulumi-language-python-exec"


class MakesFile:
    """Makes a file when its pickle is read."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return open, (str(self.path), "w")


@dataclass
class Run:
    """A run of the engine in the middle of a create."""

    folder: Path
    process: "subprocess.Popen[str]"

    def port(self, text: str) -> int:
        """Where the process with this text in its command line listens."""
        (process,) = (one for one in self.processes() if text in command_line(one))
        (number,) = listening(process)
        return number

    def processes(self) -> list[int]:
        """The engine's process, and those below it."""
        return [self.process.pid, *below(self.process.pid)]

    def wait_for(self, text: str) -> None:
        """Read what the engine shows until a line holds this text."""
        assert self.process.stdout is not None
        assert any(text in line for line in self.process.stdout), text

    def end(self) -> str:
        """Let the create go on; what the engine showed."""
        (self.folder / "go").touch()
        return self.process.communicate(timeout=120)[0]


def command_line(process: int) -> str:
    return Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode()


def below(process: int) -> list[int]:
    children = [
        int(child)
        for task in Path(f"/proc/{process}/task").iterdir()
        for child in (task / "children").read_text().split()
    ]
    return [one for child in children for one in (child, *below(child))]


def listening(process: int) -> set[int]:
    """The ports where a process listens, as the kernel's table has them."""
    sockets = {str(entry.readlink()) for entry in Path(f"/proc/{process}/fd").iterdir() if entry.is_symlink()}
    rows = [row.split() for table in ("tcp", "tcp6") for row in Path(f"/proc/net/{table}").read_text().splitlines()[1:]]
    return {int(row[1].rpartition(":")[2], 16) for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in sockets}


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    checkout = Rehearsal.new(tmp_path / "checkout", tmp_path / "cloud").folder
    for file in checkout.glob("Pulumi.*.yaml"):
        file.unlink()
    (checkout / "Pulumi.try.yaml").write_text("config: {}\n")
    (checkout / "waits.py").write_text(WAITS)
    (checkout / "__main__.py").write_text(PROGRAM)
    (tmp_path / "state").mkdir()
    variables = os.environ | {
        "PULUMI_BACKEND_URL": f"file://{tmp_path / 'state'}",
        "PULUMI_HOME": str(tmp_path / "home"),
        "PULUMI_CONFIG_PASSPHRASE": "not a secret",
        "PULUMI_SKIP_UPDATE_CHECK": "1",
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "1",
        "BEGUN": str(tmp_path / "begun"),
        "GO": str(tmp_path / "go"),
        "HOOKED": str(tmp_path / "hooked"),
    }
    init = [PULUMI, "stack", "init", "try", "--non-interactive"]
    subprocess.run(init, cwd=checkout, env=variables, check=True, capture_output=True, timeout=60)
    up = [
        PULUMI,
        "up",
        "--yes",
        "--skip-preview",
        "--stack",
        "try",
        "--policy-pack",
        checkout / "policies" / "security",
    ]
    pipe = subprocess.PIPE
    with subprocess.Popen(up, cwd=checkout, env=variables, stdout=pipe, stderr=subprocess.STDOUT, text=True) as process:
        try:
            end = time.monotonic() + 120
            while not (tmp_path / "begun").exists():
                assert process.poll() is None, process.communicate()[0]
                assert time.monotonic() < end
                time.sleep(0.05)
            yield Run(tmp_path, process)
        finally:
            (tmp_path / "go").touch()
            process.communicate()


def bag(pickled: object) -> struct_pb2.Struct:
    made = struct_pb2.Struct()
    made.update({"__provider": base64.b64encode(pickle.dumps(pickled)).decode()})
    return made


def requests_to(plugin: provider_pb2_grpc.ResourceProviderStub, properties: struct_pb2.Struct) -> dict[str, Any]:
    """Every call of the plugin's server that reads a pickle, and two that read none."""
    return {
        "Check": lambda: plugin.Check(provider_pb2.CheckRequest(news=properties, olds=properties), timeout=SECONDS),
        "Diff": lambda: plugin.Diff(provider_pb2.DiffRequest(news=properties, olds=properties), timeout=SECONDS),
        "Create": lambda: plugin.Create(provider_pb2.CreateRequest(properties=properties), timeout=SECONDS),
        "Read": lambda: plugin.Read(provider_pb2.ReadRequest(id="x", properties=properties), timeout=SECONDS),
        "Update": lambda: plugin.Update(
            provider_pb2.UpdateRequest(id="x", news=properties, olds=properties), timeout=SECONDS
        ),
        "Delete": lambda: plugin.Delete(provider_pb2.DeleteRequest(id="x", properties=properties), timeout=SECONDS),
        "Configure": lambda: plugin.Configure(provider_pb2.ConfigureRequest(), timeout=SECONDS),
        "GetPluginInfo": lambda: plugin.GetPluginInfo(empty_pb2.Empty(), timeout=SECONDS),
    }


def code(call: Any) -> grpc.StatusCode:
    try:
        call()
    except grpc.RpcError as error:
        return error.code()
    return grpc.StatusCode.OK


def test_another_user_runs_nothing_at_the_ports_of_a_run(run: Run) -> None:
    """During a create, while all its processes listen. The owner's resource is made as if nobody had tried."""
    made = run.folder / "made"
    with reachable_by_other_user(run.port(PLUGIN)) as way, grpc.insecure_channel(f"127.0.0.1:{way}") as channel:
        calls = requests_to(provider_pb2_grpc.ResourceProviderStub(channel), bag(MakesFile(made)))
        assert {name: code(call) for name, call in calls.items()} == dict.fromkeys(
            calls, grpc.StatusCode.PERMISSION_DENIED
        )
    for text, stub in ((PACK, analyzer_pb2_grpc.AnalyzerStub), (HOST, language_pb2_grpc.LanguageRuntimeStub)):
        with reachable_by_other_user(run.port(text)) as way, grpc.insecure_channel(f"127.0.0.1:{way}") as channel:
            asked = stub(channel)
            assert code(lambda asked=asked: asked.GetPluginInfo(empty_pb2.Empty(), timeout=SECONDS)) == (
                grpc.StatusCode.PERMISSION_DENIED
            )
    with reachable_by_other_user(run.port(PROCESS)) as way, grpc.insecure_channel(f"127.0.0.1:{way}") as channel:
        hooks = callback_pb2_grpc.CallbacksStub(channel)
        for token in ("", "note", "00000000-0000-4000-8000-000000000000"):
            asking = callback_pb2.CallbackInvokeRequest(token=token)
            assert code(lambda asking=asking: hooks.Invoke(asking, timeout=SECONDS)) == grpc.StatusCode.INVALID_ARGUMENT
    assert len({one for one in run.processes() if listening(one)}) == len((HOST, PACK, PLUGIN, PROCESS, "engine"))
    # The user's own processes are served, with providers of modules only.
    with grpc.insecure_channel(f"127.0.0.1:{run.port(PLUGIN)}") as channel:
        calls = requests_to(provider_pb2_grpc.ResourceProviderStub(channel), bag(MakesFile(made)))
        assert code(calls["GetPluginInfo"]) == grpc.StatusCode.OK
        for name in ("Check", "Diff", "Create", "Read", "Update", "Delete"):
            with pytest.raises(grpc.RpcError, match=r"ProviderError: __provider = io\.open"):
                calls[name]()
    assert not made.exists()

    # What another user registers at the engine's own port, which is open to everybody, the plugin does not run.
    request = monitor.RegisterResourceRequest(
        type="pulumi-python:dynamic:Resource", name="theirs", custom=True, object=bag(MakesFile(made))
    )
    codes = []
    for port in sorted(listening(run.process.pid)):
        with reachable_by_other_user(port) as way, grpc.insecure_channel(f"127.0.0.1:{way}") as channel:
            stub = monitor_grpc.ResourceMonitorStub(channel)
            codes.append(
                code(lambda stub=stub: stub.SupportsFeature(monitor.SupportsFeatureRequest(), timeout=SECONDS))
            )
            if codes[-1] == grpc.StatusCode.OK:
                registration = stub.RegisterResource.future(request)
                run.wait_for("ProviderError: __provider = io.open")
                registration.cancel()  # the engine never answers it
    assert codes.count(grpc.StatusCode.OK) == 1
    text = run.end()
    assert "ProviderError: __provider = io.open" in text
    assert "dynamic:Resource own created" in text
    assert (run.folder / "hooked").read_text() == "x"
    assert "exited prematurely" not in text
    assert not made.exists()
