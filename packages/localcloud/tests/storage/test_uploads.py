"""Uploads as the transports of Google's clients send them: their paths, chunks, parameters and bodies."""

import base64
import hashlib
import itertools
import json

import pytest

from localcloud_support.discovery_documents import SOURCES, document, methods_of, upload_paths
from localcloud_support.in_process import PARENT

CHUNK = 262_144
PATHS = ["/upload/storage/v1/b/shelf/o", "/resumable/upload/storage/v1/b/shelf/o"]
CONTENT = bytes(range(256)) * (2 * CHUNK // 256) + b"end" * 300


@pytest.fixture
def new_session(project):
    """A function that opens a session and returns the path of its address."""

    def open_session(path=PATHS[0], body=b"{}", query="name=x", **headers):
        answer = project.raw("POST", f"{path}?uploadType=resumable&{query}", body, headers)
        assert answer.status_code == 200, answer.text
        return answer.headers["location"].removeprefix(project.cloud.base)

    return open_session


def content(project, name="x"):
    return project.raw("GET", f"/storage/v1/b/shelf/o/{name}?alt=media").content


def chunks(size=CHUNK):
    """(range, bytes) of each chunk, as a client that does not know the size until its end sends them."""
    for begin in range(0, len(CONTENT), size):
        part = CONTENT[begin : begin + size]
        total = len(CONTENT) if begin + size >= len(CONTENT) else "*"
        yield f"bytes {begin}-{begin + len(part) - 1}/{total}", part


# Go, rclone and gcsfs send POST; Go and rclone ask for no 308; gcloud and gsutil have a path of their own.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("verb", "path", "no_308"), list(itertools.product(("PUT", "POST"), PATHS, ("", "yes"))), ids=str
)
def test_a_session_takes_chunks_in_the_way_of_every_transport(project, new_session, verb, path, no_308):
    session, headers = new_session(path), {"X-GUploader-No-308": no_308} if no_308 else {}
    assert session.startswith(path)
    sent = 0
    for span, part in chunks():
        answer = project.raw(verb, session, part, headers | {"Content-Range": span}, token=False)
        sent += len(part)
        if sent < len(CONTENT):
            assert answer.headers["range"] == f"bytes=0-{sent - 1}"
            assert answer.status_code == (200 if no_308 else 308)
            assert answer.headers.get("x-http-status-code-override") == ("308" if no_308 else None)
    assert answer.status_code == 200
    assert "x-http-status-code-override" not in answer.headers
    assert answer.json()["size"] == str(len(CONTENT))
    assert content(project) == CONTENT


@pytest.mark.parametrize("asks", ["", "yes"])
def test_a_session_tells_how_much_it_has(project, new_session, asks):
    session, headers = new_session(), {"Content-Range": "bytes */*"} | ({"X-GUploader-No-308": asks} if asks else {})
    answer = project.raw("POST", session, b"", headers)
    assert (answer.status_code, "range" in answer.headers) == (200 if asks else 308, False)
    assert answer.content == b""


@pytest.mark.slow
@pytest.mark.parametrize("span", ["bytes 0-*/*", f"bytes 0-*/{len(CONTENT)}", None])
@pytest.mark.parametrize("verb", ["PUT", "POST"])
def test_an_upload_in_one_request_needs_no_end(project, new_session, verb, span):
    headers = {"Content-Range": span} if span else {}
    assert project.raw(verb, new_session(), CONTENT, headers).json()["size"] == str(len(CONTENT))
    assert content(project) == CONTENT


@pytest.mark.slow
def test_the_rest_of_an_upload_may_be_open_at_its_end(project, new_session):
    session, (first, part) = new_session(), next(chunks())
    assert project.raw("PUT", session, part, {"Content-Range": first}).status_code == 308
    answer = project.raw("PUT", session, CONTENT[CHUNK:], {"Content-Range": f"bytes {CHUNK}-*/*"})
    assert answer.json()["size"] == str(len(CONTENT))
    assert content(project) == CONTENT


