"""An instance of several containers: their order, their logs, and the end of all with one."""

import base64
import re

import pytest

from localcloud_support.client import PARENT, RUNTIME, until

SECRETS = f"/secretmanager/v1/{PARENT}/secrets"
# Says that it begins, ends by itself on demand, and says so at SIGTERM, with work that takes a moment.
SIDECAR = b"""
import os, signal, sys, time
def end(*_):
    time.sleep(0.3)
    sys.exit(print("sidecar ends", flush=True))
signal.signal(signal.SIGTERM, end)
print("sidecar begins", os.environ["K_REVISION"], flush=True)
if sys.argv[1:] == ["--fail"]:
    sys.exit(3)
while not os.path.exists(sys.argv[1]):
    time.sleep(0.05)
sys.exit(4)
"""


@pytest.fixture
def secret(cloud):
    """A secret with the sidecar's program, which the runtime account may read."""
    cloud.post(SECRETS, {"replication": {"automatic": {}}}, secretId="sidecar")
    cloud.post(f"{SECRETS}/sidecar:addVersion", {"payload": {"data": base64.b64encode(SIDECAR).decode()}})
    cloud.grant(f"{SECRETS}/sidecar", "roles/secretmanager.secretAccessor", f"serviceAccount:{RUNTIME}")
    yield
    cloud.delete(f"{SECRETS}/sidecar")


def template(cloud, *arguments):
    body = cloud.template("--last-words=server ends")
    (server,) = body["containers"]
    limits = {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "1"}
    sidecar = {
        "name": "helper",
        "image": "docker.io/library/python:3.13.14-slim-bookworm",
        "command": ["python"],
        "args": ["/app/main.py", *arguments],
        "volumeMounts": [{"name": "program", "mountPath": "/app"}],
        "dependsOn": ["server"],
    }
    items = [{"path": "main.py", "version": "latest"}]
    body["containers"] = [sidecar, server | {"name": "server", "resources": {"limits": limits}}]
    return body | {"volumes": [{"name": "program", "secret": {"secret": "sidecar", "items": items}}]}


def lines_of(cloud, service):
    """(container, text) of every entry of the log, oldest first."""
    entries = cloud.log(service)
    return [(entry.get("labels", {}).get("container_name", ""), entry.get("textPayload", "")) for entry in entries]


@pytest.mark.slow
@pytest.mark.usefixtures("secret")
def test_containers_start_in_their_order_and_end_together(cloud, tmp_path):
    created = cloud.create("pair", template(cloud, str(tmp_path / "stop")))
    assert "error" not in created, created
    revision = created["response"]["latestReadyRevision"].rpartition("/")[2]
    until(lambda: ("helper", f"sidecar begins {revision}") in lines_of(cloud, "pair"))
    with cloud.front("pair") as front:
        assert front.get("/").status_code == 200
    lines = lines_of(cloud, "pair")
    started = [i for i, (name, text) in enumerate(lines) if name == "server" and "probe succeeded" in text]
    assert re.search('for container "server" on port 8080', lines[started[0]][1])
    assert started[0] < lines.index(("helper", f"sidecar begins {revision}"))
    # One that ends by itself ends the other, and the instance is replaced at the next request.
    (tmp_path / "stop").touch()
    until(lambda: ("server", "server ends") in lines_of(cloud, "pair"))
    assert ("helper", "Container called exit(4).") in lines_of(cloud, "pair")
    (tmp_path / "stop").unlink()
    with cloud.front("pair") as front:
        assert front.get("/").status_code == 200
    until(lambda: lines_of(cloud, "pair").count(("helper", f"sidecar begins {revision}")) == 2)
    cloud.remove("pair")
    until(lambda: lines_of(cloud, "pair").count(("server", "server ends")) == 2)
    ends = [line for line in lines_of(cloud, "pair") if line[1].endswith(" ends")]
    assert ends[-2:] == [("helper", "sidecar ends"), ("server", "server ends")]


@pytest.mark.slow
@pytest.mark.usefixtures("secret")
def test_a_sidecar_that_ends_at_its_start_leaves_no_instance(cloud):
    body = template(cloud, "--fail")
    body["containers"][0] |= {"startupProbe": {"tcpSocket": {"port": 9000}}}
    operation = cloud.create("lame", body)
    assert "The container 'helper' exited before all containers" in operation["error"]["message"]
    lines = lines_of(cloud, "lame")
    assert ("helper", "Container called exit(3).") in lines
    assert ("server", "server ends") in lines
    cloud.remove("lame")
    images = [body["containers"][0] | {"image": "docker.io/library/python:2"}, body["containers"][1]]
    operation = cloud.create("lame", body | {"containers": images})
    assert "Image 'docker.io/library/python:2' not found." in operation["error"]["message"]
    cloud.remove("lame")
