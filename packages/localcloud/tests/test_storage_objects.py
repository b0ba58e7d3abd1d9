"""Buckets and objects: the ways in, what is listed, what the files look like, what is refused."""

import base64
import hashlib
import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bezel_localcloud.core.files.objects import ObjectFiles
from bezel_localcloud.core.paths import Paths
from bezel_localcloud.core.store import Store
from bezel_localcloud.seed import SeedError, seed
from localcloud_support.client import RUNTIME, Client

UPLOAD = "/upload/storage/v1/b/shelf/o"


@pytest.fixture
def shelf(cloud):
    """An empty bucket, deleted with all it holds."""
    body = {"name": "shelf", "location": "us-east4", "labels": {"a": "b"}, "versioning": {"enabled": False}}
    assert cloud.post("/storage/v1/b", body, project="bezel-local").status_code == 200
    yield cloud
    for item in cloud.get("/storage/v1/b/shelf/o").json().get("items", []):
        cloud.delete("/storage/v1/b/shelf/o/" + item["name"].replace("/", "%2F"))
    assert cloud.delete("/storage/v1/b/shelf").status_code == 204


def put(cloud, name, content=b"x", **query):
    return cloud.http.post(UPLOAD, params={"uploadType": "media", "name": name} | query, content=content)


def content(cloud, name):
    return cloud.get("/storage/v1/b/shelf/o/" + name.replace("/", "%2F"), alt="media").content


@pytest.mark.slow
def test_a_bucket_is_merged_by_patch_and_deleted_only_when_empty(shelf):
    changed = shelf.patch("/storage/v1/b/shelf", {"labels": {"a": None, "c": "d"}, "website": {"notFoundPage": "x"}})
    changed = changed.json()
    assert (changed["labels"], changed["website"], changed["metageneration"]) == (
        {"c": "d"},
        {"notFoundPage": "x"},
        "2",
    )
    assert (changed["location"], changed["locationType"]) == ("US-EAST4", "region")
    put(shelf, "a")
    refused = shelf.delete("/storage/v1/b/shelf")
    assert refused.status_code == 409
    assert refused.json()["error"]["errors"][0]["reason"] == "conflict"


def test_a_missing_bucket_or_object_is_reported_in_storages_own_shape(shelf):
    for path in ("/storage/v1/b/absent", "/storage/v1/b/shelf/o/absent"):
        error = shelf.get(path).json()["error"]
        assert error["code"] == 404
        assert "status" not in error
        assert error["errors"][0]["reason"] == "notFound"


@pytest.mark.slow
def test_media_multipart_and_resumable_put_the_same_object(shelf):
    chunk = 262_144
    data = b"some\r\n--content\r\n" + b"x" * chunk
    put(shelf, "a/media", data)
    body = (
        b"--XX\r\nContent-Type: application/json\r\n\r\n" + json.dumps({"name": "a/multi"}).encode()
        + b"\r\n--XX\r\nContent-Type: text/plain\r\n\r\n" + data + b"\r\n--XX--\r\n"
    )  # fmt: skip
    headers = {"Content-Type": "multipart/related; boundary=XX"}
    multi = shelf.http.post(UPLOAD, params={"uploadType": "multipart"}, content=body, headers=headers).json()
    opened = shelf.http.post(UPLOAD, params={"uploadType": "resumable"}, json={"name": "a/whole"})
    shelf.http.put(opened.headers["location"], content=data)
    chunked = shelf.http.post(UPLOAD, params={"uploadType": "resumable", "name": "a/chunked"}).headers["location"]
    first = shelf.http.put(chunked, content=data[:chunk], headers={"Content-Range": f"bytes 0-{chunk - 1}/*"})
    assert (first.status_code, first.headers["range"]) == (308, f"bytes=0-{chunk - 1}")
    asked = shelf.http.put(chunked, headers={"Content-Range": "bytes */*"})
    assert (asked.status_code, asked.headers["range"]) == (308, f"bytes=0-{chunk - 1}")
    rest = f"bytes {chunk}-{len(data) - 1}/{len(data)}"
    assert shelf.http.put(chunked, content=data[chunk:], headers={"Content-Range": rest}).status_code == 200
    for name in ("a/media", "a/multi", "a/whole", "a/chunked"):
        assert content(shelf, name) == data
        shown = shelf.get("/storage/v1/b/shelf/o/" + name.replace("/", "%2F")).json()
        assert shown["size"] == str(len(data))
        assert shown["md5Hash"] == base64.b64encode(hashlib.md5(data, usedforsecurity=False).digest()).decode()
        assert (shelf.endpoint.directory / "objects/shelf" / name).read_bytes() == data
    assert multi["contentType"] == "text/plain"


