"""What a killed engine had begun to write beside a state file is taken away, and nothing else is."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from bezel.engine.state.folder import remove_truncated

if TYPE_CHECKING:
    from pathlib import Path

STACK = ".pulumi/stacks/bezel/one.json"


def tree(folder: Path, files: dict[str, str]) -> dict[str, str]:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return files


def there(folder: Path) -> dict[str, str]:
    return {str(file.relative_to(folder)): file.read_text() for file in folder.rglob("*") if file.is_file()}


def test_empty_attributes_go_wherever_they_lie(tmp_path: Path) -> None:
    kept = tree(tmp_path, {STACK: '{"version": 3}', ".pulumi/meta.yaml": "version: 1"})
    empty = [f"{STACK}.attrs", ".pulumi/meta.yaml.attrs", ".pulumi/history/bezel/one/one-1.history.json.attrs"]
    tree(tmp_path, dict.fromkeys(empty, ""))
    assert sorted(str(file.relative_to(tmp_path)) for file in remove_truncated(tmp_path)) == sorted(empty)
    assert there(tmp_path) == kept


def test_whole_attributes_empty_states_and_other_folders_stay(tmp_path: Path) -> None:
    kept = tree(tmp_path, {f"{STACK}.attrs": '{"md5": "x"}', STACK: "", "passphrase.attrs": ""})
    assert remove_truncated(tmp_path) == []
    assert there(tmp_path) == kept


def test_a_folder_without_a_state_is_none(tmp_path: Path) -> None:
    assert remove_truncated(tmp_path / "none") == []


def test_a_lock_that_a_full_disk_has_cut_goes_and_a_whole_one_stays(tmp_path: Path) -> None:
    locks = ".pulumi/locks/organization/bezel/one"
    kept = tree(tmp_path, {f"{locks}/a.json": '{"pid": 1}', f"{locks}/a.json.attrs": "{}", STACK: '{"cut'})
    cut = {f"{locks}/b.json": "", f"{locks}/c.json": '{"pid": 12', f"{locks}/c.json.attrs": '{"user.ca'}
    tree(tmp_path, cut)
    assert sorted(str(file.relative_to(tmp_path)) for file in remove_truncated(tmp_path)) == sorted(cut)
    assert there(tmp_path) == kept


def test_a_lock_that_never_got_its_name_is_removed(tmp_path: Path) -> None:
    """A lock that never got its name goes unless it is just being written."""
    part = ".pulumi/locks/organization/bezel/one/a.json.18eaa28d9345b41a.tmp"
    kept = tree(tmp_path, {part: "", f"{STACK}.18eaa28d9345b41a.tmp": "{"})
    assert remove_truncated(tmp_path) == []
    assert there(tmp_path) == kept
    hour_ago = time.time() - 3600
    os.utime(tmp_path / part, (hour_ago, hour_ago))
    assert remove_truncated(tmp_path) == [tmp_path / part]
