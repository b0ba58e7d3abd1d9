"""SDKs of the package: written by the generators of Pulumi's CLI, compiled, and entered into a program."""

import json
import os
import pkgutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from bezel_plugin.schema.file import FILE
from bezel_plugin.table import CHECKS, COMPONENTS
from bezel_pulumi_offline.language_host import sdks
from tests.support.docs.markdown import after
from tests.support.plugin.program import DOCUMENT, ROOT, go_program
from tests.support.plugin.typescript_program import FILES, PARTS, SDK, compile_sdk, install

GO_MODULE = ROOT / "tests" / "support" / "plugin" / "go_sdk"


def run(command: Sequence[str | Path], folder: Path, **variables: str) -> "subprocess.CompletedProcess[str]":
    """A command in a folder, which must end well."""
    ended = subprocess.run(
        command, cwd=folder, env=os.environ | variables, capture_output=True, text=True, timeout=600, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended


def generate(language: str, folder: Path) -> Path:
    """The SDK for a language."""
    folder.mkdir()
    run([go_program("pulumi-sdk-generator") / "pulumi-sdk-generator", "-local", language, FILE, folder], folder)
    return folder


@pytest.mark.wide
@pytest.mark.timeout(900)
def test_the_python_sdk_has_every_resource(tmp_path: Path) -> None:
    sdk = generate("python", tmp_path / "sdk")
    # What an installer writes: the SDK reads its version there.
    metadata = sdk / "pulumi_bezel-0.1.0.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text("Metadata-Version: 2.1\nName: pulumi_bezel\nVersion: 0.1.0\n")
    tokens = [*COMPONENTS, *CHECKS]
    modules = sorted({f"pulumi_bezel.{token.split(':')[1]}" for token in tokens})
    written = {each.name for each in pkgutil.iter_modules([str(sdk / "pulumi_bezel")], "pulumi_bezel.")}
    assert written >= set(modules)
    checks = [f"assert hasattr(pulumi_bezel.{t.split(':')[1]}, {t.split(':')[2]!r})" for t in tokens]
    # The examples of the documentation, with an engine of the SDK's own that makes whatever it is asked for.
    mocked = "import pulumi.runtime\nclass Mocks(pulumi.runtime.Mocks):\n"
    mocked += "    def new_resource(self, args): return [args.name, args.inputs]\n"
    mocked += "    def call(self, args): return {}\npulumi.runtime.set_mocks(Mocks())"
    imports = ["import pulumi_bezel", *(f"import {module}" for module in modules)]
    examples = [after(DOCUMENT, f"package: python{mark}") for mark in ("", " service")]
    program = "\n".join([*imports, *checks, mocked, *examples])
    run([sys.executable, "-c", program], sdk, PYTHONPATH=str(sdk))


@pytest.mark.wide
@pytest.mark.timeout(900)
def test_the_typescript_sdk_compiles(tmp_path: Path) -> None:
    compile_sdk(tmp_path / SDK, FILE)
    for token in [*COMPONENTS, *CHECKS]:
        _, module, name = token.split(":")
        (compiled,) = (tmp_path / SDK / "bin" / module).glob(f"{name[0].lower()}{name[1:]}.js")
        assert f'"{token}"' in compiled.read_text().replace("'", '"')

    # The examples of the documentation have the types of the SDK.
    install(tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "parts.ts").write_text(PARTS)
    run(["node", "node_modules/typescript/bin/tsc", "--noEmit", "--project", "."], tmp_path)


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_the_go_sdk_compiles(tmp_path: Path) -> None:
    sdk = generate("go", tmp_path / "sdk")
    for folder, mark in (("parts", "package: go"), ("service", "package: go service")):
        (sdk / "examples" / folder).mkdir(parents=True)
        (sdk / "examples" / folder / "main.go").write_text(after(DOCUMENT, mark))
    run(["go", "vet", f"-modfile={GO_MODULE / 'go.mod'}", "-mod=readonly", "./..."], sdk)
    text = "".join(file.read_text() for file in sdk.rglob("*.go"))
    assert [token for token in [*COMPONENTS, *CHECKS] if f'"{token}"' not in text] == []


def test_a_node_program_gets_the_sdk_as_a_dependency(tmp_path: Path) -> None:
    (tmp_path / "sdks" / "bezel").mkdir(parents=True)
    (tmp_path / "sdks" / "bezel" / "package.json").write_text('{"name": "@pulumi/bezel"}')
    (tmp_path / "package.json").write_text('{"name": "shop", "dependencies": {"left-pad": "1.0.0"}}')
    text = sdks.link_node(tmp_path, ["sdks/bezel"])
    assert 'import * as bezel from "@pulumi/bezel";' in text
    assert json.loads((tmp_path / "package.json").read_text())["dependencies"] == {
        "left-pad": "1.0.0",
        "@pulumi/bezel": "file:sdks/bezel",
    }


def test_a_node_program_without_package_json_is_refused(tmp_path: Path) -> None:
    with pytest.raises(sdks.SdkError, match=r"has no package\.json to enter the SDK into: run `npm init --yes`"):
        sdks.link_node(tmp_path, ["sdks/bezel"])


@pytest.mark.parametrize(("before", "after"), [(None, "./sdks/bezel\n"), ("pulumi\n", "pulumi\n./sdks/bezel\n")])
def test_a_python_program_gets_the_sdk_as_a_requirement(tmp_path: Path, before: str | None, after: str) -> None:
    (tmp_path / "sdks" / "bezel" / "acme_bezel").mkdir(parents=True)
    (tmp_path / "sdks" / "bezel" / "acme_bezel" / "pulumi-plugin.json").touch()
    if before is not None:
        (tmp_path / "requirements.txt").write_text(before)

    def never(command: Sequence[str], folder: Path) -> tuple[int, str]:
        raise AssertionError((command, folder))

    for _ in range(2):
        text = sdks.link_python(never, tmp_path, ["sdks/bezel"], toolchain="pip")
        assert "import acme_bezel as bezel" in text
        assert (tmp_path / "requirements.txt").read_text() == after


def test_a_failure_of_uv_is_told(tmp_path: Path) -> None:
    with pytest.raises(sdks.SdkError, match="uv cannot add sdks/bezel: no such project"):
        sdks.link_python(lambda *_: (2, "no such project\n"), tmp_path, ["sdks/bezel"], toolchain="uv")


def test_a_missing_generator_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(sdks.SdkError, match="pulumi-sdk-generator is not on PATH, so no SDK can be written"):
        sdks.generate(lambda *_: (0, ""), "nodejs", "{}", tmp_path, loader="", local=True, extra={})
