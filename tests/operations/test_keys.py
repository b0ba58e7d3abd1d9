"""Keys of a door in two steps against localcloud's own storage: made, listed, replaced, revoked, and never lost."""

import json
import re
import stat
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from bezel.operations.changes.basis import ChangedError
from bezel.operations.changes.plan import Outcome, Plan
from bezel.operations.keys.create import CreateKeyArguments, apply_create, plan_create
from bezel.operations.keys.door_bucket import MOST_KEYS
from bezel.operations.keys.list_keys import Keys, ListKeysArguments, list_keys
from bezel.operations.keys.new_key import KEPT_DAYS, KeyOutcome
from bezel.operations.keys.revoke import RevokeArguments, apply_revoke, plan_revoke
from bezel.operations.keys.rotate import RotateArguments, apply_rotate, plan_rotate
from bezel_base.errors import UserError
from bezel_base.text.redaction import redact
from bezel_door.key_file import Key, KeyRefusal, judge_key, write_keys
from bezel_door.usage_file import KeyUsage
from tests.support.operations.door_cloud import BUCKET, DoorCloud, door_cloud
from tests.support.rest.fake_google import Answer

pytestmark = pytest.mark.slow  # a cloud behind a socket each
HASH = "0" * 64
MADE = datetime(2026, 9, 1, tzinfo=UTC)


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[DoorCloud]:
    with door_cloud(tmp_path) as deployed:
        yield deployed


def plan_new_key(cloud: DoorCloud, *, agent: bool = False, **arguments: Any) -> Plan:
    with cloud.context(shows_secrets=not agent) as context:
        return plan_create(context, CreateKeyArguments(stack="dev", **arguments))


def create(cloud: DoorCloud, *, agent: bool = False, **arguments: Any) -> KeyOutcome:
    plan = plan_new_key(cloud, agent=agent, **arguments)
    with cloud.context(shows_secrets=not agent) as context:
        return apply_create(context, plan)


def revoke(cloud: DoorCloud, **arguments: Any) -> Outcome:
    with cloud.context() as context:
        return apply_revoke(context, plan_revoke(context, RevokeArguments(stack="dev", **arguments)))


def rotate(cloud: DoorCloud, identifier: str, **arguments: Any) -> KeyOutcome:
    with cloud.context() as context:
        arguments_of_key = RotateArguments(stack="dev", id=identifier, **arguments)
        return apply_rotate(context, plan_rotate(context, arguments_of_key))


def keys_of(cloud: DoorCloud) -> Keys:
    with cloud.context() as context:
        return list_keys(context, ListKeysArguments(stack="dev"))


def text_and_id(outcome: KeyOutcome) -> tuple[str, str]:
    assert outcome.key
    assert outcome.key_id
    return outcome.key, outcome.key_id


def test_a_made_key_is_admitted_with_its_limits_and_shown_once(cloud: DoorCloud) -> None:
    plan = plan_new_key(cloud, team="search", expires="30d", requests_per_minute=60, tokens_per_day=1_000_000)
    assert not [call for call in cloud.deployed.server.calls if call.method != "GET"]
    with cloud.context() as context:
        outcome = apply_create(context, plan)
    text, identifier = text_and_id(outcome)
    admitted = judge_key(cloud.keys(), text, cloud.time())
    assert admitted == (identifier, cloud.keys()[identifier])
    key = cloud.keys()[identifier]
    assert (key.team, key.requests_per_minute, key.tokens_per_minute, key.tokens_per_day) == ("search", 60, None, 10**6)
    assert key.expires == cloud.time() + timedelta(days=30)
    assert outcome.text().splitlines()[-1] == text
    # Nowhere else: not in the plan, the list, the bucket, nor in what any other reader is shown.
    others = f"{plan.model_dump_json()}{plan.text()}{keys_of(cloud).model_dump_json()}{cloud.content().decode()}"
    assert text.split("-", 2)[2] not in others + repr(outcome) + redact(outcome.text())
    assert text not in "".join(str(call) for call in cloud.deployed.server.calls)


