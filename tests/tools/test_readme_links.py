"""Links of a wheel's README: addresses on the forge of the release, and nothing else of the wheel changes."""

from __future__ import annotations

import base64
import hashlib
import zipfile
from typing import TYPE_CHECKING, Literal

import pytest

from bezel.forge import Facts
from tools.release.readme_links import absolute_links, distribution_folders, link_to_forge
from tools.site.build import ROOT

if TYPE_CHECKING:
    from pathlib import Path

README = "[start](../../docs/start.md#first) ![seen](../../docs/a.png) [here](#use) [Go](https://go.dev)"


def forge(kind: Literal["github", "gitea"]) -> Facts:
    return Facts(kind, "https://forge.example/api", "https://forge.example", "acme/llm", "")


@pytest.mark.parametrize(
    ("kind", "page", "picture"),
    [("github", "blob/v1.2.3", "raw/v1.2.3"), ("gitea", "src/tag/v1.2.3", "raw/tag/v1.2.3")],
)
def test_relative_links_get_the_address_of_the_tag(kind: Literal["github", "gitea"], page: str, picture: str) -> None:
    start, seen, here, go = absolute_links(README, "packages/bench", forge(kind), "v1.2.3").split(" ")
    assert start == f"[start](https://forge.example/acme/llm/{page}/docs/start.md#first)"
    assert seen == f"![seen](https://forge.example/acme/llm/{picture}/docs/a.png)"
    assert (here, go) == ("[here](#use)", "[Go](https://go.dev)")


def test_every_relative_link_of_a_distribution_names_a_file() -> None:
    folders = distribution_folders(ROOT)
    assert len(folders) == 15
    for folder in folders:
        text = absolute_links((ROOT / folder / "README.md").read_text(), folder, forge("github"), "v1")
        paths = [part.partition(")")[0].partition("#")[0] for part in text.split("/acme/llm/blob/v1/")[1:]]
        assert [path for path in paths if not (ROOT / path).exists()] == []


def test_rewritten_wheel_keeps_its_other_files(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "bezel-x"\nversion = "1.2.3"\n[tool.uv.workspace]\nmembers = []\n'
    )
    name = "bezel_x-1.2.3.dist-info/METADATA"
    wheel = tmp_path / "bezel_x-1.2.3-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("bezel_x/__init__.py", "[no](link.md)\n")
        archive.writestr(name, "Name: bezel-x\nSummary: [no](link.md)\n\n[start](docs/start.md)\n")
        archive.writestr("bezel_x-1.2.3.dist-info/RECORD", f"bezel_x/__init__.py,sha256=a,14\n{name},sha256=b,9\n")
    link_to_forge(tmp_path, tmp_path, forge("github"), "v1.2.3")
    with zipfile.ZipFile(wheel) as archive:
        texts = {entry: archive.read(entry) for entry in archive.namelist()}
    head = b"Name: bezel-x\nSummary: [no](link.md)\n\n"
    assert texts[name] == head + b"[start](https://forge.example/acme/llm/blob/v1.2.3/docs/start.md)\n"
    digest = base64.urlsafe_b64encode(hashlib.sha256(texts[name]).digest()).decode().rstrip("=")
    rows = texts["bezel_x-1.2.3.dist-info/RECORD"].decode().splitlines()
    assert rows == ["bezel_x/__init__.py,sha256=a,14", f"{name},sha256={digest},{len(texts[name])}"]
    assert texts["bezel_x/__init__.py"] == b"[no](link.md)\n"
