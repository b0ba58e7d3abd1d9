"""The XML API: objects by path, lists, multipart uploads, who may read, and errors in its own words."""

import re
from xml.etree import ElementTree as ET

import pytest

OBJECT = "/shelf/a/b"
PART = 5 << 20


def texts(answer, name):
    nodes = ET.fromstring(answer.content).iter()  # noqa: S314 - localcloud's own document
    return [node.text for node in nodes if node.tag.rpartition("}")[2] == name]


def code(answer):
    return (answer.status_code, texts(answer, "Code")[0])


@pytest.mark.slow
def test_an_object_is_written_read_described_and_deleted_by_its_path(project):
    headers = {"Content-Type": "text/plain", "x-goog-meta-key": "value", "Cache-Control": "no-store"}
    written = project.raw("PUT", OBJECT, b"content", headers)
    assert (written.status_code, written.content) == (200, b"")
    assert written.headers["etag"] == '"9a0364b9e99bb480dd25e1f0284c8555"'
    read = project.raw("GET", OBJECT)
    assert (read.content, read.headers["x-goog-meta-key"], read.headers["content-type"]) == (
        b"content",
        "value",
        "text/plain",
    )
    head = project.raw("HEAD", OBJECT)
    assert (head.status_code, head.headers["content-length"], head.content) == (200, "7", b"")
    shown = project.ok("GET", "/storage/v1/b/shelf/o/a%2Fb")
    assert (shown["metadata"], shown["cacheControl"]) == ({"key": "value"}, "no-store")
    assert project.raw("DELETE", OBJECT).status_code == 204
    assert code(project.raw("GET", OBJECT)) == (404, "NoSuchKey")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("verb", "path", "headers", "expected"),
    [
        ("GET", "/absent-bucket/a", {}, (404, "NoSuchBucket")),
        ("GET", "/absent-bucket", {}, (404, "NoSuchBucket")),
        ("PUT", "/shelf/a%0Ab", {}, (400, "InvalidArgument")),
        ("GET", "/shelf/%FF", {}, (400, "InvalidArgument")),
        ("PUT", OBJECT, {"x-goog-if-generation-match": "1"}, (412, "PreconditionFailed")),
        ("PUT", OBJECT, {"Content-MD5": "AAAAAAAAAAAAAAAAAAAAAA=="}, (400, "BadDigest")),
        ("PUT", OBJECT, {"x-goog-acl": "public-read"}, (400, "notServedByLocalcloud")),
        ("PUT", OBJECT, {"x-goog-encryption-key": "x"}, (400, "CustomerEncryptionAlgorithmIsInvalid")),
        ("GET", "/shelf?acl", {}, (400, "notServedByLocalcloud")),
        ("PATCH", OBJECT, {}, (405, "MethodNotAllowed")),
        ("GET", OBJECT, {"Authorization": "GOOG4-HMAC-SHA256 x"}, (400, "notServedByLocalcloud")),
        ("GET", OBJECT, {"Authorization": "Bearer nonsense"}, (401, "AuthenticationRequired")),
        ("PUT", f"{OBJECT}?partNumber=1&uploadId=none", {}, (404, "NoSuchUpload")),
        ("GET", "/shelf?max-keys=many", {}, (400, "InvalidArgument")),
        ("DELETE", "/shelf", {}, (409, "BucketNotEmpty")),
    ],
)
def test_an_error_has_the_code_of_the_xml_api(project, put, verb, path, headers, expected):
    put("kept")
    assert code(project.raw(verb, path, b"x" if verb == "PUT" else b"", headers)) == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    "headers",
    [
        {"x-amz-copy-source": "shelf/kept"},
        {"X-Amz-Meta-Key": "value"},
        {"x-amz-acl": "public-read"},
        {"x-goog-copy-source": "shelf/kept", "x-goog-acl": "public-read"},
    ],
)
def test_a_header_that_changes_an_object_is_never_ignored(project, put, headers):
    put("kept")
    refused = project.raw("PUT", OBJECT, b"", headers)
    assert code(refused) == (400, "notServedByLocalcloud")
    assert f"the header {list(headers)[-1].lower()}" in refused.text
    assert project.raw("GET", OBJECT).status_code == 404


@pytest.mark.slow
def test_amazon_s_headers_of_a_transport_are_ignored(project, put):
    """Amazon's headers of a transport are ignored and Google's copy is made."""
    put("kept", b"content")
    transport = {"x-amz-date": "20261128T000000Z", "x-amz-content-sha256": "UNSIGNED-PAYLOAD"}
    copied = project.raw("PUT", OBJECT, b"", transport | {"x-goog-copy-source": "shelf/kept", "x-goog-acl": "private"})
    assert copied.is_success
    assert project.raw("GET", OBJECT, headers=transport).content == b"content"