def test_an_agent_gets_a_file_of_the_users_own_and_no_key(cloud: DoorCloud) -> None:
    outcome = create(cloud, agent=True, team="search")
    assert outcome.key is None
    assert outcome.key_file is not None
    file = Path(outcome.key_file)
    text = file.read_text().strip()
    assert isinstance(judge_key(cloud.keys(), text, cloud.time()), tuple)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert text not in outcome.text() + outcome.model_dump_json()
    cloud.deployed.keep("dev", {"version": 3, "checkpoint": {"latest": {"resources": []}}})
    with pytest.raises(UserError):
        create(cloud, agent=True)
    assert list(file.parent.iterdir()) == [file]


@pytest.mark.parametrize("by", ["id", "team"])
def test_a_revoked_key_is_refused_and_others_are_not(cloud: DoorCloud, by: str) -> None:
    (text, identifier), (other, _) = (text_and_id(create(cloud, team=team)) for team in ("search", "billing"))
    outcome = revoke(cloud, **({"id": identifier} if by == "id" else {"team": "search"}))
    assert outcome.verdict == "done"
    assert judge_key(cloud.keys(), text, cloud.time()) is KeyRefusal.REVOKED
    assert isinstance(judge_key(cloud.keys(), other, cloud.time()), tuple)
    assert revoke(cloud, id=identifier).verdict == "unchanged"


def test_a_replaced_key_is_admitted_until_the_overlap_ends(cloud: DoorCloud) -> None:
    old, identifier = text_and_id(create(cloud, team="search", expires="30d", tokens_per_minute=500))
    cloud.now += 86_400
    new, new_id = text_and_id(rotate(cloud, identifier, overlap="2h"))
    key = cloud.keys()[new_id]
    assert (key.team, key.tokens_per_minute, key.expires) == ("search", 500, cloud.time() + timedelta(days=30))
    for hours, admitted in ((1.9, (True, True)), (2.1, (False, True))):
        moment = cloud.time() + timedelta(hours=hours)
        assert tuple(isinstance(judge_key(cloud.keys(), each, moment), tuple) for each in (old, new)) == admitted
    third, _ = text_and_id(rotate(cloud, new_id, overlap="0s"))
    assert judge_key(cloud.keys(), new, cloud.time()) is KeyRefusal.REVOKED
    assert isinstance(judge_key(cloud.keys(), third, cloud.time()), tuple)


def test_the_own_end_of_a_key_is_not_put_off_by_another_in_its_place(cloud: DoorCloud) -> None:
    _, identifier = text_and_id(create(cloud, expires="1h"))
    rotate(cloud, identifier, overlap="24h")
    assert cloud.keys()[identifier].expires == cloud.time() + timedelta(hours=1)


def test_a_key_that_another_writes_meanwhile_is_kept(cloud: DoorCloud) -> None:
    """Two writers read the same generation; the second one's write is refused, and made again from the first one's."""
    first: list[KeyOutcome] = []
    create(cloud, team="before")
    cloud.before_write.append(lambda: first.append(create(cloud, team="first")))
    create(cloud, team="second")
    assert sorted(key.team for key in cloud.keys().values()) == ["before", "first", "second"]
    assert len(first) == 1


def test_the_first_key_of_two_writers_is_kept_too(cloud: DoorCloud) -> None:
    cloud.before_write.append(lambda: create(cloud, team="first"))  # type: ignore[arg-type]
    create(cloud, team="second")
    assert sorted(key.team for key in cloud.keys().values()) == ["first", "second"]


def test_a_write_whose_answer_is_lost_makes_one_key(cloud: DoorCloud) -> None:
    """Also where another writer comes between the write and the look at what became of it."""
    cloud.after_write += [lambda: None]
    text, identifier = text_and_id(create(cloud, team="search"))
    cloud.after_write += [lambda: create_beside(cloud)]
    other, _ = text_and_id(create(cloud, team="billing"))
    assert sorted(key.team for key in cloud.keys().values()) == ["beside", "billing", "search"]
    assert all(isinstance(judge_key(cloud.keys(), each, cloud.time()), tuple) for each in (text, other))
    cloud.after_write += [lambda: create_beside(cloud)]
    assert revoke(cloud, id=identifier).verdict == "done"
    assert judge_key(cloud.keys(), text, cloud.time()) is KeyRefusal.REVOKED


