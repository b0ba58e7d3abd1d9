"""The parts of a copy that need no server: progress, budget, the journal, names of models, hashes."""

from __future__ import annotations

import hashlib
import io
import json
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bezel.rest import Backoff, UnreachableError
from bezel.weights.bucket import Stored
from bezel.weights.errors import StoppedError, WeightsError
from bezel.weights.hub import GIT_BLOB, SHA256, Digest, Expected, Hub, Repository
from bezel.weights.progress import Progress, size
from bezel.weights.retry import FAILURES_IN_A_ROW, RetryBudget, Watch
from bezel.weights.transfer import Entry, Journal
from tests.support.clock import Clock


class Terminal(io.StringIO):
    def isatty(self):
        return True


def output_of(out, *steps):
    clock = Clock()
    progress = Progress(out, clock)
    progress.begin(1_000_000_000)
    for seconds, count in steps:
        clock.now += seconds
        progress.advance(count)
    progress.line("a file: copied")
    progress.end()
    return out.getvalue()


def test_a_terminal_shows_a_bar_that_goes_away():
    text = output_of(Terminal(), (1.0, 250_000_000), (1.0, 250_000_000))
    assert " 50% 500.0 MB of 1.0 GB, 250.0 MB/s, 2 s left" in text
    assert "===============               ]" in text
    assert text.endswith("\r\x1b[K" + "a file: copied\n")


def test_a_log_gets_a_line_now_and_then_and_no_bar():
    text = output_of(io.StringIO(), *[(10.0, 100_000_000)] * 6)
    assert text.splitlines() == [
        "   30% 300.0 MB of 1.0 GB, 10.0 MB/s, 70 s left",
        "   60% 600.0 MB of 1.0 GB, 10.0 MB/s, 40 s left",
        "a file: copied",
    ]


@pytest.mark.parametrize(("count", "text"), [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (58 * 10**9, "58.0 GB")])
def test_bytes_are_written_in_the_hubs_units(count, text):
    assert size(count) == text


def test_failures_in_a_row_end_a_try_and_progress_forgives_them():
    budget = RetryBudget(Watch(60, Backoff(first=0.0, longest=0.0)))
    for _ in range(3):
        for _ in range(FAILURES_IN_A_ROW):
            budget.note_failure(UnreachableError("no"))
        budget.note_progress()
    for _ in range(FAILURES_IN_A_ROW):
        budget.note_failure(UnreachableError("no"))
    with pytest.raises(UnreachableError):
        budget.note_failure(UnreachableError("no"))


def test_a_watch_ends_by_its_deadline_and_by_a_word():
    clock = Clock()
    watch = Watch(5, clock=clock)
    watch.check()
    clock.now = 5.0
    with pytest.raises(WeightsError, match="--deadline = 5\n"):
        watch.check()
    other = Watch(5, clock=clock)
    other.stop()
    with pytest.raises(StoppedError):
        other.wait(100)


@pytest.mark.parametrize(
    ("text", "parsed"),
    [("a/b", ("a/b", "main")), ("a/b-1.c@v1", ("a/b-1.c", "v1")), ("a/b@refs/pr/1", ("a/b", "refs/pr/1"))],
)
def test_a_model_is_named_with_or_without_its_revision(text, parsed):
    repository = Repository.of(text)
    assert (repository.id, repository.revision) == parsed


@pytest.mark.parametrize("text", ["", "a", "a/b@", "a/b/c", "https://huggingface.co/a/b", "a b/c", "../b"])
def test_what_names_no_model_is_refused(text):
    with pytest.raises(WeightsError, match="is not the name of a model"):
        Repository.of(text)


def test_a_hub_that_a_token_could_leak_to_is_refused():
    with pytest.raises(ValueError, match="HF_ENDPOINT"):
        Hub(Watch(1), environ={"HF_ENDPOINT": "http://hub.example"})
    assert Hub(Watch(1), environ={}).base == "https://huggingface.co"


@pytest.mark.parametrize("address", ["http://127.0.0.1:9", "https://nobody.invalid"])
def test_absent_hub_is_asked_once(address):
    watch = Watch(60, Backoff(first=1000.0, longest=1000.0))  # a second try would end by this deadline
    with pytest.raises(UnreachableError, match="the hub does not respond"):
        Hub(watch, environ={"HF_ENDPOINT": address}).files(Repository("a/b"))


@pytest.mark.slow
@given(st.binary(max_size=200), st.binary(min_size=1, max_size=200))
def test_a_hash_holds_for_its_content_and_for_no_other(content, more):
    sha = Expected(SHA256, hashlib.sha256(content).hexdigest(), len(content))
    git = hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
    for expected in (sha, Expected(GIT_BLOB, git, len(content))):
        digest = Digest(expected)
        digest.update(content)
        assert digest.matches
        digest.update(more)
        assert not digest.matches


def stored_model(**changes):
    return Stored(**({"name": "a", "size": 1, "generation": "1"} | changes))


def test_two_objects_are_the_same_by_a_hash_that_both_have():
    assert stored_model(md5="x", crc32c="1").same_content(stored_model(md5="x", crc32c="2"))
    assert stored_model(crc32c="1").same_content(stored_model(md5="x", crc32c="1"))
    assert not stored_model(md5="x").same_content(stored_model(md5="y"))
    assert not stored_model(md5="x").same_content(stored_model(crc32c="1"))
    assert not stored_model(md5="x", size=2).same_content(stored_model(md5="x"))


@pytest.mark.slow
def test_the_journal_forgets_other_content_and_survives_nonsense(tmp_path):
    """The journal forgets what is of another content and survives nonsense."""
    journal = Journal(tmp_path / "deep" / "uploads")
    assert journal.find("p", "c", "0") == ""
    journal.keep(Entry("p", "c", "0", "handle"))
    assert journal.find("p", "c", "0") == "handle"
    assert journal.find("p", "other", "0") == journal.find("p", "c", "7") == journal.find("q", "c", "0") == ""
    (file,) = (tmp_path / "deep" / "uploads").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    for nonsense in ("", "[]", json.dumps({"place": "p"})):
        file.write_text(nonsense)
        assert journal.find("p", "c", "0") == ""
    journal.drop("p")
    journal.drop("p")


def test_a_copy_that_its_caller_gives_up_ends_and_no_other_does():
    """A copy that its caller gives up ends and one that failed does not give its caller up."""
    cancelled = threading.Event()
    watch, other = Watch(60, cancelled=cancelled), Watch(60, cancelled=cancelled)
    other.stop()
    watch.check()
    assert not cancelled.is_set()
    cancelled.set()
    with pytest.raises(StoppedError):
        watch.check()
    with pytest.raises(StoppedError):
        watch.wait(3600)
