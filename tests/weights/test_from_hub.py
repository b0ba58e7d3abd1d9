"""Copies from a hub into a bucket of a real localcloud: what arrives, what is left alone, what is refused."""

from __future__ import annotations

import itertools
import json
import threading
import time
from contextlib import closing

import pytest

from bezel.rest import Backoff, UnreachableError
from bezel.weights.bucket import Bucket
from bezel.weights.errors import StoppedError, WeightsError
from bezel.weights.hub import Hub, Repository
from bezel.weights.layout import stored_models
from bezel.weights.retry import FAILURES_IN_A_ROW, Watch
from bezel.weights.transfer import Entry, Journal
from bezel_base.errors import Problem
from bezel_localcloud import control
from bezel_localcloud.command.fault import add_fault, clear_faults
from tests.support.weights.copies import FILES, LARGE, MODEL, ODD, PIECE, WANTED, Shelf, no_secret_in
from tests.support.weights.fake_hub import COMMIT, TOKEN, serving

pytestmark = pytest.mark.slow

NUMBERS = itertools.count()
ACCOUNTS = "/iam/v1/projects/bezel-local/serviceAccounts"


@pytest.fixture
def hub():
    with serving() as server:
        server.models[MODEL] = dict(FILES)
        yield server


@pytest.fixture
def shelf(endpoint, hub, tmp_path, monkeypatch):
    for name, value in control.environment(endpoint).items():
        monkeypatch.setenv(name, value)
    made = Shelf(endpoint, f"shelf-{tmp_path.name.replace('_', '-')[-30:].strip('-')}-{next(NUMBERS)}", tmp_path, hub)
    # Each client would read the key file anew, which takes 50 ms of CPU.
    monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", made.token)
    made.make()
    return made


def test_a_model_arrives_whole_with_what_it_is_noted_on_it(shelf):
    outcome = shelf.copy()
    assert not outcome.failures
    assert (outcome.copied, outcome.unchanged, outcome.left_out) == (len(WANTED), 0, 2)
    assert shelf.stored_objects() == WANTED
    (model,) = [model for model in stored_models(Bucket(shelf.name, Watch(30))) if model.folder == "m"]
    assert model.problems == ()
    row = shelf.http.get(f"/storage/v1/b/{shelf.name}/o", params={"prefix": f"m/{LARGE}"}).json()["items"][0]
    assert row["metadata"]["bezel-source"] == f"hf:{MODEL}@{COMMIT}"
    assert not list(shelf.folder.glob("*.json"))


def test_a_second_copy_copies_nothing_and_downloads_nothing(shelf, hub):
    shelf.copy()
    before, hub.storage = shelf.generations(), []
    outcome = shelf.copy()
    assert (outcome.copied, outcome.unchanged) == (0, len(WANTED))
    assert (shelf.generations(), hub.storage) == (before, [])


def test_what_somebody_else_copied_is_read_once_and_kept_if_it_is_the_same(shelf, hub):
    shelf.put(f"m/{LARGE}", FILES[LARGE])
    shelf.put("m/config.json", b"x" * len(FILES["config.json"]))
    before = shelf.generations()
    outcome = shelf.copy()
    assert (outcome.unchanged, outcome.copied) == (1, len(WANTED) - 1)
    assert shelf.generations()[f"m/{LARGE}"] == before[f"m/{LARGE}"]
    assert shelf.stored_objects() == WANTED
    assert "config.json: replaced" in shelf.output()
    assert not [path for path, _, _ in hub.storage if path.endswith(LARGE)]


def test_another_revision_replaces_only_what_differs(shelf, hub):
    shelf.copy()
    hub.models[MODEL]["config.json"] = b"{}"
    outcome = shelf.copy(revision="v1")
    assert (outcome.copied, outcome.unchanged) == (1, len(WANTED) - 1)
    assert shelf.stored_objects()["config.json"] == b"{}"


