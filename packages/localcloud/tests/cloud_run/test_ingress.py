"""The front of a service: who may call, what the container sees, how the answer comes back."""

from concurrent.futures import wait

import httpx
import pytest

from localcloud_support.client import RUNTIME, SERVICES, is_alive, plain, until
from localcloud_support.held_requests import SentRequest, held_request

pytestmark = pytest.mark.slow  # instances start and end behind it


@pytest.fixture(scope="module")
def service(cloud):
    """A service that only the deployer may call."""
    cloud.create("front", cloud.template("--x"))
    yield cloud.service("front")
    cloud.remove("front")


@pytest.fixture
def front(cloud, service):
    assert service["uri"] == cloud.service("front")["uri"]
    return cloud.front("front")


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


def test_a_caller_without_a_token_is_forbidden(service):
    answer = plain.get(service["uri"] + "/a<b>")
    assert answer.status_code == 403
    assert answer.headers["content-type"].startswith("text/html")
    assert "<title>403 Forbidden</title>" in answer.text
    assert "<b>" not in answer.text


def test_a_token_that_does_not_hold_is_unauthorized(cloud, service):
    uri = service["uri"]
    other_audience = cloud.identity("http://127.0.0.1:1")
    good = cloud.identity(uri)
    forged = good.rpartition(".")[0] + "." + good.rpartition(".")[2][::-1]
    access = cloud.http.headers["Authorization"].partition(" ")[2]
    for token in ("a.b.c", other_audience, forged, access):
        answer = plain.get(uri, headers=bearer(token))
        assert answer.status_code == 401
        assert 'error="invalid_token"' in answer.headers["www-authenticate"]
    assert plain.get(uri, headers=bearer(good)).status_code == 200


def test_an_account_needs_the_invoker_role_and_no_more(cloud, service):
    uri = service["uri"]
    token = cloud.identity(uri, RUNTIME)
    assert plain.get(uri, headers=bearer(token)).status_code == 403
    cloud.grant(f"{SERVICES}/front", "roles/run.invoker", f"serviceAccount:{RUNTIME}")
    assert plain.get(uri, headers=bearer(token)).status_code == 200
    policy = cloud.get(f"{SERVICES}/front:getIamPolicy").json()
    cloud.post(f"{SERVICES}/front:setIamPolicy", {"policy": {"etag": policy["etag"]}})
    assert plain.get(uri, headers=bearer(token)).status_code == 403


def test_all_users_as_invoker_opens_the_service(cloud, service):
    cloud.grant(f"{SERVICES}/front", "roles/run.invoker", "allUsers")
    answer = plain.get(service["uri"], headers={"Authorization": "Bearer of-the-app"})
    assert answer.json()["headers"]["authorization"] == "Bearer of-the-app"
    policy = cloud.get(f"{SERVICES}/front:getIamPolicy").json()
    cloud.post(f"{SERVICES}/front:setIamPolicy", {"policy": {"etag": policy["etag"]}})
    assert plain.get(service["uri"]).status_code == 403


def test_the_container_sees_the_request_and_a_token_it_cannot_use(service, front):
    seen = front.post("/v1/a%20b?q=1&q=2", content=b"body", headers={"X-Mine": "yes"}).json()
    assert (seen["method"], seen["path"], seen["body"]) == ("POST", "/v1/a%20b?q=1&q=2", "body")
    assert seen["headers"]["x-mine"] == "yes"
    assert seen["headers"]["host"] == service["uri"].removeprefix("http://")
    assert seen["headers"]["authorization"].endswith(".SIGNATURE_REMOVED_BY_GOOGLE")
    assert seen["headers"]["x-forwarded-for"] == "127.0.0.1"


def test_the_platforms_own_header_leaves_authorization_to_the_app(cloud, service):
    headers = {"X-Serverless-Authorization": f"Bearer {cloud.identity(service['uri'])}", "Authorization": "Bearer key"}
    seen = plain.get(service["uri"], headers=headers).json()["headers"]
    assert seen["authorization"] == "Bearer key"
    assert seen["x-serverless-authorization"].endswith(".SIGNATURE_REMOVED_BY_GOOGLE")
    # Where both are there only the platform's own counts.
    swapped = dict(zip(headers, reversed(headers.values()), strict=True))
    assert plain.get(service["uri"], headers=swapped).status_code == 401


def test_the_containers_environment_tells_where_it_runs(front, service):
    environment = front.get("/").json()["environment"]
    assert environment["PORT"] == "8080"
    assert environment["K_SERVICE"] == "front"
    assert service["latestReadyRevision"].endswith(environment["K_REVISION"])
    assert '"accelerator": "nvidia-l4"' in environment["LOCALCLOUD_HARDWARE"]
    assert "GOOGLE_APPLICATION_CREDENTIALS" not in environment


