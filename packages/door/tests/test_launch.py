"""Start of a door: the container's command runs the archive of its digest."""

import bz2
import hashlib

from bezel_door.archive import LARGEST, door_archive, packed_archive
from bezel_door.launch import arguments_of


def test_command_ends_with_the_place_and_the_digest_of_the_archive() -> None:
    first, second = arguments_of(b"a"), arguments_of(b"b")
    assert first[-2:] == ("/door/door.pyz.bz2", hashlib.sha256(b"a").hexdigest())
    assert first[:-1] == second[:-1]
    assert first != second


def test_command_imports_nothing_from_the_working_folder() -> None:
    assert arguments_of(b"a")[0] == "-I"


def test_archive_is_packed_into_what_a_secret_holds() -> None:
    assert bz2.decompress(packed_archive()) == door_archive()
    assert len(packed_archive()) <= LARGEST
