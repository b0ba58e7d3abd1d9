"""The language host, started as the engine starts it and asked over gRPC."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import grpc
import pytest
from google.protobuf import empty_pb2, struct_pb2
from pulumi.runtime.proto import language_pb2 as pb
from pulumi.runtime.proto import language_pb2_grpc

import bezel_pulumi_offline
from tests.support.ended import has_ended
from tests.support.other_user import reachable_by_other_user

pytestmark = pytest.mark.slow

HOST = Path(bezel_pulumi_offline.__file__).parent / "plugins" / "pulumi-language-python"
VENV = Path(sys.executable).parent.parent
SECONDS = 60

# What the SDK's start script would do is of no matter here; how the host reports its end is.
PROGRAM_ENDS = """#!/usr/bin/env python
import os, sys
code = {code}
if code < 0:
    os.kill(os.getpid(), -code)
sys.exit(code)
"""
PROGRAM_WAITS = """#!/usr/bin/env python
import os, signal
open(os.environ["PROGRAM_PIPE"], "w").write(f"{os.getpid()}\\n")
signal.pause()
"""


class Host:
    """A running host, the child of a process that stands for the engine."""

    call: grpc.Future | None = None  # kept: a call that nobody holds is cancelled

    def __init__(self, variables: dict[str, str]) -> None:
        # A shell prints the process id that the host then has, the host its port.
        self.engine = subprocess.Popen(
            ["sh", "-c", 'sh -c \'echo $$; exec "$0" 127.0.0.1:1\' "$0" & wait', str(HOST)],
            stdout=subprocess.PIPE,
            env=os.environ | {"BEZEL_PYTHON": sys.executable} | variables,
            text=True,
        )
        assert self.engine.stdout is not None
        self.pid = int(self.engine.stdout.readline())
        self.port = int(self.engine.stdout.readline())
        self.channel = grpc.insecure_channel(f"127.0.0.1:{self.port}")
        self.calls = language_pb2_grpc.LanguageRuntimeStub(self.channel)

    def end(self) -> None:
        """Kill the engine; the host then leaves by itself."""
        self.channel.close()
        self.engine.kill()
        self.engine.wait(timeout=SECONDS)
        assert has_ended(self.pid)


@pytest.fixture
def scripts(tmp_path: Path) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    return folder


@pytest.fixture(scope="module")
def host_scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the start script of `host`, which each test writes anew."""
    return tmp_path_factory.mktemp("bin")


@pytest.fixture(scope="module")
def host(host_scripts: Path) -> Iterator[Host]:
    """A language host that the tests of this module share; a test that ends its host starts one of its own."""
    running = Host({"PATH": f"{host_scripts}:{os.environ['PATH']}"})
    yield running
    running.end()


def info(folder: Path, **options: str) -> pb.ProgramInfo:
    values = struct_pb2.Struct()
    values.update(options or {"toolchain": "uv", "virtualenv": str(VENV)})
    return pb.ProgramInfo(root_directory=str(folder), program_directory=str(folder), entry_point=".", options=values)


def script(folder: Path, text: str) -> None:
    file = folder / "pulumi-language-python-exec"
    file.write_text(text)
    file.chmod(0o755)


def test_tells_interpreter_and_packages_of_the_project(host: Host, tmp_path: Path) -> None:
    about = host.calls.About(pb.AboutRequest(info=info(tmp_path)))
    assert about.version == "{}.{}.{}".format(*sys.version_info[:3])
    assert Path(about.executable).samefile(sys.executable)
    wanted = pb.GetProgramDependenciesRequest(info=info(tmp_path), transitiveDependencies=True)
    names = {dependency.name for dependency in host.calls.GetProgramDependencies(wanted).dependencies}
    assert {"pulumi", "pulumi-gcp"} <= names


def test_tells_the_version_of_the_sdk_beside_it(host: Host) -> None:
    assert host.calls.GetPluginInfo(empty_pb2.Empty()).version == metadata.version("pulumi")


def test_an_interpreter_without_the_packages_is_named(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True, timeout=SECONDS)
    python = tmp_path / "venv" / "bin" / "python"
    variables = os.environ | {"BEZEL_PYTHON": str(python)}
    ended = subprocess.run(
        [HOST], env=variables, capture_output=True, text=True, check=False, timeout=SECONDS, stdin=subprocess.DEVNULL
    )
    assert (ended.returncode, ended.stdout) == (1, "")
    assert f"{python} has no grpc, so no Python program can run. Set BEZEL_PYTHON" in ended.stderr


