"""Objects of the state bucket: a lost answer is never a second write, another writer's object never one's own."""

import pytest

from bezel.engine.state.bucket import BackendError, PreconditionError, StateBucket, parse
from bezel.rest import AddressError, RestError, UnreachableError
from tests.support.gitops.fake_bucket import fake_bucket
from tests.support.rest.fake_google import Answer

NAME = "locks/bezel/a stack é#1?.json"


@pytest.fixture
def bucket():
    with fake_bucket() as served:
        yield served


def test_an_object_is_created_read_replaced_and_deleted_by_its_generation(bucket):
    states = bucket.client(prefix="team/")
    assert states.read(NAME) is None
    first = states.create(NAME, b"one")
    assert states.read(NAME) == (b"one", first)
    second = states.replace(NAME, b"two", first)
    assert second > first
    assert [(entry.name, entry.generation) for entry in states.list("locks/")] == [(NAME, second)]
    assert list(bucket.objects) == [f"team/{NAME}"]
    states.delete(NAME, second)
    states.delete(NAME, second)
    assert states.read(NAME) is None


def test_a_writer_that_comes_second_is_refused(bucket):
    states = bucket.client()
    generation = states.create(NAME, b"one")
    for change in (
        lambda: states.create(NAME, b"two"),
        lambda: states.replace(NAME, b"two", generation - 1),
        lambda: states.delete(NAME, generation - 1),
        lambda: states.replace("gone", b"two", generation),
    ):
        with pytest.raises(PreconditionError):
            change()
    assert bucket.objects == {NAME: (b"one", generation)}


@pytest.mark.parametrize("lost", [1, 2])
def test_a_change_whose_answer_was_lost_is_made_once_and_known(bucket, lost):
    states = bucket.client()
    bucket.lost = lost
    first = states.create(NAME, b"one")
    assert bucket.objects == {NAME: (b"one", first)}
    bucket.lost = 1
    second = states.replace(NAME, b"two", first)
    assert bucket.objects == {NAME: (b"two", second)}
    bucket.lost = 1
    states.delete(NAME, second)
    assert bucket.objects == {}


def test_after_a_lost_answer_another_writer_s_object_is_not_ours(bucket):
    """After a lost answer the object of another writer is not taken for ours."""
    states = bucket.client()
    bucket.before = [Answer(503)]
    bucket.objects[NAME] = (b"theirs", 7)
    with pytest.raises(PreconditionError, match="exists already"):
        states.create(NAME, b"ours")
    bucket.before = [Answer(reset=True)]
    with pytest.raises(PreconditionError, match="generation 7"):
        states.replace(NAME, b"ours", 6)


def test_the_same_bytes_of_an_earlier_writer_are_an_object_that_exists(bucket):
    bucket.objects[NAME] = (b"one", 7)
    with pytest.raises(PreconditionError):
        bucket.client().create(NAME, b"one")


def test_an_account_that_may_only_create_learns_what_became_of_its_object(bucket):
    bucket.forbidden = {"storage.objects.delete"}
    states = bucket.client()
    bucket.lost = 1
    generation = states.create(NAME, b"one")
    assert bucket.objects == {NAME: (b"one", generation)}
    with pytest.raises(PreconditionError):
        states.create(NAME, b"two")
    with pytest.raises(RestError, match=r"(?s)storage\.objects\.delete.*roles/storage\.objectUser"):
        states.replace(NAME, b"two", generation)


@pytest.mark.parametrize("fault", [Answer(429), Answer(503), Answer(reset=True)])
def test_a_server_that_stays_away_ends_the_change_at_the_deadline(bucket, fault):
    bucket.before = [fault] * 100
    with pytest.raises((UnreachableError, RestError)):
        bucket.client(seconds=5).create(NAME, b"one")
    assert bucket.objects == {}
    assert len(bucket.before) > 80


