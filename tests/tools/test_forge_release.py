"""A release is published whole or stays a draft, on GitHub and on Gitea by the same requests."""

from __future__ import annotations

import tarfile
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from bezel.forge import ForgeError
from bezel_base.errors import UserError
from tests.support.tools.fake_releases import FakeReleases, fake_releases
from tools.release import attach
from tools.release.__main__ import main
from tools.release.archives import pack_plugin, pack_policies
from tools.release.assets import build_assets
from tools.release.forge_release import ReleasesOfForge
from tools.site.build import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(params=["github", "gitea"])
def forge(request: pytest.FixtureRequest) -> Iterator[FakeReleases]:
    with fake_releases(request.param) as running:
        yield running


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / name for name in ("one.whl", "two.tar.gz")]
    for path in paths:
        path.write_bytes(path.name.encode())
    return paths


def assets(forge: FakeReleases) -> dict[str, list[str]]:
    names = {release["tag_name"]: [asset["name"] for asset in release["assets"]] for release in forge.releases}
    return {f"{tag} draft" if forge_draft(forge, tag) else tag: value for tag, value in names.items()}


def forge_draft(forge: FakeReleases, tag: str) -> bool:
    return any(release["draft"] for release in forge.releases if release["tag_name"] == tag)


def test_a_release_is_published_with_its_files(forge: FakeReleases, files: list[Path]) -> None:
    forge.add("v0.1.0", {"half.whl": b""}, draft=True)
    forge.add("v0.0.9", {})
    with closing(ReleasesOfForge(forge.facts)) as releases:
        releases.refuse_published("v0.1.0")
        assert releases.publish("v0.1.0", "notes", files).endswith("/releases/v0.1.0")
        assert releases.publish("v0.2.0rc1", "notes", files[:1])
    assert assets(forge) == {"v0.2.0rc1": ["one.whl"], "v0.1.0": ["one.whl", "two.tar.gz"], "v0.0.9": []}
    assert [release.get("prerelease") for release in forge.releases] == [True, False, None]
    assert [release.get("body") for release in forge.releases] == ["notes", "notes", None]


def test_a_release_whose_upload_fails_stays_a_draft(forge: FakeReleases, files: list[Path]) -> None:
    forge.refuses = "two.tar.gz"
    with closing(ReleasesOfForge(forge.facts)) as releases:
        with pytest.raises(ForgeError, match="run the command again later"):
            releases.publish("v0.1.0", "notes", files)
        assert assets(forge) == {"v0.1.0 draft": ["one.whl"]}
        forge.refuses = ""
        releases.publish("v0.1.0", "notes", files)
    assert assets(forge) == {"v0.1.0": ["one.whl", "two.tar.gz"]}


def test_the_newest_published_asset_is_downloaded(forge: FakeReleases, tmp_path: Path) -> None:
    for tag, draft in (("v0.1.0", False), ("v0.2.0", False), ("v0.3.0", True)):
        forge.add(tag, {f"site-{tag}.tar.xz": tag.encode()}, draft=draft)
    with closing(ReleasesOfForge(forge.facts)) as releases:
        file = releases.download(r"site-.*\.tar\.xz", tmp_path / "site")
        assert file is not None
        assert file.read_bytes() == b"v0.2.0"
        assert releases.download(r"site-.*\.zip", tmp_path / "other") is None
    assert not (tmp_path / "other").exists()


def test_a_published_release_is_left_as_it_is(forge: FakeReleases) -> None:
    forge.add("v0.1.0", {"one.whl": b""})
    with closing(ReleasesOfForge(forge.facts)) as releases, pytest.raises(UserError) as refused:
        releases.refuse_published("v0.1.0")
    assert "tag = v0.1.0" in str(refused.value)
    assert "raise the version" in str(refused.value)


def test_files_of_platforms_are_added_once_to_a_published_release(forge: FakeReleases, files: list[Path]) -> None:
    forge.add("v0.1.0", {"one.whl": b"published"})
    with closing(ReleasesOfForge(forge.facts)) as releases:
        assert releases.attach("v0.1.0", files) == ["two.tar.gz"]
        assert releases.attach("v0.1.0", files) == []
    assert assets(forge) == {"v0.1.0": ["one.whl", "two.tar.gz"]}
    assert [*forge.contents.values()] == [b"published", b"two.tar.gz"]


