"""Locks of files: who is refused one, and who is waited for."""

import fcntl
import threading
from pathlib import Path

import pytest

from bezel_localcloud.core.files.locks import hold_lock, is_locked


class RefusedError(Exception):
    """Another process holds it."""


def test_a_lock_that_another_holds_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with hold_lock(path, 0, RefusedError):
        assert is_locked(path)
        with pytest.raises(RefusedError), hold_lock(path, 0, RefusedError):
            pass
    assert not is_locked(path)


def test_who_looks_for_good_is_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with path.open("w") as looker:
        fcntl.flock(looker, fcntl.LOCK_SH)
        with pytest.raises(RefusedError), hold_lock(path, -60, RefusedError):
            pass


def test_who_only_looks_at_a_lock_is_waited_for(tmp_path: Path) -> None:
    path, outcomes = tmp_path / "lock", []

    def hold() -> None:
        try:
            with hold_lock(path, -1, RefusedError):
                outcomes.append("held")
        except RefusedError:
            outcomes.append("refused")

    with path.open("w") as looker:
        fcntl.flock(looker, fcntl.LOCK_SH)  # as a check that this machine stops
        holder = threading.Thread(target=hold)
        holder.start()
        holder.join(0.05)  # a refusal would end it
        assert outcomes == []
    holder.join()
    assert outcomes == ["held"]