@pytest.mark.parametrize(
    ("permission", "act", "role"),
    [
        ("storage.objects.get", lambda states: states.read("x"), "roles/storage.objectViewer"),
        ("storage.objects.create", lambda states: states.create("x", b""), "roles/storage.objectCreator"),
        ("storage.objects.delete", lambda states: states.delete("kept", 7), "roles/storage.objectUser"),
    ],
)
def test_a_refusal_names_the_role_and_holds_no_token(bucket, permission, act, role):
    bucket.forbidden, bucket.objects["kept"] = {permission}, (b"", 7)
    with pytest.raises(RestError) as caught:
        act(bucket.client())
    assert permission in str(caught.value)
    assert f"--role={role}`" in str(caught.value)
    assert "planted-token" not in str(caught.value)


@pytest.mark.parametrize("act", [lambda states: states.read("x"), lambda states: states.create("x", b"")])
def test_a_bucket_that_does_not_exist_is_never_an_empty_one(bucket, act):
    states = bucket.client()
    bucket.name = "another"
    with pytest.raises(RestError, match="gcloud storage buckets create gs://states"):
        act(states)


def test_a_list_has_every_page(bucket):
    bucket.page = 2
    states = bucket.client(prefix="p/")
    for number in range(5):
        states.create(f"locks/{number}", b"")
    states.create("other", b"")
    assert [entry.name for entry in states.list("locks/")] == [f"locks/{number}" for number in range(5)]


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("gs://states", ("states", "")),
        ("gs://states/", ("states", "")),
        ("gs://states/team/a", ("states", "team/a/")),
        ("gs://states/team/a/", ("states", "team/a/")),
        ("gs://states/team%20a", ("states", "team a/")),
        ("gs://states?prefix=x/", ("states", "x/")),
        ("gs://states/a?prefix=x/&access_id=y", ("states", "x/a/")),
        ("gs://my.states_1-2", ("my.states_1-2", "")),
    ],
)
def test_a_backend_url_names_the_objects_as_the_engine_does(url, expected):
    assert parse(url) == expected


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        (None, "not set"),
        ("", "not set"),
        ("s3://states", "other backends have no preconditions"),
        ("file:///tmp/x", "other backends have no preconditions"),
        ("https://user:hunter2@app.pulumi.com", "https://app.pulumi.com"),
        ("gs://", "names no bucket"),
        ("gs://UPPER", "names no bucket"),
        ("gs://a/b#c", "names no bucket"),
        ("gs://user@states", "names no bucket"),
        ("gs://states?anonymous=true", "anonymous"),
        ("gs://states?universe_domain=x&key=y", "key, universe_domain"),
    ],
)
def test_another_backend_is_refused_with_the_reason(url, reason):
    with pytest.raises(BackendError) as caught:
        parse(url)
    assert reason in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_the_bucket_is_where_the_engine_finds_it():
    def base(**environ):
        return StateBucket.of("gs://states", environ).base

    assert base() == "https://storage.googleapis.com/storage/v1/"
    assert base(STORAGE_EMULATOR_HOST="127.0.0.1:8") == "http://127.0.0.1:8/storage/v1/"
    assert base(STORAGE_EMULATOR_HOST="http://localhost:8/") == "http://localhost:8/storage/v1/"
    variables = {"GOOGLE_STORAGE_CUSTOM_ENDPOINT": "http://127.0.0.1:9/storage/v1/"}
    assert base(STORAGE_EMULATOR_HOST="127.0.0.1:8", **variables) == "http://127.0.0.1:9/storage/v1/"
    with pytest.raises(AddressError, match="STORAGE_EMULATOR_HOST"):
        base(STORAGE_EMULATOR_HOST="example.com:80")


def test_an_emulator_gets_no_token(bucket):
    environ = {"STORAGE_EMULATOR_HOST": bucket.server.url, "GOOGLE_OAUTH_ACCESS_TOKEN": "planted-token"}
    with StateBucket.of("gs://states", environ) as states:
        states.create("x", b"")
    assert "authorization" not in bucket.server.calls[-1].headers
