"""Settings for the import of numpy and pydantic: the user's own stay, and none is left to later processes."""

import os

import pytest

from bezel_bench.result.lean_imports import lean_imports


def test_settings_hold_for_the_import_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    before = dict(os.environ)
    with lean_imports():
        assert os.environ["OPENBLAS_NUM_THREADS"] == "1"
    assert dict(os.environ) == before


def test_a_setting_of_the_user_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "4")
    with lean_imports():
        assert os.environ["OPENBLAS_NUM_THREADS"] == "4"
    assert os.environ["OPENBLAS_NUM_THREADS"] == "4"