def test_a_path_of_another_api_is_not_a_missing_bucket_s(project, put):
    """A path of another API is never a bucket's unless the bucket exists."""
    missing = project.raw("GET", "/run/v2/nothing")
    assert missing.json()["error"]["message"] == "Method not found: GET /run/v2/nothing"
    project.ok("POST", "/storage/v1/b", {"name": "run"}, project="bezel-local")
    put("v2/nothing", b"kept", bucket="run")
    assert project.raw("GET", "/run/v2/nothing").content == b"kept"
    assert "services" not in project.raw("GET", "/run/v2/projects/bezel-local/locations/us-east4/services").text


def test_all_users_read_and_list_where_the_bucket_allows_it(project, put):
    """All users read and list where the bucket allows it and write nowhere else."""
    put("a", b"open")
    assert code(project.raw("GET", "/shelf/a", token=False)) == (403, "AccessDenied")
    assert project.raw("GET", "/storage/v1/b/shelf/o/a", token=False).status_code == 401
    policy = project.ok("GET", "/storage/v1/b/shelf/iam")
    policy["bindings"].append({"role": "roles/storage.objectViewer", "members": ["allUsers"]})
    project.ok("PUT", "/storage/v1/b/shelf/iam", policy)
    assert project.raw("GET", "/shelf/a", token=False).content == b"open"
    assert texts(project.raw("GET", "/shelf", token=False), "Key") == ["a"]
    assert project.raw("GET", "/storage/v1/b/shelf/o/a?alt=media", token=False).content == b"open"
    assert code(project.raw("PUT", "/shelf/a", b"x", token=False)) == (403, "AccessDenied")
    assert code(project.raw("DELETE", "/shelf/a", token=False)) == (403, "AccessDenied")


def test_public_access_prevention_keeps_a_bucket_from_all_users(project):
    access = {"iamConfiguration": {"publicAccessPrevention": "enforced"}}
    project.ok("PATCH", "/storage/v1/b/shelf", access)
    policy = project.ok("GET", "/storage/v1/b/shelf/iam")
    policy["bindings"].append({"role": "roles/storage.objectViewer", "members": ["allUsers"]})
    assert "public access prevention" in project.refusal(412, "PUT", "/storage/v1/b/shelf/iam", policy)["message"]


@pytest.mark.parametrize("version", ["", "list-type=2&"])
def test_both_versions_of_a_list_fold_and_page(project, put, version):
    for name in ("a", "d/x", "d/y", "e", "f"):
        put(name)
    keys, prefixes, after = [], [], ""
    while True:
        answer = project.raw("GET", f"/shelf?{version}delimiter=/&max-keys=2{after}")
        keys += texts(answer, "Key")
        prefixes += texts(answer, "Prefix")[1:]
        if texts(answer, "IsTruncated") == ["false"]:
            break
        marker = texts(answer, "NextContinuationToken" if version else "NextMarker")[0]
        after = f"&{'continuation-token' if version else 'marker'}={marker}"
    assert (keys, prefixes) == (["a", "e", "f"], ["d/"])


def test_buckets_are_reached_by_their_host_too(project, put):
    put("a b", b"hosted")
    host = {"Host": "shelf.storage.localhost:1"}
    assert project.raw("GET", "/a%20b", headers=host).content == b"hosted"
    assert texts(project.raw("GET", "/", headers=host), "Key") == ["a b"]
    assert code(project.raw("GET", "/a", headers={"Host": "other.storage.localhost"})) == (404, "NoSuchBucket")


@pytest.mark.slow
def test_a_multipart_upload_joins_its_parts_in_order(project):
    """A multipart upload joins its parts in order and survives a restart."""
    headers = {"Content-Type": "text/plain", "x-goog-meta-a": "b"}
    identifier = texts(project.raw("POST", f"{OBJECT}?uploads", headers=headers), "UploadId")[0]
    parts = {2: b"end", 1: b"x" * PART}
    etags = {}
    for number, content in parts.items():
        answer = project.raw("PUT", f"{OBJECT}?partNumber={number}&uploadId={identifier}", content)
        etags[number] = answer.headers["etag"]
    project.restart()
    assert texts(project.raw("GET", f"{OBJECT}?uploadId={identifier}"), "PartNumber") == ["1", "2"]
    assert texts(project.raw("GET", "/shelf?uploads"), "UploadId") == [identifier]

    def complete(*numbers):
        listed = "".join(f"<Part><PartNumber>{n}</PartNumber><ETag>{etags[n]}</ETag></Part>" for n in numbers)
        document = f"<CompleteMultipartUpload>{listed}</CompleteMultipartUpload>".encode()
        return project.raw("POST", f"{OBJECT}?uploadId={identifier}", document)

    assert code(complete(2, 1)) == (400, "InvalidPartOrder")
    assert code(project.raw("GET", OBJECT)) == (404, "NoSuchKey")
    done = complete(1, 2)
    assert (done.status_code, complete(1, 2).status_code) == (200, 200)
    response = project.raw("GET", OBJECT)
    assert (response.content, response.headers["x-goog-meta-a"]) == (parts[1] + parts[2], "b")
    assert list(project.cloud.layout.uploads.iterdir()) == []


