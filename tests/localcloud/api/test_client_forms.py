"""Forms of a request that Google's front end accepts of any client, each on every API."""

import gzip
import json
import zlib
from urllib.parse import urlencode

import pytest

from bezel.localcloud.http.client_forms import LONGEST_QUERY
from bezel.localcloud.http.methods import served
from bezel.localcloud.http.request_bodies import LARGEST_MESSAGE
from tests.support.localcloud.asgi import answer_of
from tests.support.localcloud.in_process import PARENT, Project

JSON = ("Content-Type", "application/json; charset=UTF-8")
# No message has the field: its refusal shows that the body was read.
UNKNOWN = json.dumps({"noSuchField": "x" * 300}).encode()
GZIP = ("Content-Encoding", "gzip")
FORM = ("Content-Type", "application/x-www-form-urlencoded")
APIS = ("aiplatform", "artifactregistry", "billingbudgets", "cloudbilling", "cloudkms", "cloudquotas", "cloudscheduler",
        "iam", "iamcredentials", "run", "secretmanager", "sts", "tpu")  # fmt: skip
# Values of a path's parameters that exist, or may not.
PLACES = {"projects": "bezel-local", "locations": "us-east4", "regions": "us-east4", "zones": "us-east5-a"}


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    found = Project(tmp_path_factory.mktemp("cloud"))
    for api in APIS:
        found.cloud.store.put("api", f"{api}.googleapis.com", {"state": "ENABLED"})
    found.ok("POST", "/storage/v1/b", {"name": "shelf"}, project="bezel-local")
    yield found
    found.close()


def path_of(method):
    """A path of a method with places that exist and names that do not."""
    parts = method.path.replace("/{}/{}/", "/projects/{}/").split("/")
    for index, part in enumerate(parts):
        if part.startswith("{}"):
            parts[index] = PLACES.get(parts[index - 1], "x1") + part[2:]
    return "/".join(parts)


def of_every_method(*verbs, with_body=False):
    found = [method for (verb, _), method in served().items() if verb in verbs and (method.request or not with_body)]
    # The last of these names the same form twice in one path; uploads are tried apart.
    return [method for method in found if "/upload/" not in method.path]


def answered(project, verb, target, body=b"", *headers, token=None):
    status, content = answer_of(
        project.application, verb, target, project.token if token is None else token, body=body, headers=headers
    )
    return status, content


def told(answer):
    """Status and message of an answer, which a form of the request must not change."""
    status, content = answer
    error = json.loads(content).get("error") if content and content[:1] == b"{" else None
    return status, error["message"] if isinstance(error, dict) else ""


def test_a_packed_body_is_read_as_a_plain_one_by_every_method_that_has_one(project):
    tried, read = of_every_method("POST", "PUT", "PATCH", with_body=True), 0
    for method in tried:
        path, body = path_of(method), UNKNOWN
        plain = told(answered(project, method.http, path, body, JSON))
        assert told(answered(project, method.http, path, gzip.compress(body, mtime=0), JSON, GZIP)) == plain, method.id
        read += "noSuchField" in plain[1]
        assert "Method not found" not in plain[1], method.id
        broken = told(answered(project, method.http, path, body, JSON, GZIP))
        assert broken[0] == 400 or broken == plain, (method.id, broken)
    assert len(tried) > 100
    assert read > 90
    assert len({method.path.split("/")[1] for method in tried}) >= 16


@pytest.mark.parametrize("verb", ["PATCH", "PUT", "DELETE"])
def test_a_post_with_another_methods_name_is_that_method_on_every_api(project, verb):
    tried = of_every_method(verb)
    for method in tried:
        path, body = path_of(method), UNKNOWN if method.request else b""
        plain = told(answered(project, verb, path, body, JSON))
        for override in ((("X-HTTP-Method-Override", verb),), (("x-http-method-override", verb.lower()),)):
            assert told(answered(project, "POST", path, body, JSON, *override)) == plain, method.id
        assert told(answered(project, "POST", f"{path}?%24httpMethod={verb}", body, JSON))[0] == plain[0], method.id
    assert len(tried) >= {"PATCH": 15, "PUT": 6, "DELETE": 20}[verb]


def test_a_long_query_in_the_body_is_the_query_of_every_list(project):
    tried = [method for method in of_every_method("GET") if method.id.endswith((".list", ".search", "aggregatedList"))]
    for method in tried:
        pairs = {"fields": "nothing", "quotaUser": "q" * 3000} | ({"project": "bezel-local"} if method.required else {})
        path, form = path_of(method), urlencode(pairs).encode()
        plain = answered(project, "GET", f"{path}?{form.decode()}")
        for headers, body in (((), form), ((GZIP,), gzip.compress(form, mtime=0))):
            override = ("X-HTTP-Method-Override", "GET")
            assert answered(project, "POST", path, body, FORM, override, *headers) == plain, method.id
    assert len(tried) > 30
    assert len({method.path.split("/")[1] for method in tried}) >= 14


