"""Where policy packs are found: in a checkout, in a virtual environment, outside of any."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from bezel.cli.main import main
from bezel.engine.project.installed_packs import UnknownPackError, installed_pack

ROOT = Path(__file__).parents[2]
PACKS = ("hardware_cost", "price", "security")
SECONDS = 60


def ask(path: str) -> subprocess.CompletedProcess[str]:
    """`bezel policies path hardware_cost` of a process whose path of modules is changed first."""
    text = f"import sys; {path}; from bezel.cli.main import main; sys.exit(main(['policies', 'path', 'hardware_cost']))"
    command = [sys.executable, "-c", text]
    return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False, cwd="/")


@pytest.mark.parametrize("name", PACKS)
def test_the_packs_of_a_checkout_are_its_own(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policies", "path", name]) == 0
    assert capsys.readouterr().out == f"{ROOT / 'policies' / name}\n"


@pytest.mark.parametrize(
    ("name", "near"), [("hardware-cost", "hardware_cost"), ("prise", "price"), ("../price", "price")]
)
def test_an_unknown_pack_is_refused_with_those_that_exist(name: str, near: str) -> None:
    with pytest.raises(UnknownPackError, match="there are hardware_cost, price, security") as refused:
        installed_pack(name)
    assert f"Repair: name {near}." in str(refused.value)
    assert refused.value.exit_code == 2


@pytest.mark.slow
def test_the_packs_of_an_environment_are_those_of_its_package(tmp_path: Path) -> None:
    packages = tmp_path / "lib" / "python3.99" / "site-packages"
    pack = packages / "bezel_policies" / "packs" / "hardware_cost"
    pack.mkdir(parents=True)
    (pack / "PulumiPolicy.yaml").touch()
    (packages / "bezel_policies" / "__init__.py").touch()
    answer = ask(f"sys.path.insert(0, {str(packages)!r})")
    assert answer.returncode == 1
    assert "outside of a virtual environment" in answer.stderr
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").touch()
    answer = ask(f"sys.path.insert(0, {str(packages)!r})")
    assert (answer.returncode, answer.stdout) == (0, f"{pack}\n")


@pytest.mark.slow
def test_an_environment_without_packs_says_what_to_install() -> None:
    answer = ask("sys.path[:] = [each for each in sys.path if not each.rstrip('/').endswith('/policies')]")
    assert (answer.returncode, answer.stdout) == (1, "")
    assert "run `pip install bezel-policies`" in answer.stderr


@pytest.mark.parametrize("name", PACKS)
def test_both_folders_of_a_pack_start_it_alike(name: str) -> None:
    """In the checkout and in the package: only the environment that they name differs."""
    repository_folder, packaged = (ROOT / "policies" / folder / name for folder in (".", "bezel_policies/packs"))
    assert (repository_folder / "__main__.py").read_bytes() == (packaged / "__main__.py").read_bytes()
    read = [yaml.safe_load((folder / "PulumiPolicy.yaml").read_text()) for folder in (repository_folder, packaged)]
    environments = [each.pop("runtime")["options"]["virtualenv"] for each in read]
    assert read[0] == read[1]
    assert (repository_folder / environments[0]).resolve() == ROOT / ".venv"
    # VENV/lib/pythonX.Y/site-packages/bezel_policies/packs/NAME
    assert environments[1] == "/".join([".."] * 6)


def test_each_pack_has_both_folders() -> None:
    for folder in (ROOT / "policies", ROOT / "policies" / "bezel_policies" / "packs"):
        assert {file.parent.name for file in folder.glob("*/PulumiPolicy.yaml")} == set(PACKS)