def test_runs_nothing_for_another_user_of_the_machine(host: Host, host_scripts: Path, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    script(host_scripts, f"#!/bin/sh\ntouch {ran}\n")
    with reachable_by_other_user(host.port) as way, grpc.insecure_channel(f"127.0.0.1:{way}") as channel:
        theirs = language_pb2_grpc.LanguageRuntimeStub(channel)
        calls = [
            lambda: theirs.GetPluginInfo(empty_pb2.Empty(), timeout=SECONDS),
            lambda: theirs.Run(pb.RunRequest(info=info(tmp_path), program=str(tmp_path)), timeout=SECONDS),
            lambda: list(
                theirs.InstallDependencies(pb.InstallDependenciesRequest(info=info(tmp_path)), timeout=SECONDS)
            ),
        ]
        for call in calls:
            with pytest.raises(grpc.RpcError) as refused:
                call()
            assert refused.value.code() == grpc.StatusCode.PERMISSION_DENIED
    assert not ran.exists()


def test_asks_an_interpreter_that_is_not_its_own_for_its_version(host: Host, tmp_path: Path) -> None:
    python = tmp_path / "venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/sh\necho 3.99.1\n")
    python.chmod(0o755)
    about = host.calls.About(pb.AboutRequest(info=info(tmp_path, toolchain="uv", virtualenv="venv")))
    assert (about.executable, about.version) == (str(python), "3.99.1")


def test_tells_only_direct_packages_unless_asked_for_all(host: Host, tmp_path: Path) -> None:
    wanted = pb.GetProgramDependenciesRequest(info=info(tmp_path), transitiveDependencies=False)
    names = {dependency.name for dependency in host.calls.GetProgramDependencies(wanted).dependencies}
    assert "bezel-stacks" in names
    assert "protobuf" not in names


@pytest.mark.parametrize(
    ("code", "bail", "error"),
    [
        (0, False, ""),
        (1, False, "The program ended with exit code 1."),
        (32, True, ""),
        (-9, False, "The program was ended by SIGKILL."),
    ],
)
def test_reports_how_the_program_ended(
    host: Host, host_scripts: Path, tmp_path: Path, code: int, bail: bool, error: str
) -> None:
    script(host_scripts, PROGRAM_ENDS.format(code=code))
    answer = host.calls.Run(pb.RunRequest(info=info(tmp_path), pwd=str(tmp_path)), timeout=SECONDS)
    assert (answer.bail, answer.error) == (bail, error)


def test_refuses_an_unknown_toolchain_by_name(host: Host, tmp_path: Path) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        host.calls.About(pb.AboutRequest(info=info(tmp_path, toolchain="poetry")))
    assert "toolchain is 'poetry': this host knows pip and uv" in caught.value.details()


@pytest.mark.parametrize("has_sdk", [True, False])
def test_a_project_that_names_no_environment_gets_that_of_path(tmp_path: Path, has_sdk: bool) -> None:
    """As with the published host, unless that environment lacks the SDK, without which no program runs."""
    usual = tmp_path / "usual"
    (usual / "bin").mkdir(parents=True)
    for name in ("python", "python3"):
        (usual / "bin" / name).symlink_to(sys.executable)
    if has_sdk:
        (usual / "lib" / "python3" / "site-packages" / "pulumi-3.0.0.dist-info").mkdir(parents=True)
    host = Host({"PATH": f"{usual / 'bin'}:{os.environ['PATH']}"})
    answer = host.calls.About(pb.AboutRequest(info=info(tmp_path, toolchain="pip")), timeout=SECONDS)
    host.end()
    assert answer.executable == str((usual if has_sdk else VENV) / "bin" / "python")


def test_refuses_a_folder_that_is_no_virtual_environment(host: Host, tmp_path: Path) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        host.calls.About(pb.AboutRequest(info=info(tmp_path, toolchain="uv", virtualenv="none")))
    assert "run `uv sync`" in caught.value.details()


def waiting_program(scripts: Path, tmp_path: Path) -> tuple[Host, int]:
    """A host that runs a program which waits for ever; the host and the program's process id."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    script(scripts, PROGRAM_WAITS)
    running = Host({"PATH": f"{scripts}:{os.environ['PATH']}", "PROGRAM_PIPE": str(pipe)})
    running.call = running.calls.Run.future(pb.RunRequest(info=info(tmp_path), pwd=str(tmp_path)))
    with pipe.open() as opened:
        return running, int(opened.readline())


def test_host_and_program_end_with_the_engine(scripts: Path, tmp_path: Path) -> None:
    running, program = waiting_program(scripts, tmp_path)
    running.end()
    assert has_ended(program)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends children with a killed parent")
def test_the_program_ends_with_a_killed_host(scripts: Path, tmp_path: Path) -> None:
    running, program = waiting_program(scripts, tmp_path)
    os.kill(running.pid, signal.SIGKILL)
    assert has_ended(program)
    running.end()


def test_the_program_ends_when_the_user_cancels(scripts: Path, tmp_path: Path) -> None:
    running, program = waiting_program(scripts, tmp_path)
    running.calls.Cancel(empty_pb2.Empty(), timeout=SECONDS)
    assert has_ended(program)
    running.end()