def create_beside(cloud: DoorCloud) -> None:
    """Make a key of another team, as another writer does."""
    create(cloud, team="beside")


def test_a_key_that_is_revoked_while_it_is_replaced_stays_revoked(cloud: DoorCloud) -> None:
    text, identifier = text_and_id(create(cloud, team="search"))
    cloud.before_write.append(lambda: revoke(cloud, id=identifier))  # type: ignore[arg-type]
    with pytest.raises(UserError, match="no more admitted"):
        rotate(cloud, identifier)
    assert judge_key(cloud.keys(), text, cloud.time()) is KeyRefusal.REVOKED
    assert len(cloud.keys()) == 1


def test_a_team_with_a_further_key_is_planned_again(cloud: DoorCloud) -> None:
    create(cloud, team="search")
    with cloud.context() as context:
        plan = plan_revoke(context, RevokeArguments(stack="dev", team="search"))
        create(cloud, team="search")
        with pytest.raises(ChangedError, match="the keys that it is about"):
            apply_revoke(context, plan)
    assert all(key.revoked is None for key in cloud.keys().values())


def test_a_further_key_beyond_the_most_is_refused_and_old_ones_make_room(cloud: DoorCloud) -> None:
    ended = MADE - timedelta(days=KEPT_DAYS)
    keys = {f"{number:08}": Key(HASH, "search", MADE) for number in range(MOST_KEYS)}
    cloud.put("keys.json", write_keys(keys))
    with pytest.raises(UserError, match=f"{MOST_KEYS} keys at most"):
        plan_new_key(cloud)
    cloud.put("keys.json", write_keys({**keys, "00000000": Key(HASH, "search", ended, revoked=ended)}))
    create(cloud)
    assert len(cloud.keys()) == MOST_KEYS
    assert cloud.keys().get("00000000") is None


def test_the_list_has_state_limits_and_use_of_each_key(cloud: DoorCloud) -> None:
    _, one = text_and_id(create(cloud, team="search", requests_per_minute=60))
    _, two = text_and_id(create(cloud, team="billing"))
    revoke(cloud, id=two)
    counts = KeyUsage(requests=3, failures=1, refused=2, prompt_tokens=1000, completion_tokens=50, estimated_requests=1)
    cloud.use("2026-09-21", "one", **{one: counts})
    cloud.use("2026-09-21", "two", **{one: KeyUsage(requests=1, prompt_tokens=10)})
    cloud.use("2026-09-02", "one", **{one: KeyUsage(requests=7), two: KeyUsage(requests=1, completion_tokens=9)})
    cloud.use("2026-08-31", "one", **{one: KeyUsage(requests=100)})
    cloud.put("usage/2026-09-03/broken.json", b"{")
    keys = keys_of(cloud)
    assert [(each.id, each.state) for each in keys.keys] == [(one, "active"), (two, "revoked 2026-09-21")]
    assert keys.keys[0].today.line() == "4 requests, 1,060 tokens (1,010 in, 50 out), 1 failed, 2 refused, 1 estimated"
    assert (keys.keys[0].month.requests, keys.keys[1].month.completion_tokens) == (11, 9)
    assert keys.keys[1].today.line() == "none"
    assert keys.door == cloud.deployed.server.url
    assert keys.notes[:-1] == (
        "not counted: usage/2026-09-03/broken.json: it is not JSON",
        "the tokens of 1 request are an estimate: the server reported none",
    )


