"""Privacy of what localcloud keeps: its files, and what its processes have of the caller's environment."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from bezel_localcloud.control import launch
from bezel_localcloud.core.paths import DirectoryError, Paths
from bezel_localcloud.core.store import Store
from localcloud_support.client import PARENT, Client
from localcloud_support.open_files import open_to_others

pytestmark = pytest.mark.slow
SECRETS = {
    "PULUMI_CONFIG_PASSPHRASE": "planted-passphrase",
    "PULUMI_ACCESS_TOKEN": "planted-pulumi-token",
    "GOOGLE_OAUTH_ACCESS_TOKEN": "planted-google-token",
    "HF_TOKEN": "planted-hub-token",
    "AWS_SECRET_ACCESS_KEY": "planted-key",
    "SSH_AUTH_SOCK": "/planted/socket",
}


def environment_of(pid):
    return Path(f"/proc/{pid}/environ").read_text()


def test_the_daemon_keeps_nothing_secret_of_its_callers_environment(started_daemon, monkeypatch):
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    endpoint = started_daemon()
    environment = environment_of(endpoint.pid)
    assert "planted" not in environment
    assert "LC_ALL=C.UTF-8" in environment


def test_every_file_of_a_daemon_is_its_owners_alone(started_daemon):
    mask = os.umask(0o022)
    try:
        endpoint = started_daemon(makes_keys=True)
    finally:
        os.umask(mask)
    client = Client(endpoint)
    client.enable("secretmanager")
    secrets = f"/secretmanager/v1/{PARENT}/secrets"
    client.post(secrets, {"replication": {"automatic": {}}}, secretId="token")
    client.post(f"{secrets}/token:addVersion", {"payload": {"data": "c2VjcmV0"}})
    client.post("/storage/v1/b", {"name": "private-bucket", "location": "US-EAST4"}, project="bezel-local")
    upload = client.http.post("/upload/storage/v1/b/private-bucket/o?uploadType=media&name=a/b", content=b"x")
    assert upload.status_code == 200
    names = {path.name for path in endpoint.directory.iterdir()}
    assert {"cloud.db", "cloud.db-wal", "cloud.db-shm", "credentials.json", "issuer.pem", "logs"} <= names
    assert open_to_others(endpoint.directory) == []


def test_what_an_earlier_version_left_readable_is_closed(tmp_path):
    root = tmp_path / "cloud"
    root.mkdir(mode=0o755)
    for name in ("cloud.db", "cloud.db-wal"):
        (root / name).touch(mode=0o644)
    outside = tmp_path / "outside"
    outside.touch(mode=0o644)
    (root / "link").symlink_to(outside)
    Paths(root).create()
    assert open_to_others(root) == []
    assert stat.S_IMODE(outside.stat().st_mode) == 0o644


def test_a_database_is_made_for_its_owner_whatever_the_umask(tmp_path):
    mask = os.umask(0)
    try:
        store = Store(tmp_path / "cloud.db")
        store.put_payload("secret", b"value")
    finally:
        os.umask(mask)
    assert [stat.S_IMODE(file.stat().st_mode) for file in tmp_path.glob("cloud.db*")] == [0o600] * 3
    store.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="takes root to give a directory to another user")
def test_a_directory_of_another_user_is_refused(tmp_path):
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    os.chown(theirs, 65534, 65534)
    with pytest.raises(DirectoryError, match="belongs to the user with id 65534"):
        launch(theirs, [sys.executable])
    command = [sys.executable, "-m", "bezel_localcloud", str(theirs)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, "Traceback" in done.stderr) == (3, False)
    assert list(theirs.iterdir()) == []


@pytest.mark.parametrize("kept", [None, "# a user's own\n"])
def test_git_offers_no_key_of_a_folder_in_a_repository(tmp_path, kept):
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True, timeout=60)
    layout = Paths(tmp_path / ".localcloud")
    if kept:
        layout.root.mkdir(mode=0o700)
        (layout.root / ".gitignore").write_text(kept)
    layout.create()
    layout.issuer_key.write_text("key")
    listed = subprocess.run(
        ["git", "-C", tmp_path, "status", "--porcelain"], check=True, timeout=60, capture_output=True, text=True
    ).stdout
    assert (listed == "") is (kept is None)
    assert (layout.root / ".gitignore").read_text().startswith(kept or "# Keys")
