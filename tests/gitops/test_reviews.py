"""A review is stored once, for one tree, stack and state; an object that another hand wrote is never taken for one."""

import json

import pytest

from bezel.engine.changes.planned import digest, planned_changes
from bezel.engine.events.values import Change
from bezel.engine.outcomes import RefusedError
from bezel.gitops.review import reviews
from tests.support.gitops.events import BUCKET
from tests.support.gitops.fake_bucket import fake_bucket

PLACE = reviews.ReviewPlace("small", "dev", "a" * 40)
STATE, OTHER_STATE = "sha256:11", "sha256:22"
PLANNED = planned_changes([Change("create", "u::data", BUCKET, new={"n": "1"})])
MORE = planned_changes([Change("create", "u::data", BUCKET, new={"n": "2"})])


def document(planned=PLANNED, state=STATE, verdict="allowed"):
    names = {"kind": "preview", "stack": "dev", "tree": PLACE.tree, "state_digest": state}
    return {**names, "changes_digest": digest(planned), "verdict": verdict}


@pytest.fixture
def fake_bucket_server():
    with fake_bucket() as bucket:
        yield bucket


@pytest.fixture
def bucket(fake_bucket_server):
    return fake_bucket_server.client()


def test_a_review_is_found_by_its_tree_stack_and_state_only(bucket):
    assert reviews.save(bucket, PLACE, document(), PLANNED, b"plan")
    review = reviews.find(bucket, PLACE, STATE)
    assert (review.changes_digest, review.planned, review.is_sound) == (digest(PLANNED), PLANNED, True)
    assert reviews.find(bucket, PLACE, OTHER_STATE) is None
    for other in (reviews.ReviewPlace("small", "dev", "b" * 40), reviews.ReviewPlace("small", "prod", PLACE.tree)):
        assert reviews.find(bucket, other, STATE) is None
        assert reviews.others(bucket, other) == []
    assert [item.changes_digest for item in reviews.others(bucket, PLACE)] == [digest(PLANNED)]


def test_an_equal_review_is_fine_and_another_one_is_refused(bucket, fake_bucket_server):
    reviews.save(bucket, PLACE, document(), PLANNED, b"plan")
    stored = dict(fake_bucket_server.objects)
    assert not reviews.save(bucket, PLACE, document(), PLANNED, b"another run's plan")
    for planned, verdict in ((MORE, "allowed"), (PLANNED, "refused")):
        with pytest.raises(RefusedError, match="another review"):
            reviews.save(bucket, PLACE, document(planned, verdict=verdict), planned, None)
    assert fake_bucket_server.objects == stored


def test_a_plan_that_a_killed_run_did_not_store_is_stored_by_the_next(bucket, fake_bucket_server):
    reviews.save(bucket, PLACE, document(), PLANNED, None)
    reviews.save(bucket, PLACE, document(), PLANNED, b"plan")
    assert [content for content, _ in fake_bucket_server.objects.values()].count(b"plan") == 1


def stored_as(**changes):
    return {"document": {**document(), **changes}, "planned": [item.as_json() for item in PLANNED]}


@pytest.mark.parametrize(
    "content",
    [
        stored_as(changes_digest=digest(MORE)),
        stored_as(tree="b" * 40),
        stored_as(stack="prod"),
        stored_as(state_digest=OTHER_STATE),
        stored_as(kind="rehearsal"),
        {**stored_as(), "planned": [item.as_json() for item in MORE]},
        {**stored_as(), "planned": [{"op": "create"}]},
        {"document": document()},
        [],
        "text",
        None,
    ],
)
def test_an_object_that_is_no_review_is_none_and_stops_a_preview(bucket, content):
    bucket.create(PLACE.name(STATE), json.dumps(content).encode())
    assert not reviews.find(bucket, PLACE, STATE).is_sound
    assert reviews.others(bucket, PLACE) == []
    with pytest.raises(RefusedError, match="not a review"):
        reviews.save(bucket, PLACE, document(), PLANNED, None)


@pytest.mark.parametrize("content", [b"", b"[" * 100_000, b'{"document": {}}'])
def test_bytes_that_are_no_json_are_no_error(bucket, content):
    bucket.create(PLACE.name(STATE), content)
    assert not reviews.find(bucket, PLACE, STATE).is_sound


def test_names_with_odd_characters_stay_in_their_own_folder():
    odd = reviews.ReviewPlace("a/../b", "de v?#", "a" * 40)
    assert odd.name(STATE) == f"plans/a%2F..%2Fb/de%20v%3F%23/{'a' * 40}/11.json"