def test_files_of_platforms_are_added_to_no_draft(forge: FakeReleases, files: list[Path]) -> None:
    forge.add("v0.1.0", {}, draft=True)
    with closing(ReleasesOfForge(forge.facts)) as releases, pytest.raises(UserError, match=r"tag = v0\.1\.0"):
        releases.attach("v0.1.0", files)
    assert assets(forge) == {"v0.1.0 draft": []}


@pytest.mark.parametrize(
    ("forge_address", "arguments", "phrase"),
    [
        ("", ["v0.1.0"], "-m tools.release.attach vX.Y.Z FOLDER"),
        ("", ["v0.1.0", "tests/absent"], "GITHUB_REPOSITORY = (not set)"),
        ("http://127.0.0.1:9", ["v0.1.0", "tests/absent"], "-m tools.release.compiled FOLDER"),
    ],
)
def test_a_wrong_call_attaches_nothing_and_says_why(
    forge_address: str,
    arguments: list[str],
    phrase: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, value in (("GITHUB_API_URL", forge_address), ("GITHUB_REPOSITORY", "a/b" if forge_address else "")):
        monkeypatch.setenv(name, value)
    assert attach.main(arguments) == (1 if arguments[1:] else 2)
    assert phrase in capsys.readouterr().err


@pytest.mark.parametrize(
    ("variables", "arguments", "phrase"),
    [
        ({}, [], "-m tools.release vX.Y.Z"),
        ({}, ["v0.1.0"], "tools.release.assets dist"),
        ({"GITHUB_API_URL": "http://127.0.0.1:9"}, ["v0.1.0"], "GITHUB_REPOSITORY = (not set)"),
        ({"GITHUB_API_URL": "http://127.0.0.1:9", "GITHUB_REPOSITORY": "bezel"}, ["v0.1.0"], "set it to OWNER/NAME"),
        ({"GITHUB_API_URL": "http://127.0.0.1:9", "GITHUB_REPOSITORY": "a/b"}, ["v9.9.9"], "the tag is v9.9.9"),
    ],
)
def test_a_wrong_call_publishes_nothing_and_says_why(
    variables: dict[str, str],
    arguments: list[str],
    phrase: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in ("GITHUB_API_URL", "GITHUB_REPOSITORY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert main(arguments) == (1 if arguments else 2)
    assert phrase in capsys.readouterr().err


def test_a_folder_with_files_is_not_published(tmp_path: Path) -> None:
    (tmp_path / "old.whl").touch()
    with pytest.raises(UserError, match=r"old\.whl"):
        build_assets(ROOT, tmp_path)


def test_archives_hold_their_wheels_and_what_the_engine_starts(tmp_path: Path) -> None:
    (tmp_path / "bezel-0.1.0-py3-none-any.whl").write_bytes(b"wheel")
    packed = {}
    for pack in (pack_plugin, pack_policies):
        with tarfile.open(pack(ROOT, tmp_path, "0.1.0")) as tar:
            texts = {name: tar.extractfile(name) for name in tar.getnames()}
            packed[pack] = {name: text.read().decode() for name, text in texts.items() if text}
    plugin, packs = packed[pack_plugin], packed[pack_policies]
    assert {"PulumiPlugin.yaml", "__main__.py", "LICENSE", "wheels/bezel-0.1.0-py3-none-any.whl"} < set(plugin)
    assert 'dependencies = ["bezel-plugin==0.1.0"]' in plugin["pyproject.toml"]
    assert {"hardware_cost/PulumiPolicy.yaml", "security/__main__.py", "security.prod.json"} < set(packs)
    assert "virtualenv: ../.venv" in packs["price/PulumiPolicy.yaml"]
    assert "../../.venv" in (ROOT / "policies" / "price" / "PulumiPolicy.yaml").read_text()