@pytest.mark.parametrize("path", [LARGE, "config.json"])
def test_content_with_another_hash_never_becomes_visible(shelf, hub, path):
    lie = bytes(len(FILES[path]))
    hub.faults[path] = [("lie", lie)]
    outcome = shelf.copy()
    (failure,) = outcome.failures
    assert "its hash differs from the hub's" in failure
    assert path not in shelf.stored_objects()
    assert shelf.copy().failures == []
    assert shelf.stored_objects() == WANTED


def test_content_that_is_too_long_is_refused(shelf, hub):
    hub.faults["config.json"] = [("lie", FILES["config.json"] + b" ")]
    (failure,) = shelf.copy().failures
    assert "longer than the" in failure
    assert "config.json" not in shelf.stored_objects()


@pytest.mark.parametrize("heeds", [True, False])
def test_a_download_that_breaks_off_goes_on_where_it_was(shelf, hub, heeds):
    hub.heeds_ranges = heeds
    hub.faults[LARGE] = [("cut", PIECE + 5), 503, 429, ("cut", 1000)]
    assert shelf.copy().failures == []
    assert shelf.stored_objects() == WANTED
    ranges = [asked for path, _, asked in hub.storage if path.endswith(LARGE)]
    assert ranges[0] == ""
    assert ranges[1] == ranges[2] == ranges[3] == f"bytes={PIECE + 5}-"


def test_a_download_that_never_comes_through_ends_with_its_name(shelf, hub):
    hub.faults[LARGE] = [500] * (FAILURES_IN_A_ROW + 1)
    (failure,) = shelf.copy().failures
    assert LARGE in failure
    assert "500" in failure
    assert LARGE not in shelf.stored_objects()


def test_a_busy_hub_is_asked_again_and_one_that_stays_busy_is_given_up(shelf, hub):
    hub.busy = [429, 503, 500]
    assert shelf.copy().failures == []
    hub.busy = [503] * 20
    with pytest.raises(UnreachableError, match="503"):
        shelf.copy()


def test_a_gated_model_wants_a_token_which_goes_to_the_hub_only(shelf, hub):
    hub.gated.add(MODEL)
    with pytest.raises(WeightsError, match="is gated") as refused:
        shelf.copy()
    assert "HF_TOKEN" in str(refused.value)
    assert shelf.copy(token=TOKEN).failures == []
    assert shelf.stored_objects() == WANTED
    assert any(authorization == f"Bearer {TOKEN}" for _, authorization in hub.requests)
    assert {authorization for _, authorization, _ in hub.storage} == {""}
    assert no_secret_in(shelf.output() + str(refused.value))


def test_a_token_that_does_not_open_the_model_is_never_shown(shelf, hub):
    hub.forbidden.add(MODEL)
    with pytest.raises(WeightsError, match=r"is gated \(403\)") as refused:
        shelf.copy(token=TOKEN)
    assert no_secret_in(str(refused.value))


@pytest.mark.parametrize(
    ("model", "revision", "message"),
    [("acme/absent", "main", "does not exist, or is private"), (MODEL, "nowhere", "RevisionNotFound")],
)
def test_an_absent_model_or_revision_is_reported_before_any_copy(shelf, model, revision, message):
    """A model or revision that is not there is reported before anything is copied."""
    with pytest.raises(WeightsError, match=message):
        shelf.copy(model=model, revision=revision)
    assert shelf.stored_objects() == {}


def test_an_answer_of_another_shape_is_reported(shelf, hub):
    hub.tree = lambda _: [{"type": "file"}]
    with pytest.raises(WeightsError, match="is not that of the hub's API"):
        shelf.copy()


def test_a_copy_that_was_stopped_says_so(shelf, hub):
    hub.held, hub.held_after = threading.Event(), 10
    lines = []

    def copying():
        try:
            shelf.copy()
        except StoppedError as error:
            lines.append(error)

    thread = threading.Thread(target=copying)
    thread.start()
    deadline = time.monotonic() + 60
    while not hub.storage:
        assert time.monotonic() < deadline
    shelf.watch.stop()
    hub.held.set()
    thread.join(60)
    assert lines
    assert LARGE not in shelf.stored_objects()