def test_an_upload_with_small_or_unknown_parts_is_refused(project):
    """An upload whose parts are too small or unknown is refused and an aborted one is gone."""
    identifier = texts(project.raw("POST", f"{OBJECT}?uploads"), "UploadId")[0]
    etag = project.raw("PUT", f"{OBJECT}?partNumber=1&uploadId={identifier}", b"small").headers["etag"]
    again = project.raw("PUT", f"{OBJECT}?partNumber=2&uploadId={identifier}", b"small").headers["etag"]

    def complete(first, second):
        listed = "".join(
            f"<Part><PartNumber>{n}</PartNumber><ETag>{e}</ETag></Part>" for n, e in ((1, first), (2, second))
        )
        return code(project.raw("POST", f"{OBJECT}?uploadId={identifier}", f"<C>{listed}</C>".encode()))

    assert complete(etag, again) == (400, "EntityTooSmall")
    assert complete('"0"', again) == (400, "InvalidPart")
    assert project.raw("DELETE", f"{OBJECT}?uploadId={identifier}").status_code == 204
    assert complete(etag, again) == (404, "NoSuchUpload")
    assert list(project.cloud.layout.uploads.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("document", [b"<a", b"<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>", b"<C><Part/></C>"])
def test_a_document_that_is_malformed_or_declares_entities_is_refused(project, document):
    identifier = texts(project.raw("POST", f"{OBJECT}?uploads"), "UploadId")[0]
    assert code(project.raw("POST", f"{OBJECT}?uploadId={identifier}", document)) == (400, "InvalidArgument")


def test_copies_and_compositions_by_headers_and_documents(project, put):
    put("one", b"1")
    put("two", b"2")
    assert texts(project.raw("PUT", "/shelf/copy", headers={"x-goog-copy-source": "/shelf/one"}), "ETag")
    document = b"<C><Component><Name>one</Name></Component><Component><Name>two</Name></Component></C>"
    assert project.raw("PUT", "/shelf/both?compose", document).status_code == 200
    assert [project.raw("GET", f"/shelf/{name}").content for name in ("copy", "both")] == [b"1", b"12"]
    missing = project.raw("PUT", "/shelf/copy", headers={"x-goog-copy-source": "/shelf/none"})
    assert code(missing) == (404, "NoSuchKey")


def test_a_bucket_is_created_described_and_deleted(project):
    document = b"<CreateBucketConfiguration><LocationConstraint>EU</LocationConstraint></CreateBucketConfiguration>"
    assert project.raw("PUT", "/new-bucket", document).status_code == 200
    assert texts(project.raw("GET", "/new-bucket?location"), "LocationConstraint") == ["EU"]
    enabled = b"<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>"
    assert project.raw("PUT", "/new-bucket?versioning", enabled).status_code == 200
    assert texts(project.raw("GET", "/new-bucket?versioning"), "Status") == ["Enabled"]
    assert texts(project.raw("GET", "/"), "Name") == ["new-bucket", "shelf"]
    assert code(project.raw("PUT", "/new-bucket")) == (409, "BucketAlreadyOwnedByYou")
    assert project.raw("DELETE", "/new-bucket").status_code == 204
    assert project.raw("HEAD", "/new-bucket").status_code == 404


@pytest.mark.slow
def test_a_resumable_session_is_begun_by_a_header(project):
    """A resumable session is begun by a header and continued without a token."""
    opened = project.raw("POST", OBJECT, headers={"x-goog-resumable": "start", "Content-Type": "text/plain"})
    address = opened.headers["location"]
    assert (opened.status_code, re.sub(r"=\w+", "=ID", address)) == (201, "http://127.0.0.1:1/shelf/a/b?upload_id=ID")
    chunk = b"a" * 262_144
    first = project.raw("PUT", address, chunk, {"Content-Range": "bytes 0-262143/262145"}, token=False)
    assert first.status_code == 308
    last = project.raw("PUT", address, b"b", {"Content-Range": "bytes 262144-262144/262145"}, token=False)
    assert (last.status_code, project.raw("GET", OBJECT).content) == (200, chunk + b"b")
