"""`pulumi package add` of the package's folder, and of one in a git repository, in programs of three languages."""

import os
import ssl
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.plugin.git_server import git_server
from tests.support.plugin.program import PULUMI, ROOT, go_program
from tests.support.plugin.typescript_program import HOSTS

# An installation of npm's packages, and environments that uv makes: minutes, and downloads where nothing is cached.
pytestmark = [pytest.mark.long, pytest.mark.timeout(1200)]
SECONDS = 600
PACKAGES = (ROOT / "tests" / "clients" / "npm" / "pulumi" / "package.json").read_text()
PYTHON_PROJECT = """[project]
name = "shop"
version = "0.1.0"
requires-python = ">=3.11"
dependencies = ["pulumi>=3.259"]
"""


@dataclass(frozen=True)
class Repository:
    """A clone with the present files of this repository, and how a program's commands find what they need.

    Attributes:
        folder: The clone.
        variables: Variables of the commands.
    """

    folder: Path
    variables: dict[str, str]

    def add(self, program: Path, source: str, files: dict[str, str], **variables: str) -> None:
        """Write a program and add the package to it."""
        program.mkdir()
        for name, text in files.items():
            (program / name).write_text(text)
        ended = subprocess.run(
            [PULUMI, "package", "add", source],
            cwd=program,
            env=self.variables | variables,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr
        assert "Added package " in ended.stderr, ended.stderr


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    top = tmp_path_factory.mktemp("repository")
    folder = top / "clone"
    subprocess.run(["git", "clone", "--quiet", "--depth", "1", f"file://{ROOT}", folder], check=True, timeout=120)
    changed = subprocess.run(
        ["git", "ls-files", "--modified", "--others", "--exclude-standard"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    for name in changed.stdout.splitlines():
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes((ROOT / name).read_bytes())
    (top / "state").mkdir()
    hosts = [HOSTS, go_program("pulumi-language-yaml"), go_program("pulumi-sdk-generator"), PULUMI.parent]
    sys.path.insert(0, str(ROOT / "tools" / "toolchain"))
    from environment import find_uv

    uv = Path(find_uv()).parent
    return Repository(
        folder,
        os.environ
        | {
            "PATH": os.pathsep.join([*map(str, [*hosts, uv]), os.environ["PATH"]]),
            "PULUMI_BACKEND_URL": f"file://{top / 'state'}",
            "PULUMI_HOME": str(top / "home"),
            "PULUMI_CONFIG_PASSPHRASE": "not a secret",
            "PULUMI_SKIP_UPDATE_CHECK": "1",
            "VIRTUAL_ENV": "",
        },
    )


def test_a_yaml_program_adds_the_folder(repository: Repository, tmp_path: Path) -> None:
    program, plugin = tmp_path / "shop", repository.folder / "plugin"
    repository.add(program, str(plugin), {"Pulumi.yaml": "name: shop\nruntime: yaml\n"})
    assert f"packages:\n  bezel: {plugin}\n" in (program / "Pulumi.yaml").read_text()


def test_a_python_program_adds_the_folder(repository: Repository, tmp_path: Path) -> None:
    program = tmp_path / "shop"
    project = "name: shop\nruntime: {name: python, options: {toolchain: uv}}\n"
    files = {"Pulumi.yaml": project, "pyproject.toml": PYTHON_PROJECT}
    repository.add(program, str(repository.folder / "plugin"), files)
    python = program / ".venv" / "bin" / "python"
    code = "from pulumi_bezel.smoke import HealthCheck; print(HealthCheck.__module__)"
    shown = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert shown.stdout == "pulumi_bezel.smoke.health_check\n"


def test_a_typescript_program_adds_the_folder(repository: Repository, tmp_path: Path) -> None:
    program = tmp_path / "shop"
    files = {"Pulumi.yaml": "name: shop\nruntime: nodejs\n", "package.json": PACKAGES}
    repository.add(program, str(repository.folder / "plugin"), files)
    code = 'console.log(typeof require("@pulumi/bezel").smoke.HealthCheck)'
    shown = subprocess.run(["node", "-e", code], cwd=program, capture_output=True, text=True, check=True, timeout=60)
    assert shown.stdout == "function\n"


def test_a_program_adds_the_folder_of_a_git_repository(repository: Repository, tmp_path: Path) -> None:
    """A commit of the clone with the present files."""
    names = ["-c", "user.name=test", "-c", "user.email=test@example.com"]
    git = ["git", "-C", str(repository.folder), *names]
    subprocess.run([*git, "add", "--all"], check=True, timeout=60)
    subprocess.run([*git, "commit", "--quiet", "--allow-empty", "--message", "Present files"], check=True, timeout=60)
    commit = subprocess.run([*git, "rev-parse", "HEAD"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    served = tmp_path / "served" / "acme" / "bezel.git"
    subprocess.run(["git", "clone", "--quiet", "--bare", repository.folder, served], check=True, timeout=120)
    with git_server(tmp_path / "served", tmp_path) as (address, certificate):
        # Beside the usual ones, for what uv may have to download.
        usual = Path(ssl.get_default_verify_paths().openssl_cafile)
        trusted = tmp_path / "trusted.pem"
        trusted.write_text(certificate.read_text() + (usual.read_text() if usual.is_file() else ""))
        program = tmp_path / "shop"
        source = f"{address}/acme/bezel.git/plugin@{commit}"
        files = {"Pulumi.yaml": "name: shop\nruntime: yaml\n"}
        repository.add(program, source, files, SSL_CERT_FILE=str(trusted))
    assert f"{address}/acme/bezel.git/plugin" in (program / "Pulumi.yaml").read_text()
    assert commit in (program / "Pulumi.yaml").read_text()