@pytest.mark.parametrize(
    ("boundary", "status"), [("XX", 200), ('"XX"', 200), ("'XX'", 200), ("'XX", 400), ('"YY"', 400)]
)
def test_a_boundary_may_be_quoted_and_must_be_the_body_s(shelf, boundary, status):
    """A boundary may be quoted as gcloud quotes it and must be the body's."""
    body = b'--XX\r\n\r\n{"name": "a/quoted"}\r\n--XX\r\n\r\ncontent\r\n--XX--\r\n'
    headers = {"Content-Type": f"multipart/related; boundary={boundary}"}
    answer = shelf.http.post(UPLOAD, params={"uploadType": "multipart"}, content=body, headers=headers)
    assert answer.status_code == status, answer.text


@pytest.mark.parametrize("metadata", [b"[]", b"{", b'"a"'])
def test_a_multipart_upload_without_metadata_is_refused(shelf, metadata):
    body = b"--XX\r\n\r\n" + metadata + b"\r\n--XX\r\n\r\ncontent\r\n--XX--\r\n"
    headers = {"Content-Type": "multipart/related; boundary=XX"}
    answer = shelf.http.post(UPLOAD, params={"uploadType": "multipart"}, content=body, headers=headers)
    assert (answer.status_code, "Invalid JSON payload received" in answer.text) == (400, True)


def test_objects_are_listed_by_prefix_folded_and_paged(shelf):
    for name in ("a/1", "a/2", "a/b/3", "c"):
        put(shelf, name)
    listed = shelf.get("/storage/v1/b/shelf/o", prefix="a/", delimiter="/").json()
    assert [item["name"] for item in listed["items"]] == ["a/1", "a/2"]
    assert listed["prefixes"] == ["a/b/"]
    names, token = [], ""
    while True:
        page = shelf.get("/storage/v1/b/shelf/o", maxResults=1, pageToken=token).json()
        names += [item["name"] for item in page["items"]]
        token = page.get("nextPageToken", "")
        if not token:
            break
    assert names == ["a/1", "a/2", "a/b/3", "c"]
    assert "items" not in shelf.get("/storage/v1/b/shelf/o", prefix="d").json()


def test_a_range_is_a_part_and_a_generation_guards_an_overwrite(shelf):
    generation = put(shelf, "a", b"0123456789", ifGenerationMatch=0).json()["generation"]
    part = shelf.http.get("/storage/v1/b/shelf/o/a", params={"alt": "media"}, headers={"Range": "bytes=2-4"})
    assert (part.status_code, part.content) == (206, b"234")
    assert put(shelf, "a", b"new", ifGenerationMatch=0).status_code == 412
    assert content(shelf, "a") == b"0123456789"
    newer = put(shelf, "a", b"new", ifGenerationMatch=generation).json()["generation"]
    assert int(newer) > int(generation)


@pytest.mark.parametrize("name", ["../escape", "a/../../b", "/absolute", "a//b", "a/./b", "a" * 256])
def test_an_object_whose_name_no_file_can_have_is_in_no_mount(shelf, name):
    assert put(shelf, name, b"kept").status_code == 200
    assert content(shelf, name) == b"kept"
    assert list((shelf.endpoint.directory / "objects" / "shelf").rglob("*")) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["a\nb", "a\rb", ".", "..", "x" * 1025, ".well-known/acme-challenge/x"])
