"""Start of a door: the container's command runs the archive of its digest."""

import hashlib

from bezel_door.launch import arguments_of


def test_command_ends_with_the_place_and_the_digest_of_the_archive() -> None:
    first, second = arguments_of(b"a"), arguments_of(b"b")
    assert first[-2:] == ("/door/door.pyz", hashlib.sha256(b"a").hexdigest())
    assert first[:-1] == second[:-1]
    assert first != second


def test_command_imports_nothing_from_the_working_folder() -> None:
    assert arguments_of(b"a")[0] == "-I"
