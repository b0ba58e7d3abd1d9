"""Secrets as volumes: what Cloud Run refuses at once, what fails the container, and the files that a program reads."""

import base64
import copy
import io
import json
import stat
import zipfile
from types import SimpleNamespace

import pytest

from bezel_localcloud.core.paths import DEPLOYER, PROJECT
from bezel_localcloud.services.cloud_run.checks import violations
from bezel_localcloud.services.cloud_run.containers.volumes import secret_mounts
from bezel_localcloud.services.cloud_run.failures import RevisionFailureError
from bezel_localcloud.services.cloud_run.runtime.container_command import container_command
from localcloud_support.client import PARENT, REGION, RUNTIME, until

SECRETS = f"/secretmanager/v1/{PARENT}/secrets"
ITEM = {"path": "app.pyz", "version": "1"}
VOLUME = {"name": "files", "secret": {"secret": "app", "items": [ITEM]}}
MOUNT = {"name": "files", "mountPath": "/app"}
PYTHON = "docker.io/library/python:3.13.14-slim-bookworm"
# Answers one request after the other with what its container sees of itself.
SERVER = b"""
import json, os, socket, stat, sys
HEAD = b"HTTP/1.1 200 OK\\r\\nConnection: close\\r\\nContent-Length: %d\\r\\n\\r\\n"
def has(name):
    try:
        return bool(__import__(name))
    except ImportError:
        return False
seen = {
    "arguments": sys.argv, "variables": dict(os.environ), "packages": has("bezel_localcloud"),
    "mode": stat.S_IMODE(os.stat(sys.argv[0]).st_mode), "token": open(sys.argv[1]).read(),
}
content = json.dumps(seen).encode()
listener = socket.socket(socket.AF_UNIX)
listener.bind(os.environ["DOOR_ADDRESS"].removeprefix("unix@") + ":" + os.environ["PORT"])
listener.listen()
while True:
    with listener.accept()[0] as connection:
        if connection.recv(65536):
            connection.sendall(HEAD % len(content) + content)
"""


def template(**changes):
    """A template with a mounted secret; `volume`, `secret`, `item` and `mount` change its parts."""
    volume = copy.deepcopy(VOLUME) | changes.get("volume", {})
    if volume.get("secret"):
        volume["secret"] |= changes.get("secret", {})
        volume["secret"]["items"] = [item | changes.get("item", {}) for item in volume["secret"].get("items") or []]
    container = {"image": PYTHON, "command": ["python"], "args": ["/app/app.pyz"]}
    return {"containers": [container | {"volumeMounts": [MOUNT | changes.get("mount", {})]}], "volumes": [volume]}


