"""Faults on a running daemon: put on and taken off over HTTP, seen by the next request."""

import json
import time

import httpx
import pytest

from bezel_localcloud import control
from bezel_localcloud.access.credentials import keys
from localcloud_support.client import SERVICES, Client, plain

pytestmark = pytest.mark.slow  # whole processes

FAULTS = "/localcloud/faults"


@pytest.fixture(scope="module")
def endpoint_of_its_own(tmp_path_factory, daemon_forks):
    directory = tmp_path_factory.mktemp("faults") / "cloud"
    yield daemon_forks.start(directory)
    control.stop(directory)


@pytest.fixture
def client(endpoint_of_its_own):
    new_client = Client(endpoint_of_its_own)
    yield new_client
    headers = {"Authorization": f"Bearer {control.own_token(endpoint_of_its_own)}"}
    assert plain.delete(f"{new_client.endpoint.base}{FAULTS}", headers=headers).status_code == 200


def put(client: Client, kind: str, **parameters: object) -> None:
    answer = client.post(FAULTS, {"kind": kind, "parameters": parameters})
    assert answer.status_code == 200, answer.text


def test_faults_are_put_on_shown_and_taken_off_and_a_wrong_one_is_refused(client: Client) -> None:
    put(client, "server-errors", path="/run/*", count=2)
    shown = client.get(FAULTS).json()
    assert [(fault["kind"], fault["parameters"]["count"], fault["met"]) for fault in shown["faults"]] == [
        ("server-errors", 2, 0)
    ]
    assert len(shown["kinds"]) > 20
    refused = client.post(FAULTS, {"kind": "server-errors", "parameters": {"status": 1}})
    assert (refused.status_code, refused.json()["error"]["status"]) == (400, "INVALID_ARGUMENT")
    assert client.delete(f"{FAULTS}/server-errors").json() == {"cleared": ["server-errors"]}
    assert client.delete(f"{FAULTS}/server-errors").status_code == 404
    assert plain.get(f"{client.endpoint.base}{FAULTS}").status_code == 401


def test_a_burst_is_googles_words_in_googles_shape_and_then_over(client: Client) -> None:
    put(client, "rate-limited", count=1, retry_after=7)
    first = client.get(SERVICES)
    assert (first.status_code, first.headers["retry-after"]) == (429, "7")
    assert first.json()["error"]["status"] == "RESOURCE_EXHAUSTED"
    assert "run.googleapis.com" in first.json()["error"]["message"]
    put(client, "server-errors", count=2, status=503)
    assert client.get(SERVICES).json()["error"]["status"] == "UNAVAILABLE"
    legacy = client.get("/storage/v1/b", project="bezel-local")
    assert (legacy.status_code, legacy.json()["error"]["errors"][0]["reason"]) == (503, "backendError")
    client.enable("run")
    assert client.get(SERVICES).status_code == 200


@pytest.mark.parametrize("when", ["before", "after", "body"])
def test_a_connection_breaks_before_the_effect_after_it_or_in_the_answer(client: Client, when: str) -> None:
    put(client, "dropped-connections", when=when, method="POST", count=1)
    body = {"name": f"made-{when}", "location": "US"}
    with pytest.raises(httpx.RemoteProtocolError):
        client.post("/storage/v1/b", body, project="bezel-local")
    exists = client.get(f"/storage/v1/b/made-{when}").status_code == 200
    assert exists is (when != "before")
    again = client.post("/storage/v1/b", body, project="bezel-local")
    assert again.status_code == (409 if exists else 200)


def test_a_cut_answer_has_status_and_length_in_order(client: Client) -> None:
    put(client, "malformed-json", path="/storage/*")
    headers = {"Authorization": f"Bearer {control.access_token(client.endpoint)}"}
    cut = plain.get(f"{client.endpoint.base}/storage/v1/b?project=bezel-local", headers=headers)
    assert (cut.status_code, int(cut.headers["content-length"])) == (200, len(cut.content))
    with pytest.raises(json.JSONDecodeError):
        json.loads(cut.text)
    assert client.get("/storage/v1/b", project="bezel-local").json()["kind"] == "storage#buckets"


def test_no_fault_bars_the_way_to_clear_it(client: Client) -> None:
    put(client, "clock-skew")
    put(client, "server-errors", at="token", count=0)
    with pytest.raises(httpx.HTTPStatusError):
        control.access_token(client.endpoint)
    headers = {"Authorization": f"Bearer {control.own_token(client.endpoint)}"}
    assert plain.delete(f"{client.endpoint.base}{FAULTS}", headers=headers).status_code == 200
    assert control.access_token(client.endpoint)


def test_clocks_that_are_off_by_more_than_five_minutes_get_no_token(client: Client) -> None:
    put(client, "clock-skew", seconds=-299)
    assert control.access_token(client.endpoint)
    put(client, "clock-skew", seconds=-301)
    with pytest.raises(httpx.HTTPStatusError) as caught:
        control.access_token(client.endpoint)
    assert "Check your iat and exp values" in caught.value.response.text


