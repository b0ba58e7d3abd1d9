"""What a killed engine had begun to write beside a state file is taken away, and nothing else is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bezel.ops.half_written import sweep

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
    assert sorted(str(file.relative_to(tmp_path)) for file in sweep(tmp_path)) == sorted(empty)
    assert there(tmp_path) == kept


def test_whole_attributes_empty_states_and_other_folders_stay(tmp_path: Path) -> None:
    kept = tree(tmp_path, {f"{STACK}.attrs": '{"md5": "x"}', STACK: "", "passphrase.attrs": ""})
    assert sweep(tmp_path) == []
    assert there(tmp_path) == kept


def test_a_folder_without_a_state_is_none(tmp_path: Path) -> None:
    assert sweep(tmp_path / "none") == []