def test_the_list_has_what_the_door_counted_until_now(cloud: DoorCloud) -> None:
    _, one = text_and_id(create(cloud, team="search"))
    cloud.when_asked.append(lambda: cloud.use("2026-09-21", **{one: KeyUsage(requests=1, prompt_tokens=7)}))
    keys = keys_of(cloud)
    assert (keys.keys[0].today.line(), len(keys.notes)) == ("1 request, 7 tokens (7 in, 0 out)", 1)


def test_the_list_names_a_door_that_does_not_answer(cloud: DoorCloud) -> None:
    cloud.door_status = 503
    create(cloud, team="search")
    assert keys_of(cloud).notes[0] == "not counted: the last seconds of the door, which did not answer: HTTP 503"


def test_a_door_without_keys_says_how_one_is_made(cloud: DoorCloud) -> None:
    assert "`bezel keys create dev --team TEAM` makes one." in keys_of(cloud).text()


def test_a_stack_without_a_door_says_what_makes_one(cloud: DoorCloud) -> None:
    state = json.loads((cloud.deployed.folder / "state/.pulumi/stacks/bezel/dev.json").read_text())
    resources = state["checkpoint"]["latest"]["resources"]
    state["checkpoint"]["latest"]["resources"] = [each for each in resources if "KeyDoor" not in each["urn"]]
    cloud.deployed.keep("dev", state)
    with pytest.raises(UserError, match=r"set `bezel:access.keys: true` in Pulumi.dev.yaml"):
        plan_new_key(cloud)
    (cloud.deployed.folder / "Pulumi.dev.yaml").write_text("config:\n  bezel:access:\n    keys: true\n")
    with pytest.raises(UserError, match="not deployed yet"):
        plan_new_key(cloud)


def test_a_damaged_file_of_keys_is_refused_and_left(cloud: DoorCloud) -> None:
    for content, consequence in ((b"{", "it is not JSON"), (b'{"version": 2, "keys": {}}', "version 2")):
        cloud.put("keys.json", content)
        with pytest.raises(UserError, match=f"(?s)gs://{BUCKET}/keys.json.*{re.escape(consequence)}"):
            plan_new_key(cloud)
        assert cloud.content() == content


def test_a_bucket_that_is_gone_or_closed_is_named_with_its_repair(cloud: DoorCloud) -> None:
    refusal = {"error": {"code": 403, "message": "no access", "errors": [{"reason": "forbidden"}]}}
    cloud.deployed.server.routes.insert(0, lambda call: Answer(403, refusal) if "keys.json" in call.path else None)
    with pytest.raises(UserError, match=f"(?s)gs://{BUCKET}/keys.json.*roles/storage.objectViewer"):
        plan_new_key(cloud)
    cloud.deployed.server.routes.pop(0)
    cloud.project.raw("DELETE", f"/storage/v1/b/{BUCKET}")
    with pytest.raises(UserError, match="bezel deploy dev"):
        plan_new_key(cloud)


def test_a_revocation_of_nothing_known_is_refused(cloud: DoorCloud) -> None:
    create(cloud, team="search")
    for arguments, consequence in (
        ({"id": "k7m2p9q4"}, "or name --team TEAM"),
        ({"team": "serach"}, "did you mean search?"),
        ({}, "add --team TEAM"),
        ({"id": "k7m2p9q4", "team": "search"}, "either a key or a team"),
    ):
        with pytest.raises(UserError, match=re.escape(consequence)):
            revoke(cloud, **arguments)


def test_a_new_key_in_place_of_none_names_those_that_there_are(cloud: DoorCloud) -> None:
    _, identifier = text_and_id(create(cloud, team="search"))
    with pytest.raises(UserError, match=f"choose one of {identifier}\\.$"):
        rotate(cloud, "k7m2p9q4")


def test_a_limit_that_another_one_hides_is_a_warning(cloud: DoorCloud) -> None:
    plan = plan_new_key(cloud, tokens_per_minute=500, tokens_per_day=100)
    assert any("are never reached" in text for text in plan.warnings)
    assert any("no team is named" in text for text in plan.warnings)
    assert plan_new_key(cloud, team="search", tokens_per_minute=500, tokens_per_day=500).warnings == ()
