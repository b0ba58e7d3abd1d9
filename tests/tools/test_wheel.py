"""Each wheel holds one package of the project's own name: its files, its types, its readme and its license."""

from __future__ import annotations

import functools
import subprocess
import tomllib
import zipfile
from dataclasses import dataclass, field
from email import message_from_bytes
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from packaging.requirements import Requirement

if TYPE_CHECKING:
    from collections.abc import Mapping
    from email.message import Message

ROOT = Path(__file__).parents[2]
# Folders that a program of somebody else has too.
COMMON_NAMES = {
    "bootstrap",
    "components",
    "docs",
    "packages",
    "policies",
    "providers",
    "services",
    "smoke",
    "stacks",
    "tests",
    "tools",
}


@dataclass(frozen=True)
class Member:
    """A distribution of the workspace: its folder and what its pyproject.toml says."""

    folder: Path
    project: dict[str, object]

    @property
    def name(self) -> str:
        """Name of its package."""
        return str(self.project["name"]).replace("-", "_")


@functools.cache
def members() -> tuple[Member, ...]:
    """The distributions of the workspace, the program first."""
    root_project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    folders = [
        folder for glob in root_project["tool"]["uv"]["workspace"]["members"] for folder in sorted(ROOT.glob(glob))
    ]
    read = [tomllib.loads((folder / "pyproject.toml").read_text()) for folder in folders]
    return (
        Member(ROOT, root_project["project"]),
        *(Member(*pair) for pair in zip(folders, (r["project"] for r in read), strict=True)),
    )


@dataclass(frozen=True)
class Wheel:
    """What a wheel holds: the names of its files, its metadata, and the texts of its data."""

    files: frozenset[str]
    metadata: Message
    texts: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> Wheel:
        """Read a wheel."""
        with zipfile.ZipFile(path) as archive:
            names = frozenset(name for name in archive.namelist() if not name.endswith("/"))
            described = next(name for name in names if name.endswith(".dist-info/METADATA"))
            texts = {name: archive.read(name).decode() for name in names if name.endswith((".json", ".yaml"))}
            return cls(names, message_from_bytes(archive.read(described)), texts)

    @property
    def top_level(self) -> set[str]:
        """Names that it installs into a folder for packages."""
        return {name.partition("/")[0] for name in self.files if ".dist-info/" not in name}


@pytest.fixture(scope="module")
def wheels(wheels: Path) -> dict[str, Wheel]:
    """Package -> its wheel."""
    return {path.name.partition("-")[0]: Wheel.read(path) for path in wheels.glob("*.whl")}


def tracked_files(member: Member) -> set[str]:
    """Files of a member's package in git, relative to the member's folder."""
    listed = subprocess.run(
        ["git", "ls-files", member.name], cwd=member.folder, check=True, capture_output=True, text=True, timeout=60
    )
    return set(listed.stdout.split())


def readme(metadata: Message) -> str:
    """The text below a wheel's metadata."""
    payload = metadata.get_payload(decode=True)
    assert isinstance(payload, bytes)
    return payload.decode().strip()


@pytest.mark.slow
def test_every_member_has_a_wheel_and_nothing_else_has(wheels: dict[str, Wheel]) -> None:
    assert set(wheels) == {member.name for member in members()}
    assert len(wheels) >= 12


@pytest.mark.slow
@pytest.mark.parametrize("member", members(), ids=lambda member: member.name)
def test_a_wheel_installs_one_name_with_all_files(wheels: dict[str, Wheel], member: Member) -> None:
    wheel = wheels[member.name]
    assert wheel.top_level == {member.name}
    assert tracked_files(member) - wheel.files == set()
    assert len(tracked_files(member)) > 3


@pytest.mark.slow
def test_the_policies_have_the_limits_of_this_repository(wheels: dict[str, Wheel]) -> None:
    limits = {f"bezel_policies/packs/{file.name}": file.read_text() for file in (ROOT / "policies").glob("*.json")}
    assert len(limits) >= 4
    texts = wheels["bezel_policies"].texts
    assert {name: texts[name] for name in texts if name.endswith(".json")} == limits


@pytest.mark.slow
def test_no_wheel_installs_a_name_that_other_programs_have(wheels: dict[str, Wheel]) -> None:
    names = {name for wheel in wheels.values() for name in wheel.top_level}
    assert not names & COMMON_NAMES
    assert all(name == "bezel" or name.startswith("bezel_") for name in names)
    assert len(names) == len(wheels), "two wheels install one name"


@pytest.mark.slow
@pytest.mark.parametrize("member", members(), ids=lambda member: member.name)
def test_a_wheel_says_what_it_is(wheels: dict[str, Wheel], member: Member) -> None:
    metadata, files = wheels[member.name].metadata, wheels[member.name].files
    assert metadata["License-Expression"] == "Apache-2.0"
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in files)
    assert metadata["Summary"] == member.project["description"]
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert readme(metadata) == (member.folder / "README.md").read_text().strip()
    assert f"{member.name}/py.typed" in files


@pytest.mark.slow
def test_wheels_require_each_other_in_their_own_version(wheels: dict[str, Wheel]) -> None:
    required = [text for wheel in wheels.values() for text in wheel.metadata.get_all("Requires-Dist") or []]
    bezel_requirements = [Requirement(text) for text in required if text.startswith("bezel")]
    assert len(bezel_requirements) >= 30
    assert {str(each.specifier) for each in bezel_requirements} == {f"=={members()[0].project['version']}"}


def test_members_have_one_version_license_and_python() -> None:
    for key in ("version", "license", "requires-python"):
        assert {str(member.project[key]) for member in members()} == {str(members()[0].project[key])}, key
    texts = {(member.folder / "LICENSE").read_text() for member in members()}
    assert len(texts) == 1


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (("bezel_x/__init__.py", "bezel_x-1.dist-info/METADATA"), {"bezel_x"}),
        (("bezel_x/__init__.py", "components/providers/x.py", "smoke.py"), {"bezel_x", "components", "smoke.py"}),
        (("bezel_x-1.data/purelib/tests/x.py",), {"bezel_x-1.data"}),
    ],
)
def test_a_second_name_in_a_wheel_is_seen(files: tuple[str, ...], expected: set[str]) -> None:
    assert Wheel(frozenset(files), message_from_bytes(b"")).top_level == expected
