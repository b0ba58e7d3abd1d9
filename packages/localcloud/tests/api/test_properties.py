"""Requests that hypothesis makes of Google's discovery documents: what is valid is taken, nothing ends in a 500.

BEZEL_EXAMPLES says how many (20 by default, the same ones every time; more of them are random).
"""

import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bezel_localcloud import control
from bezel_localcloud.core.errors import ApiError
from bezel_localcloud.http.messages import checked_message
from bezel_localcloud.http.methods import served_methods
from localcloud_support.client import PARENT, REGION, Client
from localcloud_support.discovery_check import method_of, problems
from localcloud_support.discovery_values import ANY_JSON, spoiled_values, valid

pytestmark = pytest.mark.slow  # hundreds of requests generated from the documents

EXAMPLES = int(os.environ.get("BEZEL_EXAMPLES", "20"))
CHOSEN = settings(
    max_examples=EXAMPLES,
    derandomize=EXAMPLES <= 20,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)
METHODS = sorted(served_methods().values(), key=lambda method: (method.id, method.path))
# These would take the caller's own rights, or the APIs it calls, away.
DANGEROUS = {"cloudresourcemanager.projects.setIamPolicy", "serviceusage.services.disable"}
NAMES = {
    "projects": [PARENT.partition("/")[2]],
    "locations": [REGION],
    "serviceAccounts": ["someone", "-"],
    "b": ["shelf", "x"],
    "o": ["a", "b"],
    "services": ["guinea", "run.googleapis.com"],
    "jobs": ["guinea", "x"],
    "executions": ["guinea"],
    "secrets": ["guinea", "x"],
    "versions": ["1", "latest", "x"],
    "repositories": ["guinea", "x"],
    "v1": ["projects"],
}


def request_schema(method):
    call = method_of(method.http, method.path.replace("{}", "x"))
    return call.source.document, {"$ref": call.method["request"]["$ref"]}


with_body = st.sampled_from([method for method in METHODS if method.request])


def is_taken(body, method):
    try:
        checked_message(body, method.request, "", keep_null=method.id.startswith(("storage.", "compute.")))
    except ApiError:
        return False
    return True


@CHOSEN
@given(st.data())
def test_what_the_document_allows_is_taken_and_stays_allowed(data):
    method = data.draw(with_body)
    name, schema = request_schema(method)
    body = data.draw(valid(name, schema))
    assert problems(body, schema, name, "body") == []
    kept = checked_message(body, method.request, "")
    assert problems(kept, schema, name, "answer", answers=False) == []
    # What is taken is in its normal form: taking it again changes nothing.
    assert checked_message(kept, method.request, "") == kept


@CHOSEN
@given(st.data())
def test_what_the_document_does_not_allow_is_refused_and_the_rest_taken(data):
    method = data.draw(with_body)
    name, schema = request_schema(method)
    body = data.draw(spoiled_values(name, schema))
    assert is_taken(body, method) == (problems(body, schema, name, "body") == [])


@pytest.fixture(scope="module")
def guinea(tmp_path_factory, daemon_forks):
    directory = tmp_path_factory.mktemp("guinea")
    client = Client(daemon_forks.start(directory))
    client.prepare()
    client.post("/storage/v1/b", {"name": "shelf"}, project="bezel-local")
    client.http.post("/upload/storage/v1/b/shelf/o", params={"uploadType": "media", "name": "a"}, content=b"x")
    client.post(f"/secretmanager/v1/{PARENT}/secrets", {"replication": {"automatic": {}}}, secretId="guinea")
    yield client
    control.stop(directory)


@st.composite
def path_of(draw, method):
    parts, made = method.path.split("/"), []
    for before, part in zip(["", *parts], parts, strict=False):
        made.append(part.replace("{}", draw(st.sampled_from(NAMES.get(before, ["x"])))) if "{}" in part else part)
    return "/".join(made)


@st.composite
def query_of(draw, method):
    keys = draw(st.lists(st.sampled_from(sorted(method.query) or ["fields"]), max_size=3, unique=True))
    values = st.sampled_from(
        ["", "1", "1.0", "-1", "true", "x", "labels", "*", "state:ENABLED", "bezel-local", "9" * 10]
    )
    return {key: draw(values | st.text(max_size=5)) for key in keys}


@settings(CHOSEN, max_examples=2 * EXAMPLES)
@given(data=st.data())
def test_every_answer_is_valid_and_none_is_a_server_error(guinea, data):
    """No request ends in an error of the server and every answer is valid."""
    method = data.draw(st.sampled_from([method for method in METHODS if method.id not in DANGEROUS]))
    path, query, body = data.draw(path_of(method)), data.draw(query_of(method)), None
    if method.request:
        name, schema = request_schema(method)
        body = data.draw(valid(name, schema) | spoiled_values(name, schema) | ANY_JSON)
    if method.id == "storage.objects.insert":
        path, query = f"/upload{path}", query | {"uploadType": data.draw(st.sampled_from(["media", "resumable", "x"]))}
    # The client holds the answer, and the request if it was taken, against the document.
    answer = guinea.http.request(method.http, path, params=query, **({} if body is None else {"json": body}))
    assert answer.status_code < 500, answer.text


@pytest.mark.parametrize(
    "content",
    [b"{", b"\xff", b'{"a": NaN}', b'{"accountId": "\\ud800"}', b"[" * 100_000, b'{"a": ' + b"9" * 5000 + b"}"],
)
def test_what_is_no_json_is_refused(cloud, content):
    answer = cloud.http.post(f"/iam/v1/{PARENT}/serviceAccounts", content=content)
    assert answer.status_code == 400
    assert "Unable to parse the body" in answer.json()["error"]["message"]
