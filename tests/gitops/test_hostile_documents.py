"""Objects of the bucket and answers of the forge that are no documents: an error that says so, never a traceback."""

from __future__ import annotations

import contextlib
import copy
import gzip
import json
import socket
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

import pytest

from bezel.engine.changes.planned import Planned, digest
from bezel.engine.events.reader import events_in
from bezel.engine.locks.engine_locks import read_engine_locks, state_of
from bezel.engine.locks.process import is_alive, started_at, this_process
from bezel.engine.locks.record import Lock, Owner, Run, judge, parse, to_json
from bezel.engine.locks.stale_locks import live_lock, stale_lock_pids
from bezel.engine.locks.status import status_of
from bezel.engine.locks.taker import surroundings
from bezel.engine.state.folder import latest_of
from bezel.forge import ForgeError, forge_of
from bezel.forge.objects import Comment, Issue, PullRequest, branch_of, sha_of
from bezel.gitops.review import deploy_record
from bezel.gitops.review.reviews import FOLDER, ReviewPlace, find, others
from bezel.leases.clock import unix
from bezel.operations.deployment.state_reader import read_state
from bezel_base.errors import UserError, format_value
from bezel_base.json_documents import DEEPEST, read_json, whole_number
from tests.support.gitops.fake_bucket import fake_bucket
from tests.support.gitops.fake_forge import REPOSITORY, Fault, fake_forge

DIGITS = "9" * 5000
# Texts of JSON values, or of what looks like one.
VALUES = {
    "deep list": "[" * 200 + "]" * 200,
    "very deep list": "[" * 100_000 + "]" * 100_000,
    "very deep object": '{"a":' * 100_000 + "1" + "}" * 100_000,
    "number of 5000 digits": DIGITS,
    "negative number of 5000 digits": f"-{DIGITS}",
    "number of 400 digits": "9" * 400,
    "number of 20 digits": "9" * 20,
    "negative number": "-1",
    "zero": "0",
    "number beyond floats": "1e999",
    "fraction": "0.5",
    "NaN": "NaN",
    "infinity": "-Infinity",
    "boolean": "true",
    "null": "null",
    "empty text": '""',
    "text of digits": f'"{DIGITS}"',
    "lone surrogate": r'"\ud800"',
    "time before all clocks": '"0001-01-01T00:00:00"',
    "time after all clocks": '"9999-12-31T23:59:59-14:00"',
    "list": "[1]",
    "object": '{"a": 1}',
    "cut": "{",
}
MARK = "\N{SNOWMAN}"
PLANNED = Planned("create", "urn:pulumi:dev::bezel::a:b:C::n", "a:b:C", (), {"x": "1"})
RUN = Run("https://forge.example", REPOSITORY, "7", "1", "deploy", "ann", "c" * 40, "https://forge.example/7")
LOCK = Lock("bezel", "dev", "t", "2026-11-01T10:00:00Z", Owner("ann", "vm", this_process(), RUN)).taken_over(
    Lock("bezel", "dev", "s", "2026-11-01T09:00:00Z", Owner("ann", "vm", this_process(), None))
)
ENGINE = {"pid": 2**22 + 1, "username": "ann", "hostname": "elsewhere", "timestamp": "2026-11-01T10:00:01Z"}
RECORD = {"tree": "t", "changes_digest": digest([PLANNED]), "ended": False, "planned": [PLANNED.as_json()]}
DOCUMENT = {
    "kind": "preview", "stack": "dev", "tree": "t", "state_digest": "sha256:s", "verdict": "allowed",
    "changes_digest": digest([PLANNED]),
}  # fmt: skip
REVIEW = {"document": DOCUMENT, "planned": [PLANNED.as_json()]}
STATE = {"version": 3, "checkpoint": {"latest": {"resources": [{"urn": "u", "type": "t"}]}}}
PLACE = ReviewPlace("bezel", "dev", "t")


def spoilt(record: Any) -> Iterator[bytes]:
    """The record with each of its values, and the whole, in place of each other value of the table."""
    for path in paths(record):
        changed = copy.deepcopy(record)
        holder: Any = changed
        for key in path[:-1]:
            holder = holder[key]
        if path:
            holder[path[-1]] = MARK
        text = json.dumps(changed if path else MARK)
        yield from (text.replace(json.dumps(MARK), value).encode() for value in VALUES.values())