def test_other_forms_of_a_parameter_are_accepted_by_every_method_that_reads(project):
    tried = of_every_method("GET")
    for method in tried:
        path, query = path_of(method), "project=bezel-local&" if "project" in method.required else ""
        plain = answered(project, "GET", f"{path}?{query}fields=kind")
        by_header = ("X-Goog-FieldMask", "kind")
        assert answered(project, "GET", f"{path}?{query}", b"", by_header) == plain, method.id
        both = f"{path}?{query}fields=kind"
        assert answered(project, "GET", both, b"", ("X-Goog-FieldMask", "items")) == plain, method.id
        for name in ("access_token", "oauth_token"):
            target = f"{path}?{query}fields=kind&{name}={project.token}"
            assert answered(project, "GET", target, token="") == plain, method.id
        more = (
            "prettyPrint=false&%24alt=json&alt=json&key=k&quotaUser=q&%24ct=x&%24unique=1&%24.xgafv=2&%24apiVersion=v"
        )
        headers = (("X-Goog-Api-Key", "k"), ("X-Goog-Quota-User", "q"), ("X-Goog-User-Project", "bezel-local"),
                   ("X-Goog-Request-Reason", "r"), ("X-Goog-Api-Client", "gl-go/1"), ("X-Server-Timeout", "600"),
                   ("X-Goog-Request-Params", "name=x"), ("User-Agent", "x (gzip)"), ("Accept-Encoding", "gzip"),
                   ("Expect", "100-continue"), JSON)  # fmt: skip
        assert answered(project, "GET", f"{path}?{query}fields=kind&{more}", b"", *headers) == plain, method.id
    assert len(tried) > 80


def test_a_wrong_token_in_the_query_is_refused_by_every_api(project):
    for method in of_every_method("GET"):
        status, _ = answered(project, "GET", f"{path_of(method)}?access_token=ya29.wrong", token="")
        assert status == 401, method.id


def test_the_error_format_of_older_clients_is_accepted(project):
    path = f"/secretmanager/v1/{PARENT}/secrets/x1"
    plain = json.loads(answered(project, "GET", path)[1])["error"]
    older = json.loads(answered(project, "GET", f"{path}?%24.xgafv=1")[1])["error"]
    assert older.pop("errors") == [{"message": plain["message"], "domain": "global", "reason": "notFound"}]
    assert older == plain


@pytest.mark.parametrize(
    ("body", "encoding", "says"),
    [
        (gzip.compress(b"{}", mtime=0)[:-3], "gzip", "ends too early"),
        (b"{}", "gzip", "not in this format"),
        (gzip.compress(b"{}", mtime=0) + b"{}", "gzip", "not in this format"),
        (zlib.compress(b"{}"), "deflate", "not supported"),
        (b"{}", "br", "not supported"),
    ],
)
def test_a_body_that_is_not_in_its_encoding_is_refused(project, body, encoding, says):
    path = f"/secretmanager/v1/{PARENT}/secrets?secretId=x"
    status, message = told(answered(project, "POST", path, body, JSON, ("Content-Encoding", encoding)))
    assert status == 400
    assert says in message


@pytest.mark.parametrize(
    "body",
    [
        gzip.compress(json.dumps({"replication": {"automatic": {}}}).encode(), mtime=0),
        gzip.compress(b'{"replication":', mtime=0) + gzip.compress(b' {"automatic": {}}}', mtime=0),
        gzip.compress(json.dumps({"replication": {"automatic": {}}}).encode() + b" " * 700_000, mtime=0),
    ],
)
def test_a_packed_body_may_have_members_and_many_pieces(project, body):
    path = f"/secretmanager/v1/{PARENT}/secrets"
    status, content = answered(project, "POST", f"{path}?secretId=packed", body, JSON, ("Content-Encoding", "X-GZIP"))
    assert status == 200, content
    assert answered(project, "DELETE", f"{path}/packed")[0] == 200


def test_a_body_that_unpacks_to_more_than_the_limit_is_refused_before_it_is_whole(project):
    bomb = gzip.compress(b" " * (LARGEST_MESSAGE + 1), mtime=0)
    status, message = told(answered(project, "POST", f"/secretmanager/v1/{PARENT}/secrets", bomb, JSON, GZIP))
    assert (status, "exceeds the limit" in message) == (413, True)
    form = gzip.compress(b"a=" + b"x" * LONGEST_QUERY, mtime=0)
    override = ("X-HTTP-Method-Override", "GET")
    status, message = told(answered(project, "POST", f"/secretmanager/v1/{PARENT}/secrets", form, FORM, GZIP, override))
    assert (status, "exceeds the limit" in message) == (413, True)


def test_an_upload_is_unpacked_and_an_object_of_the_xml_api_is_not(project):
    content, packed = b"content " * 1000, gzip.compress(b"content " * 1000, mtime=0)
    upload = "/upload/storage/v1/b/shelf/o?uploadType=media&name=a"
    assert answered(project, "POST", upload, packed, GZIP)[0] == 200
    got = json.loads(answered(project, "GET", "/storage/v1/b/shelf/o/a")[1])
    assert (got["size"], "contentEncoding" in got) == (str(len(content)), False)
    assert answered(project, "PUT", "/shelf/b", packed, GZIP)[0] == 200
    got = json.loads(answered(project, "GET", "/storage/v1/b/shelf/o/b")[1])
    assert (got["size"], got["contentEncoding"]) == (str(len(packed)), "gzip")


def test_only_a_post_can_have_another_methods_name(project):
    path = f"/secretmanager/v1/{PARENT}/secrets"
    override = ("X-HTTP-Method-Override", "DELETE")
    assert answered(project, "GET", path, b"", override)[0] == 200
    assert answered(project, "POST", path, b"", ("X-HTTP-Method-Override", "FROBNICATE"))[0] == 404
