"""The daemon is stopped by the last command that uses it, and by none while another one uses it."""

from contextlib import ExitStack
from itertools import permutations
from pathlib import Path

import pytest

from bezel_localcloud.core.files.locks import using


@pytest.mark.parametrize("leaving", [*permutations(range(3))])
def test_of_all_that_use_it_exactly_the_last_one_may_stop_it(tmp_path: Path, leaving: tuple[int, ...]) -> None:
    with ExitStack() as stack:
        uses = [stack.enter_context(using(tmp_path)) for _ in leaving]
        assert [uses[one].take_alone() for one in leaving] == [False, False, True]


def test_one_that_ended_is_no_user_and_one_that_shares_again_is(tmp_path: Path) -> None:
    with using(tmp_path) as first:
        with using(tmp_path) as second:
            assert not second.take_alone()
        assert first.take_alone()
        first.share()
        with using(tmp_path) as third:
            assert not third.take_alone()


def test_directories_are_used_apart(tmp_path: Path) -> None:
    with using(tmp_path / "one") as first, using(tmp_path / "two") as second:
        assert first.take_alone()
        assert second.take_alone()
