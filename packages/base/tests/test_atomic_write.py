"""A file is replaced as a whole or left as it was."""

from pathlib import Path

import pytest

from bezel_base.atomic_write import write_whole


def test_a_file_is_replaced_with_its_permissions(tmp_path: Path) -> None:
    """Nothing lies beside it afterwards."""
    file = tmp_path / "kept"
    file.write_text("before")
    write_whole(file, "after", mode=0o600)
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("after", 0o600)
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("durable", [True, False])
def test_a_reader_never_sees_half_a_file(tmp_path: Path, durable: bool) -> None:
    """Also where the file need not outlive the machine."""
    file = tmp_path / "kept"
    file.write_text("before")
    with file.open() as reader:
        write_whole(file, "after", durable=durable)
        assert (reader.read(), file.read_text()) == ("before", "after")


def test_what_cannot_be_written_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    folder.mkdir()
    with pytest.raises(IsADirectoryError):
        write_whole(folder, "after")
    assert folder.is_dir()
    assert list(tmp_path.iterdir()) == [folder]