def test_clocks_that_are_off_bar_tokens_that_an_account_signs_itself(client: Client) -> None:
    key_file, now = json.loads(client.endpoint.credentials.read_text()), int(time.time())
    common_claims = {"iss": key_file["client_email"], "sub": key_file["client_email"], "iat": now, "exp": now + 3600}
    claims = common_claims | {"aud": "https://cloudresourcemanager.googleapis.com/"}
    headers = {"Authorization": f"Bearer {keys.sign(claims, keys.load_private(key_file['private_key']))}"}
    url = f"{client.endpoint.base}/crm/v1/projects/bezel-local"
    for seconds, status in ((-299, 200), (-301, 401)):
        put(client, "clock-skew", seconds=seconds)
        assert plain.get(url, headers=headers).status_code == status


def test_somebody_else_needs_a_service_to_change(client: Client) -> None:
    answer = client.post(FAULTS, {"kind": "service-deleted"})
    assert answer.status_code == 400
    assert "No service is deployed" in answer.json()["error"]["message"]


def test_an_operation_that_never_ends_ends_when_the_fault_is_cleared(client: Client) -> None:
    put(client, "operation-never-ends", api="serviceusage")
    path = "/serviceusage/v1/projects/bezel-local/services:batchEnable"
    name = client.post(path, {"serviceIds": ["run.googleapis.com"]}).json()["name"]
    waits = [client.get(f"/serviceusage/v1beta1/{name}").json() for _ in range(3)]
    assert not any(one.get("done") for one in waits)
    client.delete(FAULTS)
    assert client.get(f"/serviceusage/v1beta1/{name}").json()["done"] is True


def test_an_operation_that_fails_late_has_done_its_work(client: Client) -> None:
    put(client, "operation-fails-late", api="serviceusage")
    path = "/serviceusage/v1/projects/bezel-local/services/run.googleapis.com"
    name = client.post(f"{path}:enable").json()["name"]
    ended = client.finish("serviceusage/v1beta1", client.get(f"/serviceusage/v1beta1/{name}"))
    assert ended["error"]["code"] == 13
    assert client.get(path).json()["state"] == "ENABLED"


@pytest.mark.parametrize(
    ("kind", "parameters", "code", "message"),
    [
        ("quota-exceeded", {}, 8, "is 0 in us-east4"),
        ("image-missing", {"seen": "deploy"}, 5, "not found"),
    ],
)
def test_the_platform_refuses_revisions_while_the_fault_is_on(
    client: Client, kind: str, parameters: dict[str, object], code: int, message: str
) -> None:
    """The platform refuses a revision while the fault is on and takes the next."""
    client.prepare()
    put(client, kind, **parameters)
    failed = client.create(kind, client.template())
    assert failed["error"]["code"] == code
    assert message in failed["error"]["message"]
    client.delete(FAULTS)
    assert "response" in client.update(kind, client.template("--a=1"))
    client.remove(kind)


def test_an_image_that_cannot_be_looked_up_is_unknown_to_the_registry(client: Client) -> None:
    assert client.digest().startswith("sha256:")
    put(client, "image-missing")
    assert client.http.head("/v2/vllm/vllm-openai/manifests/v0.32.0", params={"ns": "docker.io"}).status_code == 404


def test_what_somebody_else_changes_and_deletes_is_done_at_once(client: Client) -> None:
    client.prepare()
    client.create("theirs", client.template())
    struck = client.post(FAULTS, {"kind": "service-changed", "parameters": {"max_instances": 3}}).json()
    assert [name.rpartition("/")[2] for name in struck["struck"]] == ["theirs"]
    assert client.service("theirs")["template"]["scaling"]["maxInstanceCount"] == 3
    # What Cloud Run refuses is said in its words, with the value; 3 GPUs are the region's quota.
    for number in (4, 7, 100):
        refused = client.post(FAULTS, {"kind": "service-changed", "parameters": {"max_instances": number}})
        error = refused.json()["error"]
        assert (refused.status_code, error["status"]) == (400, "INVALID_ARGUMENT"), number
        assert f"service-changed max_instances={number}: Cloud Run refuses it of projects/" in error["message"]
        assert "/services/theirs, so nothing was changed: " in error["message"]
        assert "Max instances must be set to 3 or fewer" in error["message"]
        assert f"NvidiaL4GpuAllocNoZonalRedundancyPerProjectRegion requested: {number} allowed: 3" in error["message"]
        assert error["message"].endswith(". Give a max_instances that it accepts.")
    assert client.service("theirs")["template"]["scaling"]["maxInstanceCount"] == 3
    assert client.post(FAULTS, {"kind": "service-deleted"}).status_code == 200
    assert client.get(f"{SERVICES}/theirs").status_code == 404
    assert client.get(FAULTS).json()["faults"] == []
