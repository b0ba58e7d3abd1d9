"""The comparison of two checkouts finds a renamed field of a record, and no difference of a checkout with itself."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RECORD = "bezel/weights/transfer.py"
FIELD = "    replaces: str\n"
pytestmark = pytest.mark.slow


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout whose program is a copy of this one's, and the rest this one's own."""
    for entry in ROOT.iterdir():
        if entry.name != "bezel":
            (tmp_path / entry.name).symlink_to(entry)
    shutil.copytree(ROOT / "bezel", tmp_path / "bezel")
    return tmp_path


def compare(checkout: Path) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, ROOT / "tools" / "measure" / "compare_interfaces.py", checkout, ROOT]
    return subprocess.run([*command, "--only", "records"], capture_output=True, text=True, check=False, timeout=110)


def test_a_renamed_field_of_a_record_is_a_difference(checkout: Path) -> None:
    file = checkout / RECORD
    assert FIELD in file.read_text()
    file.write_text(file.read_text().replace(FIELD, FIELD.replace("replaces", "former")))
    ended = compare(checkout)
    lines = [line for line in ended.stdout.splitlines() if line[0] in "-+!"]
    assert lines == [
        *(f"- formats / records / upload / .former / {word}: 1" for word in ("field", "str")),
        *(f"+ formats / records / upload / .replaces / {word}: 1" for word in ("field", "str")),
    ]
    assert ended.returncode == 1


def test_the_same_records_differ_in_nothing(checkout: Path) -> None:
    ended = compare(checkout)
    assert ended.stdout.endswith("nothing differs\n")
    assert ended.returncode == 0


def test_a_checkout_without_environment_is_named_with_the_repair(tmp_path: Path) -> None:
    ended = compare(tmp_path)
    assert ended.returncode == 2
    assert f"{tmp_path} did not answer" in ended.stderr
    assert "make setup" in ended.stderr
    assert "Traceback" not in ended.stderr
