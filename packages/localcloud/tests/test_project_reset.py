"""A reset of a running localcloud's project: what goes, what stays, and requests that come at the same time."""

import contextlib
import itertools
import os
import select
import socket
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from bezel_base.loopback.plain_http import NO_TLS
from bezel_localcloud import control, control_client, seed
from bezel_localcloud.core.paths import PROJECT, Endpoint, Paths
from localcloud_support.kept_port import kept_port

pytestmark = pytest.mark.slow  # a daemon
DAEMON = Path(__file__).parent / "localcloud_support" / "waiting_daemon.py"
REGION = f"projects/{PROJECT}/locations/us-east4"
ACCOUNT = f"runtime@{PROJECT}.iam.gserviceaccount.com"
BUCKETS = "/storage/v1/b"
WAIT_MS = 60_000


class Started:
    """A running daemon, and a client of its project that is made once."""

    def __init__(self, directory: Path, fifo: Path) -> None:
        os.mkfifo(fifo)
        self.fifo = fifo
        self.endpoint = self.launch(directory)
        headers = {"Authorization": f"Bearer {control.access_token(self.endpoint)}"}
        self.client = httpx.Client(
            base_url=self.endpoint.base, headers=headers, trust_env=False, verify=NO_TLS, timeout=60
        )

    def launch(self, directory: Path) -> Endpoint:
        return control.launch(directory, [sys.executable, str(DAEMON), str(directory), str(self.fifo)])

    def restart(self) -> None:
        control.stop(self.endpoint.directory)
        with kept_port(self.endpoint.base):
            self.endpoint = self.launch(self.endpoint.directory)

    def post(self, path: str, body: object, **query: str) -> Any:
        answer = self.client.post(path, json=body, params=query)
        assert answer.is_success, answer.text
        return answer.json()

    def deploy(self) -> int:
        """Deploy a service whose container never listens; return the id of its process."""
        for api in ("run", "iam", "artifactregistry"):
            seed.enable(self.endpoint, f"{api}.googleapis.com")
        self.post(f"/iam/v1/projects/{PROJECT}/serviceAccounts", {"accountId": "runtime", "serviceAccount": {}})
        remote = {"dockerRepository": {"publicRepository": "DOCKER_HUB"}}
        repository = {"format": "DOCKER", "mode": "REMOTE_REPOSITORY", "remoteRepositoryConfig": remote}
        self.post(f"/artifactregistry/v1/{REGION}/repositories", repository, repositoryId="hub")
        manifest = self.client.head("/v2/vllm/vllm-openai/manifests/v0.32.0", params={"ns": "docker.io"})
        digest = manifest.headers["docker-content-digest"]
        container = {
            "image": f"us-east4-docker.pkg.dev/{PROJECT}/hub/vllm/vllm-openai@{digest}",
            "resources": {"limits": {"cpu": "8", "memory": "32Gi", "nvidia.com/gpu": "1"}},
        }
        template = {
            "containers": [container],
            "serviceAccount": ACCOUNT,
            "nodeSelector": {"accelerator": "nvidia-l4"},
            "gpuZonalRedundancyDisabled": True,
            "scaling": {"maxInstanceCount": 1},
        }
        self.post(f"/run/v2/{REGION}/services", {"template": template}, serviceId="waits")
        return int(self.fifo.read_text())


@pytest.fixture(scope="module")
def shared_cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Started]:
    folder = tmp_path_factory.mktemp("reset")
    one = Started(folder / "cloud", folder / "fifo")
    with one.client:
        yield one
    control.stop(one.endpoint.directory)


@pytest.fixture
def started_cloud(shared_cloud: Started) -> Iterator[Started]:
    """The module's cloud, whose project is a new one for each test."""
    yield shared_cloud
    control_client.reset(shared_cloud.endpoint)


