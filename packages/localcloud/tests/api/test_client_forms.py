"""Forms of a request that Google's front end accepts of any client, each on every API."""

import gzip
import json
import socket
import zlib
from urllib.parse import urlencode

import pytest

from bezel_localcloud.http.client_forms import LONGEST_QUERY
from bezel_localcloud.http.methods import api_prefixes, served_methods
from bezel_localcloud.http.request_bodies import LARGEST_MESSAGE
from localcloud_support.asgi import answer_of
from localcloud_support.in_process import PARENT, Project

JSON = ("Content-Type", "application/json; charset=UTF-8")
# No message has the field: its refusal shows that the body was read.
UNKNOWN = json.dumps({"noSuchField": "x" * 300}).encode()
GZIP = ("Content-Encoding", "gzip")
FORM = ("Content-Type", "application/x-www-form-urlencoded")
APIS = ("aiplatform", "artifactregistry", "billingbudgets", "certificatemanager", "cloudbilling", "cloudkms",
        "cloudquotas", "cloudscheduler", "iam", "iamcredentials", "run", "secretmanager", "sts", "tpu")  # fmt: skip
# Values of a path's parameters that exist, or may not.
PLACES = {"projects": "bezel-local", "locations": "us-east4", "regions": "us-east4", "zones": "us-east5-a"}


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    new_project = Project(tmp_path_factory.mktemp("cloud"))
    for api in APIS:
        new_project.cloud.store.put("api", f"{api}.googleapis.com", {"state": "ENABLED"})
    new_project.ok("POST", "/storage/v1/b", {"name": "shelf"}, project="bezel-local")
    yield new_project
    new_project.close()


def path_of(method):
    """A path of a method with places that exist and names that do not."""
    parts = method.path.replace("/{}/{}/", "/projects/{}/").split("/")
    for index, part in enumerate(parts):
        if part.startswith("{}"):
            parts[index] = PLACES.get(parts[index - 1], "x1") + part[2:]
    return "/".join(parts)


def of_every_method(*verbs, with_body=False):
    methods = [
        method for (verb, _), method in served_methods().items() if verb in verbs and (method.request or not with_body)
    ]
    # The last of these names the same form twice in one path; uploads are tried apart.
    return [method for method in methods if "/upload/" not in method.path]


def ask(project, verb, target, body=b"", *headers, token=None):
    status, content = answer_of(
        project.application, verb, target, project.token if token is None else token, body=body, headers=headers
    )
    return status, content


def status_and_message(answer):
    """Status and message of an answer, which a form of the request must not change."""
    status, content = answer
    error = json.loads(content).get("error") if content and content[:1] == b"{" else None
    return status, error["message"] if isinstance(error, dict) else ""


@pytest.mark.slow
def test_a_packed_body_is_read_as_a_plain_one_by_every_method_that_has_one(project):
    tried, read = of_every_method("POST", "PUT", "PATCH", with_body=True), 0
    for method in tried:
        path, body = path_of(method), UNKNOWN
        plain = status_and_message(ask(project, method.http, path, body, JSON))
        assert status_and_message(ask(project, method.http, path, gzip.compress(body, mtime=0), JSON, GZIP)) == plain, (
            method.id
        )
        read += "noSuchField" in plain[1]
        assert "Method not found" not in plain[1], method.id
        broken = status_and_message(ask(project, method.http, path, body, JSON, GZIP))
        assert broken[0] == 400 or broken == plain, (method.id, broken)
    assert len(tried) > 100
    assert read > 90
    assert len({method.path.split("/")[1] for method in tried}) >= 16


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["PATCH", "PUT", "DELETE"])
def test_a_post_with_another_methods_name_is_that_method_on_every_api(project, verb):
    tried = of_every_method(verb)
    for method in tried:
        path, body = path_of(method), UNKNOWN if method.request else b""
        plain = status_and_message(ask(project, verb, path, body, JSON))
        for override in ((("X-HTTP-Method-Override", verb),), (("x-http-method-override", verb.lower()),)):
            assert status_and_message(ask(project, "POST", path, body, JSON, *override)) == plain, method.id
        assert status_and_message(ask(project, "POST", f"{path}?%24httpMethod={verb}", body, JSON))[0] == plain[0], (
            method.id
        )
    assert len(tried) >= {"PATCH": 15, "PUT": 6, "DELETE": 20}[verb]


