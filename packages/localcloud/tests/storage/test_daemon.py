"""Cloud Storage of a running daemon: rivals for one name, and kills in the middle of uploads and compositions."""

import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from bezel_localcloud import control
from localcloud_support.client import Client

pytestmark = pytest.mark.slow
OBJECTS = "/storage/v1/b/shelf/o"
UPLOAD = "/upload/storage/v1/b/shelf/o"


@pytest.fixture
def shelf(own_daemon):
    client = Client(own_daemon())
    assert client.post("/storage/v1/b", {"name": "shelf"}, project="bezel-local").status_code == 200
    return client


def killed_and_started_again(shelf, own_daemon):
    os.kill(shelf.endpoint.pid, signal.SIGKILL)
    return Client(own_daemon())


def test_of_many_writers_of_a_new_name_one_wins(shelf):
    """Of many writers of a new name one wins and its bytes are the object."""
    token, start = control.access_token(shelf.endpoint), threading.Barrier(8)

    def write(number):
        content = bytes([number]) * 300_000
        with httpx.Client(base_url=shelf.endpoint.base, trust_env=False, timeout=30) as client:
            start.wait()
            query = {"uploadType": "media", "name": "a", "ifGenerationMatch": "0"}
            headers = {"Authorization": f"Bearer {token}"}
            return client.post(UPLOAD, params=query, content=content, headers=headers).status_code

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(write, range(8)))
    assert sorted(answers) == [200] + [412] * 7
    assert shelf.get(f"{OBJECTS}/a", alt="media").content == bytes([answers.index(200)]) * 300_000


@pytest.mark.wide_except("upload")
@pytest.mark.parametrize("kind", ["upload", "part", "compose"])
def test_a_kill_in_the_middle_leaves_the_old_object(shelf, own_daemon, kind):
    """A kill in the middle leaves the old object and no bytes of the new."""
    part = os.urandom(1 << 20)
    for name in ("a", "b"):
        shelf.http.post(UPLOAD, params={"uploadType": "media", "name": name}, content=part)
    sent, killed = threading.Event(), threading.Event()

    def endless():
        for _ in range(100_000):
            yield part
            sent.set()

    def send():
        with httpx.Client(base_url=shelf.endpoint.base, headers=shelf.http.headers, trust_env=False) as client:
            try:
                if kind == "compose":
                    sent.set()
                    while not killed.is_set():  # else the next daemon, at the same address, would get them too
                        sources = {"sourceObjects": [{"name": name} for name in "ab" * 16]}
                        client.post(f"{OBJECTS}/whole/compose", json=sources, timeout=30)
                elif kind == "part":
                    client.put("/shelf/a", content=endless(), timeout=30)
                else:
                    client.post(UPLOAD, params={"uploadType": "media", "name": "a"}, content=endless(), timeout=30)
            except httpx.HTTPError:
                return

    sender = threading.Thread(target=send)
    sender.start()
    assert sent.wait(60)
    killed.set()
    again = killed_and_started_again(shelf, own_daemon)
    sender.join(60)
    sizes = {item["name"]: int(item["size"]) for item in again.get(OBJECTS).json()["items"]}
    assert sizes.pop("whole", 32 << 20) == 32 << 20
    assert sizes == {"a": 1 << 20, "b": 1 << 20}
    assert again.get(f"{OBJECTS}/a", alt="media").content == part
    folder = again.endpoint.directory
    assert list((folder / "uploads").iterdir()) == []
    kept = again.get(OBJECTS, softDeleted="true").json().get("items", []) + again.get(OBJECTS).json()["items"]
    assert len(list((folder / "contents").iterdir())) == len(kept)
