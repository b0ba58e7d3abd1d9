"""Contexts of objects, and lists that are filtered by them."""

import pytest

from bezel_localcloud.services.storage.objects.contexts import with_contexts
from localcloud_support.in_process import PARENT

OBJECTS = "/storage/v1/b/shelf/o"


def contexts(**values):
    return {"contexts": {"custom": {key: {"value": value} for key, value in values.items()}}}


def list_names(project, text, **query):
    return [item["name"] for item in project.ok("GET", OBJECTS, filter=text, **query).get("items", [])]


@pytest.fixture
def shelf(project, put):
    for name, values in {"a": {"team": "ml", "stage": "raw"}, "b": {"team": "web"}, "c": {}, "d/e": {}}.items():
        put(name)
        if values:
            project.ok("PATCH", f"{OBJECTS}/{name}", contexts(**values))
    return project


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('contexts."team"="ml"', ["a"]),
        ('contexts."team":*', ["a", "b"]),
        ('-contexts."team"="ml"', ["b", "c", "d/e"]),
        ('-contexts."stage":*', ["b", "c", "d/e"]),
        ('contexts."team"="nobody"', []),
    ],
)
def test_a_list_shows_the_objects_that_fit_a_filter(shelf, text, names):
    assert list_names(shelf, text) == names


@pytest.mark.slow
def test_folded_prefixes_are_not_filtered_and_pages_go_on(shelf):
    page = shelf.ok("GET", OBJECTS, filter='contexts."team":*', delimiter="/")
    assert (page["prefixes"], [item["name"] for item in page["items"]]) == (["d/"], ["a", "b"])
    first = shelf.ok("GET", OBJECTS, filter='contexts."team":*', maxResults=1)
    second = shelf.ok("GET", OBJECTS, filter='contexts."team":*', maxResults=1, pageToken=first["nextPageToken"])
    assert [first["items"][0]["name"], second["items"][0]["name"]] == ["a", "b"]


@pytest.mark.slow
def test_a_filter_of_another_form_is_refused(shelf):
    assert "Invalid filter" in shelf.refusal(400, "GET", OBJECTS, filter="name=a")["message"]


def test_a_context_keeps_its_time_of_creation_and_null_removes_it(shelf):
    before = shelf.ok("GET", f"{OBJECTS}/a")["contexts"]["custom"]
    shelf.passes(60)
    after = shelf.ok("PATCH", f"{OBJECTS}/a", {"contexts": {"custom": {"team": {"value": "x"}, "stage": None}}})
    assert after["contexts"]["custom"].keys() == {"team"}
    context = after["contexts"]["custom"]["team"]
    assert (context["value"], context["createTime"]) == ("x", before["team"]["createTime"])
    assert context["updateTime"] > before["team"]["updateTime"]
    assert "contexts" not in shelf.ok("PATCH", f"{OBJECTS}/a", {"contexts": None})


@pytest.mark.slow
@pytest.mark.parametrize(("key", "value"), [("", "x"), ("a/b", "x"), ("k", 'a"b'), ("_k", "x"), ("k", "v" * 257)])
def test_a_key_or_a_value_that_google_refuses_is_refused(shelf, key, value):
    body = {"contexts": {"custom": {key: {"value": value}}}}
    assert "Invalid context" in shelf.refusal(400, "PATCH", f"{OBJECTS}/c", body)["message"]
    assert "contexts" not in shelf.ok("GET", f"{OBJECTS}/c")


def test_more_than_fifty_contexts_are_refused(shelf):
    body = contexts(**{f"k{number}": "x" for number in range(51)})
    assert "at most 50" in shelf.refusal(400, "PATCH", f"{OBJECTS}/c", body)["message"]


def test_a_copy_and_a_composition_keep_contexts_unless_they_drop_them(shelf):
    copied = shelf.ok("POST", f"{OBJECTS}/a/rewriteTo/b/shelf/o/copy")["resource"]
    assert copied["contexts"]["custom"]["team"]["value"] == "ml"
    dropped = shelf.ok("POST", f"{OBJECTS}/a/rewriteTo/b/shelf/o/copy", dropContextGroups="custom")["resource"]
    assert "contexts" not in dropped
    joined = shelf.ok("POST", f"{OBJECTS}/sum/compose", {"sourceObjects": [{"name": "a"}, {"name": "b"}]})
    assert {key: context["value"] for key, context in joined["contexts"]["custom"].items()} == {
        "team": "web",
        "stage": "raw",
    }


def test_each_change_takes_its_permission():
    old = {"contexts": {"custom": {"a": {"value": "1", "createTime": "t"}, "b": {"value": "1", "createTime": "t"}}}}
    fields = contexts(b="2", c="3")
    assert with_contexts(old, fields, "now")[1] == [
        "storage.objects.createContext",
        "storage.objects.deleteContext",
        "storage.objects.updateContext",
    ]
    assert with_contexts(old, old, "now")[1] == []


def test_an_object_creator_attaches_contexts_and_removes_none(shelf):
    """An account that may only create objects attaches contexts and removes none."""
    email = "writer@bezel-local.iam.gserviceaccount.com"
    shelf.ok("POST", "/serviceusage/v1/projects/bezel-local/services/iam.googleapis.com:enable", {})
    shelf.ok("POST", f"/iam/v1/{PARENT}/serviceAccounts", {"accountId": "writer"})
    binding = {"role": "roles/storage.objectCreator", "members": [f"serviceAccount:{email}"]}
    shelf.ok("PUT", "/storage/v1/b/shelf/iam", {"bindings": [binding]})
    token = shelf.cloud.tokens.access_token(email, "https://www.googleapis.com/auth/cloud-platform", 600.0)[0]
    body = (
        b"--X\r\ncontent-type: application/json\r\n\r\n"
        b'{"name": "n", "contexts": {"custom": {"k": {"value": "v"}}}}\r\n--X\r\n\r\nx\r\n--X--'
    )
    headers = {"authorization": f"Bearer {token}", "content-type": "multipart/related; boundary=X"}
    path = "/upload/storage/v1/b/shelf/o?uploadType=multipart"
    assert shelf.raw("POST", path, body, headers, token=False).status_code == 200
    removal = shelf.raw("PATCH", f"{OBJECTS}/n", b'{"contexts": null}', headers, token=False)
    assert removal.status_code == 403