def test_the_metadata_server_of_a_container_gives_tokens_of_its_account(cloud, front, service):
    host = front.get("/").json()["environment"]["GCE_METADATA_HOST"]
    account = f"http://{host}/computeMetadata/v1/instance/service-accounts/default"
    headers = {"Metadata-Flavor": "Google"}
    email = service["template"]["serviceAccount"]
    assert plain.get(f"{account}/email", headers=headers).text == email
    token = plain.get(f"{account}/identity", params={"audience": service["uri"]}, headers=headers).text
    assert plain.get(service["uri"], headers={"Authorization": f"Bearer {token}"}).status_code == 403
    cloud.grant(f"/run/v2/{service['name']}", "roles/run.invoker", f"serviceAccount:{email}")
    assert plain.get(service["uri"], headers={"Authorization": f"Bearer {token}"}).status_code == 200
    assert plain.get(f"{account}/email").status_code == 403


def test_a_stream_passes_through_as_it_comes(front):
    with front.stream("GET", "/stream") as answer:
        chunks = answer.iter_text()
        assert next(chunks) == "data: first\n\n"
        # The container says the rest only now: a front that buffers would wait for ever.
        front.get("/go")
        assert next(chunks) == "data: second\n\n"
        assert list(chunks) == []


def test_a_stream_that_breaks_breaks_for_the_client_too(front):
    with front.stream("GET", "/stream-broken") as answer, pytest.raises(httpx.RemoteProtocolError):
        list(answer.iter_raw())


def test_a_dead_instance_fails_its_request_and_is_replaced(cloud, front):
    """An instance that dies fails its request and the next one gets a new one."""
    before = front.get("/").json()["pid"]
    assert front.get("/die").status_code == 503
    after = until(lambda: (answer := front.get("/")).is_success and answer.json()["pid"])
    assert after != before
    until(lambda: cloud.log("front", 'textPayload:"exit(7)" AND severity>=WARNING'))


def test_requests_and_output_are_logged_with_their_revision(cloud, front, service):
    front.get("/say?line=spoken-now")
    entries = until(lambda: cloud.log("front", 'textPayload="spoken-now"'))
    assert entries[0]["logName"].endswith("run.googleapis.com%2Fstdout")
    labels = entries[0]["resource"]["labels"]
    assert labels["location"] == "us-east4"
    assert service["latestReadyRevision"].endswith(labels["revision_name"])
    requests = until(lambda: cloud.log("front", 'httpRequest.requestUrl:"/say" AND severity=INFO'))
    assert requests[-1]["httpRequest"]["status"] == 200
    assert "spoken-now" not in str(cloud.log("front", 'textPayload="something else"'))


def test_concurrency_bounds_what_an_instance_sees_and_the_rest_waits(cloud, tmp_path):
    cloud.create("narrow", cloud.template(maxInstanceRequestConcurrency=1))
    front = cloud.front("narrow")
    with held_request(front, tmp_path / "pipe") as first:
        rest = [SentRequest(cloud, front, f"/{tmp_path.name}-{number}") for number in range(2)]
        wait([first], timeout=0.2)
        assert [first.done(), *(request.is_answered() for request in rest)] == [False] * 3
    pids = [first.result(60).json()["pid"], *(request.response()["pid"] for request in rest)]
    assert len(set(pids)) == 1

    def latencies():
        entries = cloud.log("narrow", f'httpRequest.requestUrl:"/{tmp_path.name}-"')
        return [float(e["httpRequest"]["latency"][:-1]) for e in entries] if len(entries) == 2 else None

    assert min(until(latencies)) > 0.15
    cloud.remove("narrow")


def test_more_load_starts_further_instances_up_to_the_most(cloud, tmp_path):
    cloud.create("wide", cloud.template(maxInstanceRequestConcurrency=1, scaling={"maxInstanceCount": 2}))
    front = cloud.front("wide")
    with held_request(front, tmp_path / "one") as first, held_request(front, tmp_path / "other") as second:
        third = SentRequest(cloud, front)
        assert not third.is_answered()
    pids = {response.result(60).json()["pid"] for response in (first, second)}
    assert len(pids) == 2
    assert third.response()["pid"] in pids
    cloud.remove("wide")


def refuses_to_connect(front) -> bool:
    try:
        front.get("/")
    except httpx.ConnectError:
        return True
    except httpx.TransportError:  # a connection that was open is cut while the front closes
        return False
    return False


def test_a_deleted_service_answers_nobody(cloud):
    cloud.create("gone", cloud.template())
    front = cloud.front("gone")
    pid = front.get("/").json()["pid"]
    cloud.remove("gone")
    until(lambda: refuses_to_connect(front))
    until(lambda: not is_alive(pid))
    assert cloud.get(f"{SERVICES}/gone").status_code == 404
