"""One version of all distributions: in their files, in their requirements of each other, and written by one command."""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path

import pytest

from tools.release.version import files, main, versions, write

ROOT = Path(__file__).parents[2]
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the files that have the version."""
    for file in files(ROOT):
        copy = tmp_path / file.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, copy)
    return tmp_path


def requirements(root: Path) -> dict[str, list[str]]:
    """Distribution of the workspace -> its requirements of others of it, those of extras included."""
    read = [tomllib.loads(file.read_text())["project"] for file in files(root) if file.suffix == ".toml"]
    lists = {each["name"]: [each["dependencies"], *each.get("optional-dependencies", {}).values()] for each in read}
    return {name: [item for one in group for item in one if item.startswith("bezel")] for name, group in lists.items()}


def test_all_files_of_this_tree_have_one_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert set(versions(ROOT)) == {VERSION}
    assert len(versions(ROOT)[VERSION]) >= 18
    assert main([]) == 0
    assert capsys.readouterr().out == f"{VERSION}\n"


def test_members_require_each_other_exactly() -> None:
    required = requirements(ROOT)
    assert len(required) >= 12
    assert sum(map(len, required.values())) >= 30
    assert [item for items in required.values() for item in items if not item.endswith(f"=={VERSION}")] == []


def test_a_new_version_is_written_everywhere(tree: Path) -> None:
    write(tree, "1.20.3rc1")
    assert set(versions(tree)) == {"1.20.3rc1"}
    assert all(item.endswith("==1.20.3rc1") for items in requirements(tree).values() for item in items)
    changed = (tree / "pyproject.toml").read_text()
    assert changed.replace("1.20.3rc1", VERSION) == (ROOT / "pyproject.toml").read_text()
    assert "pulumi>=3.259,<4" in changed
    assert [file for file in tree.rglob(".*") if file.is_file()] == []


def test_a_version_that_differs_in_one_file_is_seen(tree: Path) -> None:
    pack = tree / "policies" / "price" / "PulumiPolicy.yaml"
    pack.write_text(pack.read_text().replace(VERSION, "9.9.9"))
    assert versions(tree)["9.9.9"] == ["policies/price/PulumiPolicy.yaml"]
    write(tree, VERSION)
    assert set(versions(tree)) == {VERSION}


@pytest.mark.parametrize("version", ["", "1", "1.2", "v1.2.3", "1.2.3-rc1", '1.2.3"', "1.2.3 ", "1.2.3+local"])
def test_what_names_no_release_is_refused(tree: Path, version: str) -> None:
    with pytest.raises(ValueError, match=r"write e\.g\. 0\.2\.0"):
        write(tree, version)
    assert set(versions(tree)) == {VERSION}
