"""Names of files from a caller: only files of the project are read, and nothing that exists is replaced."""

from pathlib import Path

import pytest

from bezel.operations.bench.files import existing, new
from bezel.operations.bench.target import TargetArguments, options_of
from bezel.operations.context import Context
from bezel_base.errors import UserError

NAMES = (
    "../outside.json",
    "/etc/passwd",
    ".hidden.json",
    ".git/x.json",
    "link.json",
    ".",
    "",
    "a\x00b",
    "a\nb.json",
    "x" * 5000,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "project"
    made.mkdir()
    (tmp_path / "outside.json").write_text("{}")
    (made / "link.json").symlink_to(tmp_path / "outside.json")
    (made / ".hidden.json").write_text("{}")
    (made / "in.json").write_text("{}")
    return made


@pytest.mark.parametrize("name", [*NAMES, "gone.json"])
def test_no_other_file_is_read(folder: Path, name: str) -> None:
    with pytest.raises(UserError, match="FILE") as refused:
        existing(folder, ["in.json", name], "FILE")
    assert len(refused.value.problems) == 1
    assert existing(folder, ["in.json"], "FILE") == [folder / "in.json"]


@pytest.mark.parametrize("name", [*NAMES, "in.json", "out.txt", "none/out.json"])
def test_no_other_file_is_written_and_none_that_exists(folder: Path, name: str) -> None:
    with pytest.raises(UserError, match="--out"):
        new(folder, name, "--out", ".json")
    assert new(folder, "out.json", "--out", ".json") == folder / "out.json"


def test_a_result_with_its_journal_is_continued(folder: Path) -> None:
    (folder / "in.journal").write_text("")
    assert new(folder, "in.json", "--out", ".json", beside=".journal") == folder / "in.json"
    with pytest.raises(UserError, match="overwritten"):
        new(folder, "in.json", "--out", ".json")


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com",
        "http://10.0.0.1:8000",
        "http://127.0.0.1.example.com",
        "http://localhost@example.com",
        "http://user:password@127.0.0.1",
        "https://127.0.0.1",
        "http://127.0.0.1/v1",
        "http://127.0.0.1?x=http://example.com",
        "http://[::ffff:8.8.8.8]",
        "http://127.0.0.1:0",
        "http://127.0.0.1:x",
        "file:///etc/passwd",
        "--url",
        "127.0.0.1",
        "http://\u217b27.0.0.1",
    ],
)
def test_no_other_address_than_one_of_the_loopback_is_loaded(folder: Path, url: str) -> None:
    with pytest.raises(UserError, match="--url"):
        options_of(Context(folder, {}), TargetArguments(url=url, out="x.json"))


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:8000", "http://localhost:8000", "http://[::1]:8000", "http://127.8.0.1"]
)
def test_a_server_on_the_loopback_is_loaded_without_an_identity(folder: Path, url: str) -> None:
    assert options_of(Context(folder, {}), TargetArguments(url=url, out="x.json")) == ["--url", url, "--public"]


@pytest.mark.parametrize("named", [{}, {"stack": "dev", "url": "http://127.0.0.1:8000"}])
def test_one_server_is_loaded(folder: Path, named: dict[str, str]) -> None:
    with pytest.raises(UserError, match="loads one server"):
        options_of(Context(folder, {}), TargetArguments.model_validate({"out": "x.json", **named}))
