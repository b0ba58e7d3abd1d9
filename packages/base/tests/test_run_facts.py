"""Facts of a program reach its run unchanged; anything else is no fact and no error."""

import json
from pathlib import Path

import pytest

from bezel_base.run_facts import VARIABLE, read_facts, tell_fact


def test_facts_are_read_by_kind_in_order(tmp_path: Path) -> None:
    run = {VARIABLE: str(tmp_path / "facts.json")}
    tell_fact("quota_use", "L4: 1 of 3\nused", run)
    tell_fact("rollback", "pinned to chat-1", run)
    tell_fact("quota_use", "CPU: ½", run)
    assert read_facts(tmp_path / "facts.json") == {
        "quota_use": ("L4: 1 of 3\nused", "CPU: ½"),
        "rollback": ("pinned to chat-1",),
    }
    assert [file.name for file in tmp_path.iterdir()] == ["facts.json"]


def test_program_without_run_tells_nothing(tmp_path: Path) -> None:
    tell_fact("quota_use", "L4: 1 of 3", {})
    tell_fact("quota_use", "L4: 1 of 3", {VARIABLE: str(tmp_path / "gone" / "facts.json")})
    assert list(tmp_path.iterdir()) == []
    assert read_facts(tmp_path / "facts.json") == {}


@pytest.mark.parametrize(
    "content",
    ["", "{", "[1]", "null", '{"quota_use": "text"}', '{"quota_use": [1, null]}', '{"other": ["a"]}', "[" * 200],
)
def test_other_content_holds_no_facts(content: str, tmp_path: Path) -> None:
    (tmp_path / "facts.json").write_text(content)
    assert not any(read_facts(tmp_path / "facts.json").values())


def test_file_beyond_its_bound_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "facts.json").write_text(json.dumps({"quota_use": ["x" * (1 << 20)]}))
    assert read_facts(tmp_path / "facts.json") == {}