def test_an_open_end_that_lacks_bytes_of_the_total_is_incomplete(project, new_session):
    session = new_session()
    answer = project.raw("PUT", session, b"abc", {"Content-Range": "bytes 0-*/10"})
    assert (answer.status_code, answer.headers["range"]) == (308, "bytes=0-2")
    assert project.raw("PUT", session, b"defghij", {"Content-Range": "bytes 3-*/10"}).json()["size"] == "10"


@pytest.mark.slow
@pytest.mark.parametrize("span", ["bytes *-*/*", "bytes 5-3/10", "bytes 0-*", "bytes */", "0-*/*", "bytes 0-٣/*"])
def test_a_malformed_range_is_refused(project, new_session, span):
    answer = project.raw("PUT", new_session(), b"abc", {"Content-Range": span.encode()})
    assert answer.status_code == 400
    assert project.raw("GET", "/storage/v1/b/shelf/o/x").status_code == 404


def test_a_post_without_a_session_opens_a_new_one(project, new_session):
    assert new_session() != new_session()
    unknown = f"{PATHS[0]}?uploadType=resumable&upload_id=none"
    assert project.raw("POST", unknown, b"x").status_code == 404


def test_a_session_is_ended_at_either_path(project, new_session):
    for path in PATHS:
        session = new_session(path)
        assert project.raw("DELETE", session).status_code == 499
        assert project.raw("POST", session, b"x").status_code == 404


@pytest.mark.slow
@pytest.mark.parametrize("body", [b"null", b"", b"{}", b" null\n"])
def test_metadata_may_be_null(project, new_session, body):
    session = new_session(body=body, **{"X-Upload-Content-Type": "text/x-tried"})
    assert project.raw("PUT", session, b"abc").json()["contentType"] == "text/x-tried"
    mixed = (
        b"--b\r\ncontent-type: application/json\r\n\r\n"
        + body
        + b"\r\n--b\r\ncontent-type: text/plain\r\n\r\nabc\r\n--b--"
    )
    path = f"{PATHS[0]}?uploadType=multipart&name=mixed"
    assert project.raw("POST", path, mixed, {"content-type": "multipart/related; boundary=b"}).json()["size"] == "3"


@pytest.mark.slow
@pytest.mark.parametrize("body", [b"[]", b"1", b'"null"', b"nul"])
def test_metadata_that_is_no_object_is_refused(project, body):
    answer = project.raw("POST", f"{PATHS[0]}?uploadType=resumable&name=x", body)
    assert (answer.status_code, project.raw("GET", "/storage/v1/b/shelf/o/x").status_code) == (400, 404)


def test_an_xml_session_takes_posts_too(project):
    begun = project.raw("POST", "/shelf/x", b"", {"x-goog-resumable": "start"})
    session = begun.headers["location"].removeprefix(project.cloud.base)
    (first, part), *rest = chunks()
    answer = project.raw("POST", session, part, {"Content-Range": first, "X-GUploader-No-308": "yes"})
    assert (answer.status_code, answer.headers["x-http-status-code-override"]) == (200, "308")
    for span, part in rest:
        assert project.raw("POST", session, part, {"Content-Range": span}).status_code in {200, 308}
    assert content(project) == CONTENT
    assert project.raw("POST", "/shelf/x", b"").status_code == 405


MEDIA = [
    (source, method) for source in SOURCES for method in methods_of(document(source.document)) if upload_paths(method)
]


def test_the_documents_have_methods_with_media():
    assert len(MEDIA) >= 11
    assert "storage.objects.insert" in {method["id"] for _, method in MEDIA}