def paths(value: Any) -> Iterator[tuple[Any, ...]]:
    yield ()
    inner = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        yield from ((key, *rest) for rest in paths(item))


@pytest.fixture
def bucket():
    with fake_bucket() as served:
        yield served


def test_a_document_is_read_within_bounds_and_refused_beyond_them() -> None:
    inside = "[" * (DEEPEST - 1) + "1" + "]" * (DEEPEST - 1)
    assert read_json(inside)
    assert read_json(b'{"a": [1, -2.5, 1e3, null, true, "\\u00e9"], "most": 1000000000000000000000}')
    for name in (
        "deep list", "very deep list", "very deep object", "number of 5000 digits", "negative number of 5000 digits",
        "number of 400 digits", "number beyond floats", "NaN", "infinity", "cut",
    ):  # fmt: skip
        with pytest.raises(ValueError):  # noqa: PT011 - one kind for all
            read_json(VALUES[name])
    for value in (True, "1", 1.0, None, [], 0, 11):
        with pytest.raises(ValueError, match="from 1 to 10"):
            whole_number(value, 1, 10)
    assert whole_number(10, 1, 10) == 10


@pytest.mark.slow
def test_no_content_of_a_lock_is_a_traceback() -> None:
    tried = 0
    for content in spoilt(json.loads(to_json(LOCK))):
        lock = parse(content)
        verdict = judge(lock, RUN, is_alive=is_alive, run_state=lambda _: "unknown")
        assert verdict.reason
        assert lock is None or f"{lock.text}{lock.taken_over(lock).text}".encode()
        tried += 1
    assert tried > 500
    assert parse(to_json(LOCK)) == LOCK


@pytest.mark.slow
def test_a_lock_that_cannot_be_read_is_shown_as_one_of_an_unknown_owner(bucket: Any) -> None:
    around = surroundings({})
    for value in VALUES.values():
        states = bucket.client()
        bucket.objects.clear()
        states.create("locks/bezel/dev.json", value.encode())
        status = status_of(states, "bezel", "dev", around)
        assert "is locked by an unknown owner" in status.text()
        assert status.verdict is not None
        assert not status.verdict.has_ended
        json.dumps(status.as_json())


@pytest.mark.slow
def test_no_content_of_an_engine_s_lock_is_a_traceback(bucket: Any) -> None:
    states = bucket.client()
    ended = [(LOCK.since, LOCK.owner), ("0001-01-01T00:00:00", LOCK.owner)]
    for content in spoilt(ENGINE):
        bucket.objects.clear()
        states.create(".pulumi/locks/organization/bezel/dev/a.json", content)
        (lock,) = read_engine_locks(states, "bezel", "dev")
        assert lock.text.encode()
        machine = this_process().machine
        assert state_of(lock, ended, machine=machine, started_at=started_at, seconds_since_takeover=0.0) in (
            "left", "stopping", "living",
        )  # fmt: skip


def test_no_content_of_a_lock_file_of_this_machine_is_a_traceback(tmp_path: Any) -> None:
    folder = tmp_path / ".pulumi/locks/organization/bezel/dev"
    folder.mkdir(parents=True)
    for content in spoilt(ENGINE):
        (folder / "a.json").write_bytes(content)
        assert stale_lock_pids(tmp_path, "bezel", "dev") == []
        assert live_lock(tmp_path, "bezel", "dev") is None
    for content in ("9" * 10, "9" * 400, DIGITS, "-1", "0", "1.5"):
        (folder / "a.json").write_text(f'{{"pid": {content}, "hostname": "{socket.gethostname()}"}}')
        assert stale_lock_pids(tmp_path, "bezel", "dev") == []
        assert live_lock(tmp_path, "bezel", "dev") is None