def test_a_source_that_is_no_model_is_not_copied(shelf, hub):
    hub.models[MODEL] = {"README.md": b"x", "model.gguf": b"x"}
    with pytest.raises(WeightsError, match="is not a complete model"):
        shelf.copy()
    assert shelf.stored_objects() == {}


def test_a_name_that_leads_out_of_the_folder_is_refused(shelf, hub):
    hub.models[MODEL]["../other/config.json"] = b"{}"
    with pytest.raises(WeightsError, match="outside the model's folder"):
        shelf.copy()
    assert shelf.stored_objects() == {}


def test_a_missing_bucket_is_reported_with_the_command_that_makes_it(shelf):
    shelf.name = "bucket-that-is-not-there"
    with pytest.raises(WeightsError, match=f"gcloud storage buckets create gs://{shelf.name}"):
        shelf.copy()


def test_an_upload_that_was_given_up_is_taken_up_by_the_next_copy(shelf, hub):
    hub.faults[LARGE] = [("cut", 3 * PIECE), *[503] * 100]
    (failure,) = shelf.copy().failures
    assert LARGE in failure
    assert LARGE not in shelf.stored_objects()
    hub.faults.clear()
    assert shelf.copy().failures == []
    assert f"{LARGE}: resumes at {2 * PIECE} of {len(FILES[LARGE])} bytes" in shelf.output()
    assert shelf.stored_objects() == WANTED


def test_a_kill_between_the_last_piece_and_its_note_leaves_nothing_to_do(shelf):
    shelf.copy()
    journal = Journal(shelf.folder)
    watch = Watch(5)
    place = f"{Bucket(shelf.name, watch).uploads} {shelf.name} m/{LARGE}"
    journal.keep(Entry(place, "as it was", "0", "https://storage.googleapis.com/upload/gone"))
    outcome = shelf.copy()
    assert (outcome.copied, outcome.unchanged) == (0, len(WANTED))
    assert not list(shelf.folder.glob("*.json"))


def test_an_upload_of_another_content_is_not_taken_up(shelf, hub):
    hub.faults[LARGE] = [("cut", 3 * PIECE), *[503] * 100]
    shelf.copy()
    hub.faults.clear()
    hub.models[MODEL][LARGE] = bytes(len(FILES[LARGE]))
    assert shelf.copy().failures == []
    assert "resumes at" not in shelf.output()
    assert shelf.stored_objects()[LARGE] == hub.models[MODEL][LARGE]


def test_an_upload_that_the_bucket_has_forgotten_begins_anew(shelf, hub):
    hub.faults[LARGE] = [("cut", 3 * PIECE), *[503] * 100]
    shelf.copy()
    hub.faults.clear()
    # Other files may have been under way when this one failed.
    (entry,) = [file for file in shelf.folder.glob("*.json") if json.loads(file.read_text())["place"].endswith(LARGE)]
    assert entry.stat().st_mode & 0o777 == 0o600
    record = json.loads(entry.read_text())
    entry.write_text(json.dumps(record | {"handle": record["handle"].replace("upload_id=", "upload_id=no")}))
    assert shelf.copy().failures == []
    assert shelf.stored_objects() == WANTED


def test_a_copy_whose_time_is_over_says_so_and_keeps_what_is_there(shelf):
    with pytest.raises(WeightsError, match="--deadline = 0\n"):
        shelf.copy(seconds=0.0)
    assert shelf.stored_objects() == {}


def test_odd_names_are_names(shelf):
    shelf.copy()
    assert shelf.stored_objects()[ODD] == FILES[ODD]


def test_a_model_without_a_shard_that_its_index_names_is_not_whole(shelf):
    shelf.copy()
    shelf.http.delete(f"/storage/v1/b/{shelf.name}/o/m%2F{LARGE}")
    (model,) = stored_models(Bucket(shelf.name, Watch(30)))
    assert LARGE in model.problems[0]