def test_a_name_that_google_refuses_is_refused_and_nothing_of_it_stays(shelf, name):
    assert put(shelf, name).status_code == 400
    assert not list((shelf.endpoint.directory / "uploads").iterdir())


def test_one_name_may_be_an_object_and_a_folder(shelf):
    """One name may be an object and the folder of others and the mount shows the folder."""
    folder = shelf.endpoint.directory / "objects" / "shelf"
    for name in ("a", "a/b", "a/b/c"):
        assert put(shelf, name, name.encode()).status_code == 200
    assert [path.relative_to(folder).as_posix() for path in sorted(folder.rglob("*"))] == ["a", "a/b", "a/b/c"]
    assert [content(shelf, name) for name in ("a", "a/b", "a/b/c")] == [b"a", b"a/b", b"a/b/c"]
    shelf.delete("/storage/v1/b/shelf/o/a%2Fb%2Fc")
    assert (folder / "a" / "b").read_bytes() == b"a/b"
    shelf.delete("/storage/v1/b/shelf/o/a%2Fb")
    assert (folder / "a").read_bytes() == b"a"


def test_deleting_the_last_object_of_a_folder_removes_the_folder(shelf):
    put(shelf, "deep/er/file")
    shelf.delete("/storage/v1/b/shelf/o/deep%2Fer%2Ffile")
    assert list((shelf.endpoint.directory / "objects/shelf").iterdir()) == []


def test_seeding_uploads_once_and_again_what_changed(shelf, endpoint):
    files = {"config.json": b"{}", "sub/part": b"12"}
    assert seed(endpoint, "shelf", "models/m", files) == 2
    assert seed(endpoint, "shelf", "models/m", files) == 0
    assert seed(endpoint, "shelf", "models/m", files | {"sub/part": b"123"}) == 1
    assert content(shelf, "models/m/sub/part") == b"123"
    assert seed(endpoint, "near", "models/m", files, "EUROPE-WEST4") == 2
    assert shelf.get("/storage/v1/b/near").json()["location"] == "EUROPE-WEST4"


@pytest.mark.parametrize(
    ("bucket", "path", "message"),
    [
        ("shelf", "a" * 1020, "The specified object name is too long: 1032 bytes"),
        ("a b; rm-models", "m", "the weights cannot be uploaded to gs://a b; rm-models/m, so nothing was deployed"),
    ],
)
@pytest.mark.usefixtures("shelf")
def test_what_cannot_be_seeded_is_reported_in_the_cloud_s_own_words(endpoint, bucket, path, message):
    with pytest.raises(SeedError) as caught:
        seed(endpoint, bucket, path, {"config.json": b"{}"})
    assert message in str(caught.value)


def test_a_cloud_that_does_not_answer_is_reported_with_its_logs(endpoint):
    with pytest.raises(SeedError, match=r"(?s)does not respond .*logs, then run it again"):
        seed(replace(endpoint, base="http://127.0.0.1:9"), "shelf", "m", {"config.json": b"{}"})


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(name=st.text(min_size=1, max_size=40))
def test_no_name_leads_out_of_its_bucket(tmp_path_factory, name):
    files = ObjectFiles(Paths(tmp_path_factory.getbasetemp()), None)
    path = files.mounts.path("bucket", name)
    assert path is None or path.resolve().is_relative_to(files.bucket_folder("bucket").resolve())


