"""Copies from one bucket to another: Cloud Storage moves the bytes, in steps where it must; a kill costs one step."""

from __future__ import annotations

import itertools

import pytest

from bezel.rest import RestError
from bezel.weights.bucket import Bucket
from bezel.weights.errors import WeightsError
from bezel_localcloud import control
from tests.support.weights.copies import FILES, LARGE, WANTED, Shelf
from tests.support.weights.fake_hub import FakeHub

pytestmark = pytest.mark.slow

NUMBERS = itertools.count()
STEPS = bytes(20 * 1024 * 1024)  # three steps of localcloud between two locations


@pytest.fixture
def shelf(endpoint, tmp_path, monkeypatch):
    for name, value in control.environment(endpoint).items():
        monkeypatch.setenv(name, value)
    made = Shelf(endpoint, f"target-{next(NUMBERS)}", tmp_path, FakeHub())
    # Each client would read the key file anew, which takes 50 ms of CPU.
    monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", made.token)
    made.make()
    made.make(f"{made.name}-source", "EU")
    for path, content in FILES.items():
        made.put(f"m/{path}", content, f"{made.name}-source")
    return made


def test_a_model_is_copied_and_a_second_copy_copies_nothing(shelf):
    outcome = shelf.rewrite(f"{shelf.name}-source")
    assert (outcome.failures, outcome.copied, outcome.left_out) == ([], len(WANTED), 2)
    assert shelf.stored_objects() == WANTED
    before = shelf.generations()
    again = shelf.rewrite(f"{shelf.name}-source")
    assert (again.copied, again.unchanged, shelf.generations()) == (0, len(WANTED), before)


def test_what_differs_is_replaced(shelf):
    shelf.put("m/config.json", b"x" * len(FILES["config.json"]))
    assert shelf.rewrite(f"{shelf.name}-source").failures == []
    assert shelf.stored_objects() == WANTED


class Breaking(Bucket):
    """Loses the answer to the second step of the large file, as a kill would."""

    steps = 0

    def rewrite(self, source, what, name, generation, token):
        rewritten = super().rewrite(source, what, name, generation, token)
        self.steps += name.endswith(LARGE)
        if self.steps == 2 and name.endswith(LARGE):
            raise RestError("lost")
        return rewritten


def test_a_copy_of_several_steps_goes_on_where_it_was(shelf):
    shelf.put(f"m/{LARGE}", STEPS, f"{shelf.name}-source")
    assert shelf.rewrite(f"{shelf.name}-source", bucket_class=Breaking).failures == [f"{LARGE}: lost"]
    assert LARGE not in shelf.stored_objects()
    (entry,) = shelf.folder.glob("*.json")
    assert "gs://" in entry.read_text()
    assert shelf.rewrite(f"{shelf.name}-source").failures == []
    assert shelf.stored_objects()[LARGE] == STEPS
    assert not list(shelf.folder.glob("*.json"))


def test_a_source_that_is_not_there_is_reported(shelf):
    with pytest.raises(WeightsError, match="bucket absent-bucket\n   does not exist"):
        shelf.rewrite("absent-bucket")
    with pytest.raises(WeightsError, match="is not a complete model"):
        shelf.rewrite(f"{shelf.name}-source", "elsewhere")