PLACE = "service.template.volumes[0]"
REFUSED = {
    "no name": ({"volume": {"name": ""}}, f"{PLACE}.name", "is required"),
    "no source": ({"volume": {"secret": None}}, PLACE, "exactly one source"),
    "two sources": ({"volume": {"gcs": {"bucket": "b"}}}, PLACE, "exactly one source"),
    "no secret": ({"secret": {"secret": ""}}, f"{PLACE}.secret.secret", "is required"),
    "no version": ({"item": {"version": ""}}, f"{PLACE}.secret.items[0].version", "is required"),
    "no path": ({"item": {"path": ""}}, f"{PLACE}.secret.items[0].path", "is required"),
    "absolute": ({"item": {"path": "/etc/x"}}, f"{PLACE}.secret.items[0].path", "a relative path"),
    "parent": ({"item": {"path": "a/../../x"}}, f"{PLACE}.secret.items[0].path", "without '..'"),
    "mode": ({"item": {"mode": 512}}, f"{PLACE}.secret.items[0].mode", "not between 0 and 511"),
    "default mode": ({"secret": {"defaultMode": -1}}, f"{PLACE}.secret.default_mode", "not between 0 and 511"),
    "path twice": ({"secret": {"items": [ITEM, ITEM]}}, f"{PLACE}.secret.items", "'app.pyz' is given more than once"),
    "system": ({"mount": {"mountPath": "/proc/x"}}, "volume_mounts", "at or below /dev, /proc, /sys"),
    "relative": ({"mount": {"mountPath": "app"}}, "volume_mounts", "not absolute"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_wrong_secret_volume_is_refused_with_its_field(case):
    changes, field, text = REFUSED[case]
    problems = violations({"template": template(**changes)}, "app", REGION)
    if case == "no name":  # then nothing is mounted either
        assert problems.pop(0) == ("service.template.containers[0].volume_mounts", "no volume is named 'files'")
    assert [(place.endswith(field), text in message) for place, message in problems] == [(True, True)]


def test_a_volume_without_items_is_one_file_named_after_the_secret():
    assert violations({"template": template(volume={"secret": {"secret": "app"}})}, "app", REGION) == []
    body = template(volume={"secret": {"secret": f"projects/{PROJECT}/secrets/app", "defaultMode": 0o400}})
    (mount,) = secret_mounts(body, body["containers"][0])
    assert [(file.path, file.version, file.mode) for file in mount.files] == [("app", "latest", 0o400)]
    other = template(item={"mode": 0o555, "version": "2"}, mount={"subPath": "a"})
    (mount,) = secret_mounts(other, other["containers"][0])
    assert [(file.version, file.mode) for file in mount.files] == [("2", 0o555)]
    assert mount.sub_path == "a"


def test_a_mount_path_given_twice_is_refused():
    body = template()
    body["containers"][0]["volumeMounts"].append(MOUNT | {"mountPath": "/app/"})
    assert [text for _, text in violations({"template": body}, "app", REGION)] == [
        "mount path '/app' is given more than once"
    ]


def command_of(project, body, account):
    mounts = secret_mounts(body, body["containers"][0])
    container = body["containers"][0]
    spec = SimpleNamespace(
        image=container["image"],
        command=tuple(container["command"]),
        args=tuple(container["args"]),
        environment=(),
        mounts=(),
        secrets=mounts,
        service_account=account,
    )
    return container_command(project.cloud, None, spec, "/s/1:8080", 1.0, {})


def test_a_secret_volume_that_cannot_be_read_fails_the_container(project):
    project.cloud.store.put("api", "secretmanager.googleapis.com", {"state": "ENABLED"})
    project.ok("POST", SECRETS, {"replication": {"automatic": {}}}, secretId="app")
    project.ok("POST", f"{SECRETS}/app:addVersion", {"payload": {"data": base64.b64encode(b"x").decode()}})
    cases = {
        "Permission denied on secret: projects/123456789012/secrets/app/versions/1": (template(), RUNTIME),
        "versions/7 was not found": (template(item={"version": "7"}), DEPLOYER),
        "secrets/none/versions/1 was not found": (template(secret={"secret": "none"}), DEPLOYER),
    }
    for text, (body, account) in cases.items():
        with pytest.raises(RevisionFailureError, match=text):
            command_of(project, body, account)
    with pytest.raises(RevisionFailureError, match="by a command only"):
        command_of(project, {**template(), "containers": [{**template()["containers"][0], "command": []}]}, DEPLOYER)
    assert not project.cloud.layout.secret_files.exists()
    command = command_of(project, template(item={"version": "latest", "mode": 0o660}), DEPLOYER)
    (folder,) = command.folders
    assert command.argv[1:] == ("-I", "-S", f"{folder}/app.pyz")
    assert (folder / "app.pyz").read_bytes() == b"x"
    assert stat.S_IMODE((folder / "app.pyz").stat().st_mode) == 0o440  # without the right to write
    project.ok("POST", f"{SECRETS}/app/versions/1:disable", {})
    with pytest.raises(RevisionFailureError, match="is in DISABLED state"):
        command_of(project, template(), DEPLOYER)


@pytest.mark.slow
def test_a_program_of_python_reads_its_secrets_as_files(cloud):
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("__main__.py", SERVER)
    for name in ("app", "token"):
        cloud.post(SECRETS, {"replication": {"automatic": {}}}, secretId=name)
        cloud.grant(f"{SECRETS}/{name}", "roles/secretmanager.secretAccessor", f"serviceAccount:{RUNTIME}")
    for name, content in (("app", archive.getvalue()), ("token", b"old"), ("token", b"planted-new")):
        payload = {"payload": {"data": base64.b64encode(content).decode()}}
        assert cloud.post(f"{SECRETS}/{name}:addVersion", payload).status_code == 200
    token = {"secret": "token", "items": [{"path": "more/token", "version": "latest", "mode": 0o640}]}
    body = template(mount={"mountPath": "/door"})
    body["volumes"].append({"name": "token", "secret": token})
    body["containers"][0]["volumeMounts"].append({"name": "token", "mountPath": "/etc/token"})
    body["containers"][0] |= {"args": ["/door/app.pyz", "/etc/token/more/token"], "ports": [{"containerPort": 8080}]}
    operation = cloud.create("reader", body | {"serviceAccount": RUNTIME})
    assert "error" not in operation, operation
    folder = cloud.endpoint.directory / "secret-files"
    with cloud.front("reader") as front:
        seen = front.get("/").json()
    assert (seen["token"], seen["mode"], seen["packages"]) == ("planted-new", 0o444, False)
    assert seen["variables"]["GOOGLE_STORAGE_CUSTOM_ENDPOINT"] == f"{cloud.endpoint.base}/storage/v1/"
    assert seen["variables"]["GCE_METADATA_HOST"].startswith("127.0.0.1:")
    assert {word.removeprefix(f"{folder}/").partition("/")[0] for word in seen["arguments"]} == {
        path.name for path in folder.iterdir()
    }
    assert "planted-new" not in json.dumps([cloud.service("reader"), cloud.log("reader")])
    cloud.remove("reader")
    until(lambda: not [*folder.iterdir()])
    for name in ("app", "token"):
        cloud.delete(f"{SECRETS}/{name}")