@pytest.mark.slow
def test_a_long_query_in_the_body_is_the_query_of_every_list(project):
    tried = [method for method in of_every_method("GET") if method.id.endswith((".list", ".search", "aggregatedList"))]
    for method in tried:
        pairs = {"fields": "nothing", "quotaUser": "q" * 3000} | ({"project": "bezel-local"} if method.required else {})
        path, form = path_of(method), urlencode(pairs).encode()
        plain = ask(project, "GET", f"{path}?{form.decode()}")
        for headers, body in (((), form), ((GZIP,), gzip.compress(form, mtime=0))):
            override = ("X-HTTP-Method-Override", "GET")
            assert ask(project, "POST", path, body, FORM, override, *headers) == plain, method.id
    assert len(tried) > 30
    assert len({method.path.split("/")[1] for method in tried}) >= 14


@pytest.mark.slow
def test_every_reading_method_accepts_other_forms_of_a_parameter(project):
    """Other forms of a parameter are accepted by every method that reads."""
    tried = of_every_method("GET")
    for method in tried:
        path, query = path_of(method), "project=bezel-local&" if "project" in method.required else ""
        plain = ask(project, "GET", f"{path}?{query}fields=kind")
        by_header = ("X-Goog-FieldMask", "kind")
        assert ask(project, "GET", f"{path}?{query}", b"", by_header) == plain, method.id
        both = f"{path}?{query}fields=kind"
        assert ask(project, "GET", both, b"", ("X-Goog-FieldMask", "items")) == plain, method.id
        for name in ("access_token", "oauth_token"):
            target = f"{path}?{query}fields=kind&{name}={project.token}"
            assert ask(project, "GET", target, token="") == plain, method.id
        more = (
            "prettyPrint=false&%24alt=json&alt=json&key=k&quotaUser=q&%24ct=x&%24unique=1&%24.xgafv=2&%24apiVersion=v"
        )
        headers = (("X-Goog-Api-Key", "k"), ("X-Goog-Quota-User", "q"), ("X-Goog-User-Project", "bezel-local"),
                   ("X-Goog-Request-Reason", "r"), ("X-Goog-Api-Client", "gl-go/1"), ("X-Server-Timeout", "600"),
                   ("X-Goog-Request-Params", "name=x"), ("User-Agent", "x (gzip)"), ("Accept-Encoding", "gzip"),
                   ("Expect", "100-continue"), JSON)  # fmt: skip
        assert ask(project, "GET", f"{path}?{query}fields=kind&{more}", b"", *headers) == plain, method.id
    assert len(tried) > 80


@pytest.mark.slow
def test_a_wrong_token_in_the_query_is_refused_by_every_api(project):
    for method in of_every_method("GET"):
        status, _ = ask(project, "GET", f"{path_of(method)}?access_token=ya29.wrong", token="")
        assert status == 401, method.id


def test_the_error_format_of_older_clients_is_accepted(project):
    path = f"/secretmanager/v1/{PARENT}/secrets/x1"
    plain = json.loads(ask(project, "GET", path)[1])["error"]
    older = json.loads(ask(project, "GET", f"{path}?%24.xgafv=1")[1])["error"]
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
    status, message = status_and_message(ask(project, "POST", path, body, JSON, ("Content-Encoding", encoding)))
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
    status, content = ask(project, "POST", f"{path}?secretId=packed", body, JSON, ("Content-Encoding", "X-GZIP"))
    assert status == 200, content
    assert ask(project, "DELETE", f"{path}/packed")[0] == 200


@pytest.mark.slow
def test_a_body_that_unpacks_beyond_the_limit_is_refused_early(project):
    """A body that unpacks to more than the limit is refused before it is whole."""
    bomb = gzip.compress(b" " * (LARGEST_MESSAGE + 1), mtime=0)
    status, message = status_and_message(ask(project, "POST", f"/secretmanager/v1/{PARENT}/secrets", bomb, JSON, GZIP))
    assert (status, "exceeds the limit" in message) == (413, True)
    form = gzip.compress(b"a=" + b"x" * LONGEST_QUERY, mtime=0)
    override = ("X-HTTP-Method-Override", "GET")
    status, message = status_and_message(
        ask(project, "POST", f"/secretmanager/v1/{PARENT}/secrets", form, FORM, GZIP, override)
    )
    assert (status, "exceeds the limit" in message) == (413, True)


def test_an_upload_is_unpacked_and_an_object_of_the_xml_api_is_not(project):
    content, packed = b"content " * 1000, gzip.compress(b"content " * 1000, mtime=0)
    upload = "/upload/storage/v1/b/shelf/o?uploadType=media&name=a"
    assert ask(project, "POST", upload, packed, GZIP)[0] == 200
    got = json.loads(ask(project, "GET", "/storage/v1/b/shelf/o/a")[1])
    assert (got["size"], "contentEncoding" in got) == (str(len(content)), False)
    assert ask(project, "PUT", "/shelf/b", packed, GZIP)[0] == 200
    got = json.loads(ask(project, "GET", "/storage/v1/b/shelf/o/b")[1])
    assert (got["size"], got["contentEncoding"]) == (str(len(packed)), "gzip")


