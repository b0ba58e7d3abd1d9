"""The forge's API as GitHub and Gitea serve it: same results, deadlines kept, the token sent nowhere else or shown."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

from bezel.forge import Facts, Forge, ForgeError, forge_of, pull_request_of
from bezel.forge.transport import Transport
from bezel_base.loopback.listeners import bind
from tests.support.clock import Clock
from tests.support.gitops.fake_forge import BOTS, REPOSITORY, TOKEN, Fault, fake_forge

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.gitops.fake_forge import FakeForge


@pytest.fixture(params=["github", "gitea"])
def fake(request: pytest.FixtureRequest) -> Iterator[FakeForge]:
    with fake_forge(request.param) as server:
        yield server


def client(fake: FakeForge, clock: Clock | None = None, **changes: str) -> Forge:
    facts = Facts.of(fake.environ() | changes)
    assert facts is not None
    clock = clock or Clock()
    transport = Transport(facts, clock=clock, wall_clock=clock, sleep=clock.sleep, dice=lambda: 0.0)
    return Forge(facts, transport)


def test_comments_are_listed_from_all_pages_created_updated_and_deleted(fake: FakeForge) -> None:
    fake.page_size = 2
    for number in range(5):
        fake.add_comment(3, f"user{number}", "hello")
    with client(fake) as forge:
        made = forge.create_comment(3, "mine")
        assert made.author == forge.own_login == BOTS[fake.kind]
        assert [comment.author for comment in forge.comments(3)] == [f"user{n}" for n in range(5)] + [forge.own_login]
        assert forge.update_comment(made.id, "mended").body == "mended"
        forge.delete_comment(made.id)
        forge.delete_comment(made.id)  # gone already
        assert len(forge.comments(3)) == 5
        assert forge.comments(4) == []


def test_the_token_goes_to_the_forge_alone(fake: FakeForge) -> None:
    fake.page_size = 1  # the links of its pages lead elsewhere
    fake.add_issue(BOTS[fake.kind], "a", "<!-- m -->")
    fake.add_issue(BOTS[fake.kind], "b", "<!-- m -->")
    with client(fake) as forge:
        assert len(forge.find_issues("<!-- m -->")) == 2
        fake.faults.append(Fault("GET", "/comments", 302, {"Location": "http://127.0.0.1:1/"}))
        with pytest.raises(ForgeError, match="moved"):
            forge.comments(3)
    assert TOKEN not in repr(Facts.of(fake.environ()))


def test_no_plain_http_beyond_this_machine() -> None:
    facts = Facts.of({"GITHUB_API_URL": "http://forge.example/api/v1", "GITHUB_REPOSITORY": "a/b", "GITHUB_TOKEN": "x"})
    assert facts is not None
    with pytest.raises(ForgeError, match="use https"):
        Forge(facts).comments(1)


@pytest.mark.parametrize(
    ("answer", "state"),
    [
        ({"status": "completed", "conclusion": "failure"}, "ended"),
        ({"status": "cancelled"}, "ended"),  # Forgejo
        ({"status": "in_progress"}, "running"),
        ({"status": "queued"}, "running"),
        ({"status": "waiting"}, "running"),
        ({"status": "something new"}, "unknown"),
        ({}, "unknown"),
        ({"status": "in_progress", "run_attempt": 2}, "ended"),
        ({"status": "in_progress", "run_attempt": 1}, "running"),
    ],
)
def test_the_state_of_a_run_is_the_forges(fake: FakeForge, answer: dict[str, object], state: str) -> None:
    fake.runs[9] = {"id": 9, **answer}
    with client(fake) as forge:
        assert forge.run_state(9, attempt=1) == state
        assert forge.run_state("10") == "unknown"
        assert forge.run_state(9, repository="other/place") == "unknown"
        assert forge.run_state(9, server_url="https://another.example") == "unknown"
        assert forge.run_state("9/../../x") == "unknown"


def test_an_earlier_attempt_of_the_own_run_has_ended(fake: FakeForge) -> None:
    fake.runs[7] = {"status": "in_progress"}
    with client(fake, GITHUB_RUN_ATTEMPT="2") as forge:
        assert forge.run_state(7, attempt=1) == "ended"
        assert forge.run_state(7, attempt=2) == "running"


def test_issues_are_found_by_marker_and_author(fake: FakeForge) -> None:
    fake.page_size = 2
    fake.add_issue("mallory", "forged", "<!-- drift -->")
    fake.add_issue(BOTS[fake.kind], "other", "nothing")
    with client(fake) as forge:
        assert forge.find_issues("<!-- drift -->") == []
        made = forge.create_issue("Drift", "<!-- drift -->\ntext")
        fake.add_issue(BOTS[fake.kind], "a pull request", "<!-- drift -->", pull=True)
        assert forge.find_issues("<!-- drift -->") == [made]
        assert forge.update_issue(made.number, body="<!-- drift --> new").body == "<!-- drift --> new"
        forge.close_issue(made.number)
        assert forge.find_issues("<!-- drift -->") == []
        assert [issue.state for issue in forge.find_issues("<!-- drift -->", state="all")] == ["closed"]


def test_a_change_becomes_one_pull_request_and_is_updated(fake: FakeForge) -> None:
    fake.branches["main"] = {"kept.csv": b"1"}
    with client(fake) as forge:
        for content in (b"old", b"new"):
            forge.push_files("bezel/prices", base="main", files={"prices.csv": content}, message="Refresh the prices")
            pull = forge.open_pull_request("bezel/prices", base="main", title="Prices", body=content.decode())
    assert fake.branches["bezel/prices"] == {"kept.csv": b"1", "prices.csv": b"new"}
    assert fake.branches["main"] == {"kept.csv": b"1"}
    assert [(p["number"], p["body"]) for p in fake.pulls] == [(pull.number, "new")]


def test_a_pull_request_of_a_fork_with_the_same_branch_is_left_alone(fake: FakeForge) -> None:
    fork = {"number": 1, "state": "open", "head": {"ref": "bezel/prices", "repo": {"full_name": "mallory/gemma"}}}
    deleted = {"number": 2, "state": "open", "head": {"ref": "bezel/prices", "repo": None}}
    fake.pulls += [fork, deleted]
    with client(fake) as forge, pytest.raises(ForgeError, match="already exists"):
        forge.open_pull_request("bezel/prices", base="main", title="Prices", body="")
    assert "body" not in fork


@pytest.mark.parametrize("status", [429, 500, 502, 503])
def test_a_read_is_repeated_after_the_wait_that_the_forge_asks_for(fake: FakeForge, status: int) -> None:
    fake.faults.append(Fault("GET", "/comments", status, {"Retry-After": "7"}, times=2))
    clock = Clock()
    with client(fake, clock) as forge:
        assert forge.comments(3) == []
    assert clock.slept == [7, 7]


def test_a_rate_limit_is_waited_for_where_the_deadline_allows(fake: FakeForge) -> None:
    clock = Clock()
    limited = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "40"}
    fake.faults.append(Fault("POST", "/comments", 403, limited))
    with client(fake, clock) as forge:
        forge.create_comment(3, "x")
        assert clock.slept == [40]
        fake.faults.append(Fault("POST", "/comments", 403, limited | {"X-RateLimit-Reset": "4000"}))
        with pytest.raises(ForgeError):
            forge.create_comment(3, "x")
    assert clock.slept == [40]


def test_a_creation_of_unknown_outcome_is_not_repeated(fake: FakeForge) -> None:
    fake.after.append(Fault("POST", "/comments", 502))
    with client(fake) as forge:
        with pytest.raises(ForgeError):
            forge.create_comment(3, "x")
        assert len(forge.comments(3)) == 1


def test_failures_end_with_the_deadline(fake: FakeForge) -> None:
    fake.faults.append(Fault("GET", "/comments", 503, times=1000))
    clock = Clock()
    with client(fake, clock) as forge, pytest.raises(ForgeError, match="503"):
        forge.comments(3)
    assert 60 < clock.now < 90


@pytest.mark.parametrize(
    ("permission", "call", "needs"),
    [
        ("actions", lambda forge: forge.run_state(9), "actions: read"),
        ("issues", lambda forge: forge.create_issue("t", "b"), "issues: write"),
        ("contents", lambda forge: forge.push_files("b", base="main", files={}, message="m"), "contents: write"),
        (
            "pull-requests",
            lambda forge: forge.open_pull_request("b", base="main", title="t", body="b"),
            "pull-requests: read",
        ),
    ],
)
def test_a_missing_permission_is_named(fake: FakeForge, permission: str, call, needs: str) -> None:
    fake.permissions -= {permission}
    with client(fake) as forge, pytest.raises(ForgeError) as caught:
        call(forge)
    assert caught.value.status == 403
    assert f"permissions: {{ {needs} }}" in str(caught.value)


def test_a_wrong_token_and_a_missing_object_say_what_to_check(fake: FakeForge) -> None:
    with client(fake, GITHUB_TOKEN="ghs_wrong") as forge, pytest.raises(ForgeError, match="does not accept the token"):
        forge.create_comment(3, "x")
    with client(fake) as forge, pytest.raises(ForgeError, match="token of a fork's run"):
        forge.update_issue(99, body="x")


def test_without_a_token_reading_works_and_writing_names_the_variable(fake: FakeForge) -> None:
    fake.runs[9] = {"status": "completed"}
    with client(fake, GITHUB_TOKEN="") as forge:
        assert forge.run_state(9) == "ended"
        with pytest.raises(ForgeError, match="GITHUB_TOKEN"):
            forge.create_comment(3, "x")


def test_the_token_is_in_no_message(fake: FakeForge) -> None:
    fake.faults.append(Fault("GET", "/comments", 418, body=f'{{"message": "you sent {TOKEN}\\u0007"}}'))
    with client(fake) as forge, pytest.raises(ForgeError) as caught:
        forge.comments(3)
    assert TOKEN not in str(caught.value)
    assert str(caught.value).isprintable() or "\x07" not in str(caught.value)


@pytest.mark.parametrize("body", ["", "<html>", "[1", '{"message": 3}', '{"errors": "x"}'])
def test_any_answer_of_a_failing_forge_becomes_an_error(fake: FakeForge, body: str) -> None:
    fake.faults.append(Fault("GET", "/comments", 400, body=body))
    with client(fake) as forge, pytest.raises(ForgeError):
        forge.comments(3)


def test_a_forge_that_never_answers_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        environ = {"GITHUB_API_URL": f"http://127.0.0.1:{silent.getsockname()[1]}", "GITHUB_REPOSITORY": REPOSITORY}
        facts = Facts.of(environ)
        assert facts is not None
        with (
            Forge(facts, Transport(facts, timeout_seconds=0.1, deadline_seconds=0.3)) as forge,
            pytest.raises(ForgeError, match="did not answer"),
        ):
            forge.comments(1)


@pytest.mark.parametrize("has_answered", [False, True])
def test_absent_forge_is_asked_again_only_after_an_answer(*, has_answered: bool) -> None:
    clock = Clock()
    with fake_forge() as server:
        forge = client(server, clock)
        if has_answered:
            forge.comments(3)
            forge.close()  # a kept connection would still be served
    port = int(server.address.rpartition(":")[2])
    # The port is kept: a server of another test might draw it.
    with bind("127.0.0.1", port), forge, pytest.raises(ForgeError, match="did not answer"):
        forge.comments(3)
    assert bool(clock.slept) is has_answered


def test_by_hand_there_is_no_forge() -> None:
    assert forge_of({}) is None
    assert forge_of({"GITHUB_TOKEN": "x", "GITHUB_REPOSITORY": "a/b"}) is None
    with pytest.raises(ForgeError, match="OWNER/NAME"):
        forge_of({"GITHUB_API_URL": "https://api.github.com", "GITHUB_REPOSITORY": "../../user"})


def test_the_pull_request_and_its_origin_are_the_events(fake: FakeForge, tmp_path) -> None:
    same, fork = (pull_request_of(fake.environ(tmp_path, pull=5, fork=fork)) for fork in (False, True))
    assert same is not None
    assert (same.number, same.from_fork, same.head_sha) == (5, False, "a" * 40)
    assert fork is not None
    assert fork.from_fork
    assert pull_request_of(fake.environ()) is None
    assert pull_request_of({"GITHUB_REF": "refs/heads/main"}) is None
    with pytest.raises(ForgeError, match="cannot be read"):
        pull_request_of({"GITHUB_EVENT_PATH": str(tmp_path / "none.json")})