@pytest.mark.slow
@pytest.mark.parametrize(("source", "method"), MEDIA, ids=[method["id"] for _, method in MEDIA])
def test_every_path_of_a_media_upload_is_served_or_named(project, source, method):
    for path in upload_paths(method):
        for prefix in {"", source.prefix.rstrip("/")} if method["id"] not in source.serves else {""}:
            called = prefix + path.replace("b/{}", "b/shelf").replace("{}", "x")
            for kind in ("media", "multipart", "resumable"):
                body = b"--b\r\n\r\n{}\r\n--b\r\n\r\nabc\r\n--b--" if kind == "multipart" else b"null"
                headers = {"content-type": "multipart/related; boundary=b" if kind == "multipart" else "text/plain"}
                answer = project.raw("POST", f"{called}?uploadType={kind}&name={kind}", body, headers)
                if method["id"] in source.serves:
                    assert answer.status_code == 200, (called, kind, answer.text)
                else:
                    assert f"does not serve {method['id']} " in answer.text, (called, answer.text)
                    assert not answer.is_success


def test_a_path_of_no_media_upload_is_unknown(project):
    for path in (
        "/upload/v1/projects/x/nothing:upload",
        "/resumable/upload/storage/v1/b/shelf/p",
        "/resumable/storage/v1/b",
    ):
        assert project.raw("POST", path, b"x").status_code == 404


CALLS = [
    ("POST", "/upload/storage/v1/b/shelf/o?uploadType=media&name=q"),
    ("GET", "/storage/v1/b/shelf/o/kept?"),
    ("GET", "/storage/v1/b/shelf/o?"),
    ("GET", "/storage/v1/b/shelf?"),
    ("GET", "/storage/v1/b?project=bezel-local"),
    ("PATCH", "/storage/v1/b/shelf/o/kept?"),
    ("POST", "/storage/v1/b/shelf/o/kept/rewriteTo/b/shelf/o/copied?"),
    ("DELETE", "/storage/v1/b/shelf/o/kept?"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("verb", "path"), CALLS)
def test_an_unknown_parameter_is_ignored_as_google_does(project, put, verb, path):
    put("kept")
    for name in ("unknown", "x-id", "softDeletedToo", "$skip"):
        answer = project.raw(verb, f"{path}&{name}=1", b"{}" if verb == "PATCH" else b"")
        assert answer.is_success, answer.text
        if verb == "DELETE":
            put("kept")


@pytest.mark.slow
@pytest.mark.parametrize(("name", "value"), [("ifGenerationMatch", "soon"), ("maxResults", "x")])
def test_a_wrong_value_of_a_known_parameter_is_refused(project, name, value):
    path = "/storage/v1/b/shelf/o" if name == "maxResults" else "/storage/v1/b/shelf/o/x"
    assert project.raw("GET", f"{path}?{name}={value}").status_code == 400


def test_an_unknown_parameter_of_another_api_is_refused(project):
    assert project.raw("GET", f"/crm/v1/{PARENT}?unknown=1").status_code == 400


LISTS = ("private", "projectPrivate", "bucketOwnerRead", "bucketOwnerFullControl")
HEADERS = ("private", "project-private", "bucket-owner-read", "bucket-owner-full-control")


@pytest.mark.slow
@pytest.mark.parametrize("value", LISTS)
@pytest.mark.parametrize("uniform", [True, False])
def test_a_predefined_list_of_the_project_has_no_effect(project, put, value, uniform):
    access = {"iamConfiguration": {"uniformBucketLevelAccess": {"enabled": uniform}}}
    if value in {"private", "projectPrivate"}:
        project.ok("POST", "/storage/v1/b", {"name": "other"}, project="bezel-local", predefinedAcl=value)
    both = {"predefinedDefaultObjectAcl": value}
    project.ok("PATCH", "/storage/v1/b/shelf", access, **both)
    put("kept")
    for kind in ("media", "resumable"):
        path = f"{PATHS[0]}?uploadType={kind}&name=x&predefinedAcl={value}"
        assert project.raw("POST", path, b"").is_success
    project.ok("PATCH", "/storage/v1/b/shelf/o/kept", {"metadata": {"a": "b"}}, predefinedAcl=value)
    body = {"sourceObjects": [{"name": "kept"}], "destination": {"contentType": "text/plain"}}
    project.ok("POST", "/storage/v1/b/shelf/o/joined/compose", body, destinationPredefinedAcl=value)
    project.ok("POST", "/storage/v1/b/shelf/o/kept/rewriteTo/b/shelf/o/copied", {}, destinationPredefinedAcl=value)
    header = HEADERS[LISTS.index(value)]
    assert project.raw("PUT", "/shelf/by-xml", b"x", {"x-goog-acl": header}).is_success
    assert project.raw("GET", "/storage/v1/b/shelf/o/x?alt=media", token=False).status_code == 401


@pytest.mark.parametrize("value", ["publicRead", "authenticatedRead"])
def test_a_predefined_list_for_others_is_refused_by_name(project, value):
    answer = project.raw("POST", f"{PATHS[0]}?uploadType=media&name=x&predefinedAcl={value}", b"x")
    assert not answer.is_success
    assert "predefinedAcl" in answer.text
    answer = project.raw("PUT", "/shelf/x", b"x", {"x-goog-acl": "public-read"})
    assert not answer.is_success
    assert "x-goog-acl" in answer.text
    assert project.raw("GET", "/storage/v1/b/shelf/o/x").status_code == 404


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["folders", "managedFolders"])
def test_a_bucket_has_no_folders(project, put, kind):
    put("a/b")
    listing = project.ok("GET", f"/storage/v1/b/shelf/{kind}", prefix="a/", pageSize=10)
    assert listing == {"kind": f"storage#{kind}"}
    project.refusal(404, "GET", f"/storage/v1/b/none/{kind}")
    assert project.raw("GET", f"/storage/v1/b/shelf/{kind}", token=False).status_code == 401
    made = project.raw("POST", f"/storage/v1/b/shelf/{kind}", json.dumps({"name": "a/"}).encode())
    assert f"does not serve storage.{kind}.insert" in made.text