FAULTS = {
    "a busy bucket": ("rate-limited", "path=/upload/*", "count=3", "retry_after=0"),
    "errors while an upload is opened": ("server-errors", "path=/upload/*", "method=POST", "count=2"),
    "errors while bytes arrive": ("server-errors", "path=/upload/*", "method=PUT", "count=3", "status=500"),
    "connections that break before": ("dropped-connections", "path=/upload/*", "method=PUT", "count=2"),
    "answers that are cut": ("malformed-json", "path=/upload/*", "method=PUT", "count=2"),
    "answers that are cut again": ("malformed-json", "path=/upload/*", "method=PUT", "count=12"),
    "answers that are lost": ("dropped-connections", "when=after", "path=/upload/*", "method=PUT", "count=3"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_breaks_on_the_way_into_the_bucket_arrives_once(shelf, endpoint, fault):
    """What breaks on the way into the bucket is sent again and arrives once."""
    kind, *parameters = FAULTS[fault]
    assert add_fault(endpoint, kind, parameters) == 0
    try:
        assert shelf.copy().failures == []
    finally:
        clear_faults(endpoint, "")
    assert shelf.stored_objects() == WANTED


def test_a_bucket_that_only_fails_is_given_up_with_nothing_half_in_it(shelf, endpoint):
    add_fault(endpoint, "server-errors", ["path=/upload/*", "method=PUT", "count=0"])
    try:
        failures = shelf.copy().failures
    finally:
        clear_faults(endpoint, "")
    assert failures
    assert all("503" in failure for failure in failures)
    assert set(shelf.stored_objects()) <= {"empty.txt"}
    assert shelf.copy().failures == []
    assert shelf.stored_objects() == WANTED


def test_who_may_not_write_gets_the_missing_permission(shelf, monkeypatch):
    monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", token_of(shelf))
    failures = shelf.copy().failures
    assert any("storage.objects.create" in failure and "roles/storage.objectAdmin" in failure for failure in failures)
    assert no_secret_in("".join(failures))
    assert shelf.stored_objects() == {}


def token_of(shelf):
    """An access token of an account that may list buckets and write nothing."""
    apis = [f"{name}.googleapis.com" for name in ("iam", "iamcredentials")]
    shelf.http.post("/serviceusage/v1/projects/bezel-local/services:batchEnable", json={"serviceIds": apis})
    deadline = time.monotonic() + 60
    while shelf.http.post(ACCOUNTS, json={"accountId": "reader-only"}).status_code not in {200, 409}:
        assert time.monotonic() < deadline
    member = "serviceAccount:reader-only@bezel-local.iam.gserviceaccount.com"
    policy = shelf.http.get(f"/storage/v1/b/{shelf.name}/iam").json()
    policy["bindings"].append({"role": "roles/storage.objectViewer", "members": [member]})
    shelf.http.put(f"/storage/v1/b/{shelf.name}/iam", json=policy)
    scope = {"scope": ["https://www.googleapis.com/auth/cloud-platform"]}
    account = member.partition(":")[2]
    path = f"/iamcredentials/v1/projects/-/serviceAccounts/{account}:generateAccessToken"
    return shelf.http.post(path, json=scope).json()["accessToken"]


def test_a_hub_that_does_not_respond_is_named_with_what_to_check():
    watch = Watch(60.0, Backoff(first=0.001, longest=0.002))
    with (
        closing(Hub(watch, environ={"HF_ENDPOINT": "http://127.0.0.1:1"})) as silent,
        pytest.raises(UnreachableError) as caught,
    ):
        silent.files(Repository.of("google/gemma-4-12B-it"))
    (problem,) = caught.value.problems
    assert isinstance(problem, Problem)
    assert (problem.key, "does not respond (ConnectError)" in problem.consequence) == ("http://127.0.0.1:1", True)
    assert "check this machine's network" in problem.repair
