"""A disk that is full: the caller sees it in Google's shape, nothing is half written, and with room it continues."""

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from bezel_localcloud import control
from bezel_localcloud.core.store import Store, is_full
from bezel_localcloud.seed import SeedError, seed
from localcloud_support.client import PARENT, SERVICES, Client, until
from localcloud_support.held_requests import opened_by_reader

pytestmark = pytest.mark.slow

LARGE = "x" * 20_000
SECRETS = f"/secretmanager/v1/{PARENT}/secrets"


@pytest.fixture
def client(own_daemon) -> Client:
    client = Client(own_daemon())
    client.enable("secretmanager")
    assert client.post("/storage/v1/b", {"name": "own", "location": "US"}, project="bezel-local").status_code == 200
    return client


def fill(client: Client, *, full: bool) -> None:
    headers = {"Authorization": f"Bearer {control.own_token(client.endpoint)}"}
    path = "/localcloud/faults"
    if full:
        answer = client.http.post(path, json={"kind": "localcloud-disk-full"}, headers=headers)
    else:
        answer = client.http.delete(f"{path}/localcloud-disk-full", headers=headers)
    assert answer.status_code == 200, answer.text


def upload(client: Client, name: str, content: str):
    query = {"uploadType": "media", "name": name}
    return client.http.post("/upload/storage/v1/b/own/o", params=query, content=content.encode())


def read(client: Client, name: str):
    return client.http.get(f"/storage/v1/b/own/o/{name}", params={"alt": "media"})


def test_a_full_disk_is_reported_and_changes_nothing(client: Client) -> None:
    """A full disk is reported to the caller and leaves everything as it was."""
    assert upload(client, "kept.txt", "before").status_code == 200
    fill(client, full=True)
    with pytest.raises(SeedError, match=r"cannot be uploaded to gs://own/m, so nothing was deployed: .* disk is full"):
        seed(client.endpoint, "own", "m", {"config.json": b"{}"})
    refused = client.post(SECRETS, {"replication": {"automatic": {}}, "labels": {"a": LARGE}}, secretId="s")
    assert refused.status_code == 500
    assert refused.json()["error"]["status"] == "INTERNAL"
    assert "disk is full" in refused.json()["error"]["message"]
    assert str(client.endpoint.directory) in refused.json()["error"]["message"]
    legacy = upload(client, "kept.txt", "after")
    assert legacy.status_code == 500
    assert legacy.json()["error"]["errors"][0]["domain"] == "global"
    assert client.get(SECRETS).json().get("secrets", []) == []
    assert read(client, "kept.txt").text == "before"
    assert list((client.endpoint.directory / "uploads").iterdir()) == []

    fill(client, full=False)
    assert client.post(SECRETS, {"replication": {"automatic": {}}}, secretId="s").status_code == 200
    assert upload(client, "kept.txt", "after").status_code == 200
    assert read(client, "kept.txt").text == "after"


def test_a_deployment_that_comes_up_on_a_full_disk_ends_when_there_is_room(client: Client, tmp_path: Path) -> None:
    client.prepare()
    os.mkfifo(tmp_path / "pipe")
    template = client.template(f"--reads={tmp_path / 'pipe'}")
    answer = client.post(SERVICES, {"template": template}, serviceId="late")
    with opened_by_reader(tmp_path / "pipe"):  # the container has begun, and listens after this
        fill(client, full=True)
    operation = answer.json()["name"]
    log = client.endpoint.directory / "logs" / "daemon.log"
    until(lambda: "waits for room" in log.read_text())
    assert not client.get(f"/run/v2/{operation}").json().get("done")
    fill(client, full=False)
    assert "response" in client.finish("run/v2", answer)


def test_a_transaction_that_meets_the_end_of_the_file_is_taken_back_whole(tmp_path) -> None:
    store = Store(tmp_path / "cloud.db")
    store.put("kind", "kept", {"value": 1})
    store.limit(full=True)

    def grow() -> None:
        with store.transaction():
            store.put("kind", "kept", {"value": 2})
            store.put("kind", "new", {"value": LARGE})

    with pytest.raises(sqlite3.OperationalError) as caught:
        grow()
    assert is_full(caught.value)
    assert store.get("kind", "kept") == {"value": 1}
    assert store.get("kind", "new") is None
    store.limit(full=False)
    grow()
    assert store.get("kind", "new") == {"value": LARGE}
    store.close()


def test_a_file_that_may_grow_no_more_is_a_full_disk_too(tmp_path) -> None:
    script = (
        "import resource, sys\n"
        "from pathlib import Path; from bezel_localcloud.core.store import Store, is_full\n"
        "store = Store(Path(sys.argv[1])); store.put('kind', 'kept', {'value': 1})\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))\n"
        "try:\n    store.put('kind', 'new', {'value': 'x' * 1_000_000})\n"
        "except Exception as error:\n    print(is_full(error))\n"
        "print(store.get('kind', 'kept'), store.get('kind', 'new'))\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "cloud.db")], capture_output=True, text=True, check=True
    )
    assert run.stdout == "True\n{'value': 1} None\n"


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (OSError(28, "No space left on device"), True),
        (OSError(27, "File too large"), True),
        (OSError(13, "Permission denied"), False),
        (ValueError("full"), False),
        (sqlite3.OperationalError("database is locked"), False),
    ],
)
def test_other_failures_are_no_full_disk(error: Exception, expected: bool) -> None:
    assert is_full(error) is expected
