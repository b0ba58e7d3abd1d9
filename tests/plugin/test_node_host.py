"""The language host of Node programs, started as the engine starts it and asked over gRPC."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from pulumi.runtime.proto import language_pb2 as pb
from pulumi.runtime.proto import language_pb2_grpc

from tests.support.plugin.typescript_program import HOSTS

pytestmark = pytest.mark.slow
SECONDS = 60


@pytest.fixture
def calls(tmp_path: Path) -> Iterator[Any]:
    """The host, on whose PATH is what its script needs, and no Node or generator."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("sh", "dirname", "readlink"):
        (folder / name).symlink_to(shutil.which(name) or "")
    variables = os.environ | {"BEZEL_PYTHON": sys.executable, "PATH": str(folder)}
    command = [str(HOSTS / "pulumi-language-nodejs"), "127.0.0.1:1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=variables, text=True) as process:
        assert process.stdout is not None
        with grpc.insecure_channel(f"127.0.0.1:{int(process.stdout.readline())}") as channel:
            yield language_pb2_grpc.LanguageRuntimeStub(channel)
        process.terminate()


def info(folder: Path) -> pb.ProgramInfo:
    return pb.ProgramInfo(root_directory=str(folder), program_directory=str(folder), entry_point=".")


def failure(call: Any, request: Any) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.RpcError) as refused:
        list(answer) if hasattr(answer := call(request, timeout=SECONDS), "__iter__") else None
    return refused.value.code(), str(refused.value.details())


def test_a_program_without_the_sdk_is_told_to_install_it(calls: Any, tmp_path: Path) -> None:
    ended = calls.Run(pb.RunRequest(info=info(tmp_path), monitor_address="127.0.0.1:1"), timeout=SECONDS)
    assert ended.error == f"{tmp_path} has no node_modules/@pulumi/pulumi, which runs it: run `npm install`."


def test_a_machine_without_node_is_told_to_install_it(calls: Any, tmp_path: Path) -> None:
    (tmp_path / "node_modules" / "@pulumi" / "pulumi" / "cmd" / "run").mkdir(parents=True)
    request = pb.RunRequest(info=info(tmp_path), monitor_address="127.0.0.1:1")
    expected = (grpc.StatusCode.FAILED_PRECONDITION, "node is not on PATH: install Node 20 or newer.")
    assert failure(calls.Run, request) == expected
    assert failure(calls.About, pb.AboutRequest(info=info(tmp_path))) == expected


def test_the_dependencies_are_those_of_package_json(calls: Any, tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text('{"dependencies": {"@pulumi/pulumi": "3.276.0", "a": "1.0.0"}}')
    listed = calls.GetProgramDependencies(pb.GetProgramDependenciesRequest(info=info(tmp_path)), timeout=SECONDS)
    assert [(each.name, each.version) for each in listed.dependencies] == [
        ("@pulumi/pulumi", "3.276.0"),
        ("a", "1.0.0"),
    ]


def test_a_plugin_for_node_is_refused(calls: Any, tmp_path: Path) -> None:
    code, text = failure(calls.RunPlugin, pb.RunPluginRequest(info=info(tmp_path)))
    assert (code, text) == (
        grpc.StatusCode.UNIMPLEMENTED,
        "this language host runs no plugins or policy packs for Node",
    )


def test_an_sdk_without_its_generator_is_refused(calls: Any, tmp_path: Path) -> None:
    request = pb.GeneratePackageRequest(directory=str(tmp_path), schema="{}")
    code, text = failure(calls.GeneratePackage, request)
    assert code == grpc.StatusCode.FAILED_PRECONDITION
    assert text.startswith("pulumi-sdk-generator is not on PATH, so no SDK can be written.")