@pytest.mark.slow
@pytest.mark.parametrize("query", ["", "?name=x", "?uploadType=media&name=x", "?uploadType=resumable"])
def test_an_insert_without_content_is_refused_as_at_google(project, query):
    error = project.refusal(400, "POST", f"/storage/v1/b/shelf/o{query}", {"name": "x"})
    assert error["errors"][0]["reason"] == "wrongUrlForUpload"
    assert "/upload/storage/v1/b/shelf/o" in error["message"]
    assert project.raw("GET", "/storage/v1/b/shelf/o/x").status_code == 404
    # The negative twins: a bucket that does not exist, and the same request at the path of uploads.
    assert project.refusal(404, "POST", f"/storage/v1/b/absent/o{query}", {"name": "x"})
    upload = project.raw("POST", "/upload/storage/v1/b/shelf/o?uploadType=media&name=x", b"content")
    assert upload.json()["size"] == "7"


def by_commands(project, session, command, body=b"", **headers):
    named = {f"X-Goog-Upload-{key}": str(value) for key, value in headers.items()}
    return project.raw("POST", session, body, named | {"X-Goog-Upload-Command": command}, token=False)


def start_session(project, name="by-commands", **headers):
    start = {"X-Goog-Upload-Protocol": "resumable", "X-Goog-Upload-Command": "start"}
    kind = {"X-Goog-Upload-Header-Content-Type": "text/plain", "X-Goog-Upload-Header-Content-Length": "9"}
    return project.raw("POST", PATHS[0], json.dumps({"name": name}).encode(), start | kind | headers)