def test_only_a_post_can_have_another_methods_name(project):
    path = f"/secretmanager/v1/{PARENT}/secrets"
    override = ("X-HTTP-Method-Override", "DELETE")
    assert ask(project, "GET", path, b"", override)[0] == 200
    assert ask(project, "POST", path, b"", ("X-HTTP-Method-Override", "FROBNICATE"))[0] == 404


# Client -> headers and query that its transport adds to a request, beyond those above. Sources: google-http-client,
# google-api-client and gax-httpjson (Java), Google.Apis.Core (.NET: ETag actions, initializers), google-api-client
# (Ruby: options, tracing, a parameter twice), google/cloud-core with Guzzle (PHP), google-cloud-cpp (curl).
ADDED = {
    "java": (
        {
            "Accept": "text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2",
            "Cache-Control": "no-cache",
            "Pragma": "no-cache",
            "x-goog-gcs-idempotency-token": "1-2",
            "mime-version": "1.0",
        },
        "prettyPrint=false",
    ),
    "java, gax": ({"x-goog-api-version": "", "x-goog-request-params": "a=b", "X-Request-ID": "1"}, "%24alt=json"),
    "dotnet": (
        {
            "If-None-Match": '"etag"',
            "X-Goog-User-Project": "",
            "User-Agent": "app google-api-dotnet-client/1 (gzip)",
            "x-cloud-trace-context": "105445aa7843bc8bf206b12000100000/1;o=1",
        },
        "quotaUser=q&prettyPrint=true&alt=json",
    ),
    "ruby": (
        {
            "X-Goog-Api-Format-Version": "2",
            "X-Cloud-Trace-Context": "1/2;o=1",
            "Content-Type": "application/x-www-form-urlencoded; charset=UTF-8",
            "Date": "Sat, 28 Nov 2026 04:00:00 GMT",
        },
        "alt=json&alt=json",
    ),
    "php": (
        {"x-goog-api-client": "gl-php/8.2 gccl/1", "content-type": "application/json", "gcp-project": "x"},
        "prettyPrint=0&quotaUser=&userIp=1.2.3.4",
    ),
    "cpp": (
        {
            "accept": "*/*",
            "x-goog-fieldmask": "",
            "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        },
        "quotaUser=q&userIp=1.2.3.4&key=k",
    ),
    "go": (
        {"X-Goog-Gcs-Idempotency-Token": "1", "X-Goog-Api-Version": "1"},
        "alt=json&prettyPrint=false&%24alt=json%3Benum-encoding%3Dint",
    ),
    "node": ({"retry-attempt": "1", "accept": "application/json", "Connection": "close"}, "alt=json&uploadType="),
}


@pytest.mark.slow
@pytest.mark.wide_except("go", "java")
@pytest.mark.parametrize("client", sorted(ADDED))
def test_what_a_client_s_transport_adds_changes_no_answer(project, client):
    headers, more = ADDED[client]
    tried = of_every_method("GET", "POST", "PUT", "PATCH", "DELETE")
    for method in tried:
        path, body = path_of(method), UNKNOWN if method.request else b""
        query = "project=bezel-local&" if "project" in method.required else ""
        content_type = () if method.http == "GET" and not method.request else (JSON,)
        rest = tuple(pair for pair in headers.items() if not content_type or pair[0].lower() != "content-type")
        target = f"{path}?{query}fields=kind"
        plain = status_and_message(ask(project, method.http, target, body, *content_type))
        assert status_and_message(ask(project, method.http, f"{target}&{more}", body, *content_type, *rest)) == plain, (
            method.id
        )
    assert len(tried) > 200


KINDS = [
    "application/json",
    "application/json;charset=utf-8",
    "Application/JSON; Charset=UTF-8",
    "text/plain",
    "a/b",
    "",
]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_body_is_read_whatever_its_type_is_called(project, kind):
    tried = of_every_method("POST", "PUT", "PATCH", with_body=True)
    for method in tried:
        path = path_of(method)
        plain = status_and_message(ask(project, method.http, path, UNKNOWN, JSON))
        headers = (("Content-Type", kind),) if kind else ()
        assert status_and_message(ask(project, method.http, path, UNKNOWN, *headers)) == plain, method.id


SIZE = str(len(UNKNOWN))
FIRST, OWN = "POST {path} HTTP/1.1", ("Host: {host}", "Authorization: Bearer {token}")
WHOLE = "Content-Length: {size}"
# Forms of one request on a connection: first line, headers, body.
ON_THE_WIRE = {
    "plain": (FIRST, (*OWN, WHOLE), ""),
    # Node and the gateways of gRPC write names in lower case, some wrappers of curl in upper case.
    "lower case": (FIRST, ("host: {host}", "authorization: bearer {token}", "content-length: {size}"), ""),
    "upper case": (FIRST, ("HOST: {host}", "AUTHORIZATION: BEARER {token}", "CONTENT-LENGTH: {size}"), ""),
    "blanks": (FIRST, ("Host:{host}", "Authorization:  Bearer  {token}", "Content-Length: {size}  "), ""),
    "version 1.0": ("POST {path} HTTP/1.0", (*OWN, WHOLE), ""),
    # As through a proxy: the whole address in the first line.
    "whole address": ("POST http://{host}{path} HTTP/1.1", (*OWN, WHOLE), ""),
    # curl (PHP, C++) asks before it sends a body of more than a megabyte.
    "expect": (FIRST, (*OWN, WHOLE, "Expect: 100-continue"), ""),
    # Java and .NET do not know the size of what they pack, nor PHP that of a stream.
    "chunks": (FIRST, (*OWN, "Transfer-Encoding: chunked"), "chunks"),
    "packed chunks": (FIRST, (*OWN, "Transfer-Encoding: chunked", "Content-Encoding: gzip"), "packed"),
}
# A method with a body of each API.
POSTS = {
    "aiplatform": f"/v1/{PARENT}/locations/us-east4/models:upload",
    "artifactregistry": f"/v1/{PARENT}/locations/us-east4/repositories?repositoryId=x",
    "certificatemanager": f"/v1/{PARENT}/locations/global/certificateMaps?certificateMapId=x",
    "dns": f"/v1/{PARENT}/managedZones",
    "billingbudgets": "/v1/billingAccounts/BE2E10-10CA1C-10D000/budgets",
    "cloudkms": f"/v1/{PARENT}/locations/us-east4/keyRings/x/cryptoKeys",
    "cloudquotas": f"/v1/{PARENT}/locations/global/quotaPreferences",
    "cloudscheduler": f"/v1/{PARENT}/locations/us-east4/jobs",
    "compute": f"/v1/{PARENT}/global/networks",
    "crm": f"/v1/{PARENT}:testIamPermissions",
    "iam": f"/v1/{PARENT}/serviceAccounts",
    "iamcredentials": "/v1/projects/-/serviceAccounts/x:generateAccessToken",
    "logging": "/v2/entries:list",
    "monitoring": f"/v3/{PARENT}/alertPolicies",
    "run": f"/v2/{PARENT}/locations/us-east4/services?serviceId=x",
    "secretmanager": f"/v1/{PARENT}/secrets?secretId=x",
    "serviceusage": f"/v1/{PARENT}/services:batchEnable",
    "storage": "/v1/b?project=bezel-local",
    "tpu": f"/v2/{PARENT}/locations/us-east5-a/queuedResources",
}


def in_chunks(content, size=97):
    pieces = [content[start : start + size] for start in range(0, len(content), size)]
    return b"".join(b"%X\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


def exchange(host, raw):
    """(status, message) of the last answer on a connection of its own."""
    with socket.create_connection((host.partition(":")[0], int(host.rpartition(":")[2])), timeout=30) as connection:
        connection.sendall(raw)
        connection.shutdown(socket.SHUT_WR)
        received = b"".join(iter(lambda: connection.recv(65_536), b""))
    head, _, body = received.removeprefix(b"HTTP/1.1 100 Continue\r\n\r\n").partition(b"\r\n\r\n")
    return status_and_message((int(head.split()[1]), body))


@pytest.mark.slow
@pytest.mark.parametrize("form", sorted(ON_THE_WIRE))
def test_a_request_in_each_form_of_the_wire_is_read_by_every_api(endpoint, cloud, form):
    cloud.enable(*(api for api in POSTS if api not in {"compute", "crm", "logging", "monitoring", "storage"}))
    host, token = endpoint.base.removeprefix("http://"), cloud.http.headers["Authorization"].removeprefix("Bearer ")
    first, headers, kind = ON_THE_WIRE[form]
    body = {"chunks": in_chunks(UNKNOWN), "packed": in_chunks(gzip.compress(UNKNOWN, mtime=0))}.get(kind, UNKNOWN)
    for api, path in POSTS.items():
        head = "\r\n".join((first, *headers, "\r\n"))
        raw = head.format(path=f"/{api}{path}", host=host, token=token, size=SIZE).encode() + body
        status, message = exchange(host, raw)
        assert (status, "noSuchField" in message) == (400, True), (api, status, message)
        # The negative twin: the same form without the token.
        status, _ = exchange(host, raw.replace(token.encode(), b"x"))
        assert status == 401, (api, status)


def test_every_api_with_a_body_is_tried_on_the_wire():
    assert api_prefixes() - POSTS.keys() == {"cloudbilling", "sts"}