def test_a_reset_ends_what_runs_and_deletes_the_rest(started_cloud: Started) -> None:
    instance = os.pidfd_open(started_cloud.deploy())
    started_cloud.post(BUCKETS, {"name": "one-bucket"}, project=PROJECT)
    upload = {"uploadType": "media", "name": "object"}
    assert started_cloud.client.post(f"/upload{BUCKETS}/one-bucket/o", params=upload, content=b"bytes").is_success
    control_client.add_fault(started_cloud.endpoint, "slow-start", {"factor": 3})
    layout = Paths(started_cloud.endpoint.directory)
    assert [*layout.contents.iterdir()]
    key = layout.credentials.read_bytes()
    control_client.reset(started_cloud.endpoint)
    waiting = select.poll()
    waiting.register(instance, select.POLLIN)
    assert waiting.poll(WAIT_MS)
    os.close(instance)
    assert control.inventory(started_cloud.endpoint) == {}
    assert control_client.active_faults(started_cloud.endpoint) == []
    assert [*layout.contents.iterdir(), *layout.objects.iterdir()] == []
    assert control.status(started_cloud.endpoint.directory) == started_cloud.endpoint
    assert layout.credentials.read_bytes()[:100] == key[:100]
    # The client is still logged in, and finds names free.
    started_cloud.post(BUCKETS, {"name": "one-bucket"}, project=PROJECT)
    assert "items" not in started_cloud.client.get(f"{BUCKETS}/one-bucket/o").json()


def test_a_new_project_works_as_the_first_one(started_cloud: Started) -> None:
    first = started_cloud.deploy()
    control_client.reset(started_cloud.endpoint)
    assert started_cloud.deploy() != first
    assert [*control.inventory(started_cloud.endpoint)["services"]] == [f"{REGION}/services/waits"]


def test_a_request_that_runs_fails_and_does_nothing(started_cloud: Started) -> None:
    headers = {"Authorization": f"Bearer {control.own_token(started_cloud.endpoint)}"}
    hold = {"method": "POST", "path": BUCKETS, "nth": 1, "when": "before"}
    assert started_cloud.client.put("/localcloud/hold", json=hold, headers=headers).is_success
    with ThreadPoolExecutor() as pool:
        request = pool.submit(
            started_cloud.client.post, BUCKETS, json={"name": "one-bucket"}, params={"project": PROJECT}
        )
        reached = started_cloud.client.get("/localcloud/hold", params={"seconds": "60"}, headers=headers).json()
        assert reached == {"reached": True}
        control_client.reset(started_cloud.endpoint)
        assert request.result(60).status_code == httpx.codes.INTERNAL_SERVER_ERROR
    assert started_cloud.client.get(f"{BUCKETS}/one-bucket").status_code == 404


def test_two_resets_at_once_both_end(started_cloud: Started) -> None:
    with ThreadPoolExecutor() as pool:
        resets = [pool.submit(control_client.reset, started_cloud.endpoint) for _ in range(3)]
        assert [reset.result(60) for reset in resets] == [None] * 3
    assert control.inventory(started_cloud.endpoint) == {}


@contextlib.contextmanager
def cutting_server(count: int) -> Iterator[str]:
    """Serve a generation, after so many connections that end without a response; yield the address."""
    body = b'{"generation": 1}'
    answer = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)

    def serve() -> None:
        for number in itertools.count():
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                connection.recv(65536)
                if number >= count:
                    connection.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(60)


def test_a_reset_that_another_one_cuts_off_is_asked_again(shared_cloud: Started) -> None:
    with cutting_server(3) as base:
        control_client.reset(replace(shared_cloud.endpoint, base=base))


def test_another_request_that_is_cut_off_is_reported(shared_cloud: Started) -> None:
    with cutting_server(1) as base, pytest.raises(control_client.CutOffError, match="does not respond"):
        control_client.active_faults(replace(shared_cloud.endpoint, base=base))


def test_a_reset_without_permission_is_refused(started_cloud: Started) -> None:
    started_cloud.post(BUCKETS, {"name": "one-bucket"}, project=PROJECT)
    with httpx.Client(base_url=started_cloud.endpoint.base, trust_env=False, verify=NO_TLS) as client:
        assert client.post("/localcloud/reset").status_code == 401
    assert started_cloud.client.get(f"{BUCKETS}/one-bucket").status_code == 200


def test_the_port_stays_after_a_reset_and_a_restart(started_cloud: Started) -> None:
    before = started_cloud.endpoint
    control_client.reset(before)
    started_cloud.restart()
    assert started_cloud.endpoint.base == before.base
    assert started_cloud.endpoint.pid != before.pid