@pytest.mark.slow
def test_no_content_of_a_review_or_a_deploy_s_record_is_a_traceback(bucket: Any) -> None:
    states = bucket.client()
    name = f"{FOLDER}/bezel/dev/t/s.json"
    for content in spoilt(REVIEW):
        bucket.objects.clear()
        states.create(name, content)
        review = find(states, PLACE, "sha256:s")
        assert review is not None
        assert [*others(states, PLACE)] == ([review] if review.is_sound else [])
    for content in spoilt(RECORD):
        bucket.objects.clear()
        states.create("deploys/bezel/dev.json", content)
        begun = deploy_record.begun_changes(states, "bezel", "dev", "t")
        assert begun is None or isinstance(begun, tuple)
    bucket.objects.clear()
    states.create("deploys/bezel/dev.json", json.dumps(RECORD).encode())
    assert deploy_record.begun_changes(states, "bezel", "dev", "t") == (PLANNED,)


@pytest.mark.slow
def test_a_state_that_cannot_be_read_is_an_error_that_names_it(tmp_path: Any) -> None:
    folder = tmp_path / ".pulumi/stacks/bezel"
    folder.mkdir(parents=True)
    environ = {"PULUMI_BACKEND_URL": f"file://{tmp_path}"}
    plain = [*spoilt(STATE)]
    packed = [gzip.compress(b"{}")[:-3], b"\x1f\x8b", b"\x1f\x8b" + b"x" * 40]
    read = 0
    for content in (*plain, *packed):
        (folder / "dev.json").write_bytes(content)
        try:
            latest_of(content)
        except ValueError:
            with pytest.raises(UserError, match="the state of dev cannot be read"):
                read_state(tmp_path, "bezel", "dev", environ)
        else:
            assert isinstance(read_state(tmp_path, "bezel", "dev", environ), dict)
            read += 1
    assert 0 < read < len(plain)


@pytest.mark.slow
def test_no_object_of_the_forge_is_a_traceback() -> None:
    row = {
        "id": 1,
        "number": 1,
        "user": {"login": "ann"},
        "body": "b",
        "head": {"ref": "b", "repo": {"full_name": "a/b"}},
    }
    for content in spoilt(row):
        try:
            document = read_json(content)
        except ValueError:
            continue
        for read in (Comment.of, Issue.of, PullRequest.of):
            with contextlib.suppress(ForgeError):
                assert format_value(asdict(read(document))).encode()
        if isinstance(document, dict):
            assert len(branch_of(document)) == 2
    with pytest.raises(ForgeError, match="hash"):
        sha_of(None)


@pytest.mark.slow
@pytest.mark.parametrize("value", ["very deep list", "number of 5000 digits", "null", "list", "lone surrogate"])
def test_no_answer_of_the_forge_is_a_traceback(value: str) -> None:
    with fake_forge("github") as server, forge_of(server.environ()) as forge:
        for method, call in (
            ("GET", lambda: forge.comments(1)),
            ("POST", lambda: forge.create_comment(1, "x")),
            ("PATCH", lambda: forge.update_comment(1, "x")),
            ("GET", lambda: forge.find_issues("m")),
            ("POST", lambda: forge.create_issue("t", "b")),
            ("GET", lambda: forge.run_state(7)),
            ("GET", lambda: forge.head_of(1)),
            ("GET", lambda: forge.open_pull_request("b", base="main", title="t", body="b")),
            ("GET", lambda: forge.push_files("b", base="main", files={"a": b"1"}, message="m")),
        ):
            for text in (VALUES[value], f"[{VALUES[value]}]"):
                server.faults[:] = [Fault(method, "", 200, body=text)]
                with contextlib.suppress(ForgeError):
                    call()


def test_an_event_of_the_engine_out_of_bounds_is_not_left_out_in_silence(tmp_path: Any) -> None:
    log = tmp_path / "events"
    log.write_text('{"sequence": 1}\n{"sequence": 2, "cut')
    assert list(events_in(log)) == [{"sequence": 1}]
    for name in ("deep list", "very deep list", "number of 5000 digits", "number beyond floats"):
        log.write_text(f'{{"sequence": 1}}\n{{"resource": {VALUES[name]}}}\n')
        with pytest.raises(UserError, match="unknown what the run changes"):
            list(events_in(log))


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00", "9999-12-31T23:59:59-14:00", "2026", DIGITS])
def test_a_time_that_no_clock_shows_is_no_time(text: str) -> None:
    assert unix(text) is None or isinstance(unix(text), float)