def test_an_upload_by_commands_is_asked_about_resumed_and_ended(project):
    answer = start_session(project)
    session = answer.headers["x-goog-upload-url"].removeprefix(project.cloud.base)
    assert (answer.status_code, answer.headers["x-goog-upload-status"]) == (200, "active")
    assert answer.headers["x-goog-upload-chunk-granularity"] == "262144"
    first = by_commands(project, session, "upload", CONTENT[:CHUNK], Offset=0)
    assert first.headers["x-goog-upload-size-received"] == str(CHUNK)
    asked = by_commands(project, session, "query")
    assert (asked.headers["x-goog-upload-status"], asked.headers["x-goog-upload-size-received"]) == (
        "active",
        str(CHUNK),
    )
    # Bytes beyond those that are there, and commands that are none.
    assert by_commands(project, session, "upload, finalize", b"x", Offset=CHUNK + 1).status_code == 400
    assert by_commands(project, session, "upload", b"x", Offset="1_0").status_code == 400
    assert by_commands(project, session, "start, query").status_code == 400
    done = by_commands(project, session, "upload, finalize", CONTENT[CHUNK:], Offset=CHUNK)
    assert (done.headers["x-goog-upload-status"], done.json()["contentType"]) == ("final", "text/plain")
    assert content(project, "by-commands") == CONTENT
    assert by_commands(project, session, "query").headers["x-goog-upload-status"] == "final"


def test_an_upload_by_commands_is_ended_without_bytes_or_given_up(project):
    for command, status in (("finalize", "final"), ("cancel", "cancelled")):
        session = start_session(project, command).headers["x-goog-upload-url"].removeprefix(project.cloud.base)
        assert by_commands(project, session, command).headers["x-goog-upload-status"] == status
    assert project.ok("GET", "/storage/v1/b/shelf/o/finalize")["size"] == "0"
    assert project.raw("GET", "/storage/v1/b/shelf/o/cancel").status_code == 404
    assert by_commands(project, session, "query").status_code == 404


def test_the_protocol_s_header_takes_the_place_of_the_upload_type(project):
    raw = project.raw("POST", f"{PATHS[0]}?name=raw", b"raw", {"X-Goog-Upload-Protocol": "raw"})
    assert raw.json()["size"] == "3"
    body = b'--XX\r\nContent-Type: application/json\r\n\r\n{"name": "two"}\r\n--XX\r\n\r\ntwo\r\n--XX--'
    headers = {"X-Goog-Upload-Protocol": "multipart", "Content-Type": "multipart/related; boundary=XX"}
    assert project.raw("POST", PATHS[0], body, headers).json()["size"] == "3"
    assert project.raw("POST", PATHS[0], body, {"Content-Type": headers["Content-Type"]}).status_code == 400
    for protocol, path in (("batch", "/upload/storage/v1/"), ("scotty", PATHS[0])):
        verb = "PUT" if protocol == "batch" else "POST"
        refused = project.raw(verb, path, b"", {"X-Goog-Upload-Protocol": protocol})
        assert refused.json()["error"]["errors"][0]["reason"] == "notServedByLocalcloud"
    assert project.raw("PUT", "/upload/storage/v1/", b"").status_code == 404
    assert start_session(project, **{"X-Goog-Upload-Command": "query"}).status_code == 400


# Uploads in one request as the clients of these languages assemble them: type of the request, body. Sources: Guzzle's
# MultipartStream in google/cloud-core (PHP), storage/internal/rest/stub.cc (C++), google-http-client (Java),
# core/multipart.rb (Ruby), google-resumable-media (Python).
LENGTH, DISPOSITION = b"\r\nContent-Length: 14", b'\r\nContent-Disposition: form-data; name="metadata"'
OF_JSON, OF_TEXT, BINARY = b"application/json; charset=UTF-8", b"text/plain", b"\r\ncontent-transfer-encoding: binary"
MULTIPART = {
    "php": ("boundary", b"Content-Type: " + OF_JSON + DISPOSITION + LENGTH, b"Content-Type: " + OF_TEXT + DISPOSITION),
    "c++": ("kj3H", b"content-type: " + OF_JSON, b"content-type: " + OF_TEXT),
    "java": ("__END_OF_PART__1-2__", b"Content-Type: " + OF_JSON + BINARY, b"Content-Type: " + OF_TEXT + BINARY),
    "ruby": ("RubyApiClientMultiPart", b"Content-Type: application/json", b"Content-Type: text/plain" + BINARY),
    "python": ("===============1==", b"content-type: " + OF_JSON, b"content-type: " + OF_TEXT),
}