def test_files_of_an_earlier_version_are_taken_over(tmp_path):
    """The files of an earlier version are taken over and unknown ones deleted."""
    layout = Paths(tmp_path)
    layout.create()
    store = Store(layout.database)
    files = ObjectFiles(layout, store)
    folder = files.bucket_folder("b")
    (folder / "sub").mkdir(parents=True)
    (folder / "sub" / "unknown").write_bytes(b"placed, never described")
    (folder / "known").write_bytes(b"replaced")
    (layout.uploads / "half").write_bytes(b"on its way")
    (layout.objects / "gone").mkdir()
    for name in ("b", "other"):
        store.put("bucket", name, {})
    for name, size in (("known", "3"), ("lost", "1")):
        store.put("object", f"b/{name}", {"bucket": "b", "name": name, "size": size, "md5Hash": ""})
    files.recover()
    assert [name for name, _ in store.rows("object")] == ["b/known"]
    assert store.get("object", "b/known")["size"] == "8"
    assert sorted(path.name for path in folder.rglob("*")) == ["known"]
    assert files.content(store.get("object", "b/known")).read_bytes() == b"replaced"
    assert sorted(path.name for path in layout.objects.iterdir()) == ["b", "other"]
    assert list(layout.uploads.iterdir()) == []


@pytest.fixture
def depot(shelf):
    """An empty bucket in another location, deleted with all it holds."""
    assert shelf.post("/storage/v1/b", {"name": "depot", "location": "EU"}, project="bezel-local").status_code == 200
    yield shelf
    for item in shelf.get("/storage/v1/b/depot/o").json().get("items", []):
        shelf.delete("/storage/v1/b/depot/o/" + item["name"].replace("/", "%2F"))
    assert shelf.delete("/storage/v1/b/depot").status_code == 204


def rewrite(cloud, source, target, **query):
    path = f"{source.replace('/', '%2F')}/rewriteTo/b/{target.partition('/')[0]}/o/"
    path += target.partition("/")[2].replace("/", "%2F")
    return cloud.post(f"/storage/v1/b/shelf/o/{path}", **query)


def test_a_rewrite_copies_content_and_what_is_noted_on_it(shelf):
    put(shelf, "a/b", b"bytes")
    answer = rewrite(shelf, "a/b", "shelf/c d/ü").json()
    assert (answer["done"], answer["objectSize"], answer["totalBytesRewritten"]) == (True, "5", "5")
    assert content(shelf, "c d/ü") == b"bytes"
    assert answer["resource"]["md5Hash"] == shelf.get("/storage/v1/b/shelf/o/a%2Fb").json()["md5Hash"]


@pytest.mark.slow
def test_a_rewrite_to_another_location_takes_steps(depot):
    """A rewrite to another location takes steps and shows nothing before the last."""
    put(depot, "large", b"\1" * (20 * 1024 * 1024))
    token, steps = "", 0
    while True:
        answer = rewrite(depot, "large", "depot/large", **({"rewriteToken": token} if token else {})).json()
        steps += 1
        if answer["done"]:
            break
        token = answer["rewriteToken"]
        assert depot.get("/storage/v1/b/depot/o/large").status_code == 404
        assert rewrite(depot, "large", "depot/other", rewriteToken=token).status_code == 400
    assert steps == 3
    assert depot.get("/storage/v1/b/depot/o/large").json()["size"] == str(20 * 1024 * 1024)


def test_a_rewrite_needs_the_right_to_read_and_to_write(depot, endpoint):
    put(depot, "a")
    scope = {"scope": ["https://www.googleapis.com/auth/cloud-platform"]}
    token = depot.post(f"/iamcredentials/v1/projects/-/serviceAccounts/{RUNTIME}:generateAccessToken", scope).json()
    other = Client(endpoint, token["accessToken"])
    for reader, writer in (("Admin", ""), ("", "Admin")):
        for bucket, role in (("shelf", reader), ("depot", writer)):
            member = {"role": f"roles/storage.object{role}", "members": [f"serviceAccount:{RUNTIME}"]}
            policy = depot.get(f"/storage/v1/b/{bucket}/iam").json()
            kept = [binding for binding in policy["bindings"] if "object" not in binding["role"]]
            depot.put(f"/storage/v1/b/{bucket}/iam", policy | {"bindings": kept + [member] * bool(role)})
        assert rewrite(other, "a", "depot/a").status_code == 403
    assert depot.get("/storage/v1/b/depot/o/a").status_code == 404
