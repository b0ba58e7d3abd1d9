"""A recording that tests of several packages read is the same file in each of them."""

from collections import defaultdict
from pathlib import Path

from tests.support.docs.markdown import ROOT


def differing(folders: list[Path]) -> tuple[int, list[str]]:
    """The number of files that stand in several folders of fixtures, and the names of those that differ."""
    contents: dict[str, list[bytes]] = defaultdict(list)
    for folder in folders:
        for file in folder.rglob("*"):
            if file.is_file():
                contents[str(file.relative_to(folder))].append(file.read_bytes())
    copied = {name: texts for name, texts in contents.items() if len(texts) > 1}
    return len(copied), sorted(name for name, texts in copied.items() if len(set(texts)) > 1)


def test_copies_of_a_recording_are_the_same() -> None:
    copied, different = differing([ROOT / "tests" / "fixtures", *ROOT.glob("packages/*/tests/fixtures")])
    assert copied >= 3
    assert different == []


def test_copy_that_was_edited_is_noticed(tmp_path: Path) -> None:
    for folder, text in (("a", "as recorded"), ("b", "edited")):
        (tmp_path / folder / "vllm").mkdir(parents=True)
        (tmp_path / folder / "vllm" / "same.txt").write_text("same")
        (tmp_path / folder / "vllm" / "stream.txt").write_text(text)
    assert differing([tmp_path / "a", tmp_path / "b"]) == (2, ["vllm/stream.txt"])