@pytest.mark.slow
@pytest.mark.parametrize("language", sorted(MULTIPART))
def test_a_multipart_body_is_read_as_each_client_assembles_it(project, language):
    name, *heads = MULTIPART[language]
    boundary, kind = name.encode(), "multipart/related; boundary=" + (f'"{name}"' if "=" in name else name)
    parts = zip(heads, (b'{"name": "m1"}', b"a\r\nb-"), strict=True)
    pieces = [b"--%b\r\n%b\r\n\r\n%b\r\n" % (boundary, head, content) for head, content in parts]
    for end in (b"--%b--\r\n" % boundary, b"--%b--" % boundary):
        answer = project.raw("POST", f"{PATHS[0]}?uploadType=multipart", b"".join(pieces) + end, {"Content-Type": kind})
        assert (answer.json()["contentType"], answer.json()["size"]) == ("text/plain", "5"), answer.text
    assert content(project, "m1") == b"a\r\nb-"
    wrong = project.raw("POST", f"{PATHS[0]}?uploadType=multipart", b"".join(pieces), {"Content-Type": "text/plain"})
    assert wrong.status_code == 400


# Language -> (range, bytes, further headers) of the requests to a session.
HALF = len(CONTENT) // 2 // CHUNK * CHUNK
SUM = base64.b64encode(hashlib.md5(CONTENT, usedforsecurity=False).digest()).decode()
REST = f"bytes {HALF}-{len(CONTENT) - 1}/{len(CONTENT)}"
BEGIN = (f"bytes 0-{HALF - 1}/*", CONTENT[:HALF], {})
RESUMED = {
    "php": [("bytes */*", b"", {}), BEGIN, (REST, CONTENT[HALF:], {"Content-Type": "text/plain"})],
    "dotnet": [(f"bytes */{len(CONTENT)}", b"", {}), BEGIN, (REST, CONTENT[HALF:], {})],
    "c++": [BEGIN, ("bytes */*", b"", {}), (REST, CONTENT[HALF:], {"x-goog-hash": f"md5={SUM}"})],
    "java": [BEGIN, (f"bytes {HALF}-*/*", CONTENT[HALF:], {}), ("bytes */*", b"", {})],
}


@pytest.mark.slow
@pytest.mark.parametrize("language", sorted(RESUMED))
def test_a_session_is_asked_about_and_ended_as_each_client_does(project, new_session, language):
    session, statuses = new_session(), []
    for span, body, headers in RESUMED[language]:
        answer = project.raw("PUT", session, body, {"Content-Range": span} | headers, token=False)
        statuses.append(answer.status_code)
    assert statuses == ([308, 200, 200] if language == "java" else [308, 308, 200])
    assert content(project) == CONTENT


def test_a_wrong_checksum_beside_the_last_chunk_is_refused(project, new_session):
    session = new_session()
    project.raw("PUT", session, CONTENT[:HALF], {"Content-Range": BEGIN[0]}, token=False)
    headers = {"Content-Range": REST, "x-goog-hash": "md5=AAAAAAAAAAAAAAAAAAAAAA=="}
    assert project.raw("PUT", session, CONTENT[HALF:], headers, token=False).status_code == 400
    assert project.raw("GET", "/storage/v1/b/shelf/o/x").status_code == 404


@pytest.mark.slow
@pytest.mark.parametrize("span", ["bytes */0", "bytes 0-*/*", None])
def test_an_upload_of_no_bytes_ends_with_each_client_s_range(project, new_session, span):
    headers = {"Content-Range": span} if span else {}
    assert project.raw("PUT", new_session(), b"", headers, token=False).json()["size"] == "0"
