"""Pulumi CLI that the toolchain builds: what it has, and its errors for what its build leaves out."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bezel.engine.run.command import pulumi_cli

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif("-built-" not in Path(pulumi_cli()).read_text(errors="replace"), reason="another CLI is used"),
]
LEFT_OUT = "this Pulumi CLI was built for Google Cloud, without"
RELEASE = "https://www.pulumi.com/docs/install/"
KEY = "projects/p/locations/l/keyRings/r/cryptoKeys/k"


@pytest.fixture
def pulumi(tmp_path: Path) -> Callable[..., tuple[int, str]]:
    """A function that runs the CLI on a small project with states in a folder: exit code and output."""
    project, states = tmp_path / "project", tmp_path / "states"
    project.mkdir()
    states.mkdir()
    (project / "Pulumi.yaml").write_text(json.dumps({"name": "small", "runtime": "python"}))
    credentials = tmp_path / "credentials.json"
    user = {"type": "authorized_user", "client_id": "c", "client_secret": "s", "refresh_token": "t"}
    credentials.write_text(json.dumps(user))
    variables = {
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "HOME": str(tmp_path),
        "PULUMI_HOME": str(tmp_path / "home"),
        "PULUMI_BACKEND_URL": f"file://{states}",
        "PULUMI_CONFIG_PASSPHRASE": "x",
        "PULUMI_SKIP_UPDATE_CHECK": "1",
        "GOOGLE_APPLICATION_CREDENTIALS": str(credentials),
    }

    def run(*arguments: str, backend: str = "") -> tuple[int, str]:
        env = variables | ({"PULUMI_BACKEND_URL": backend} if backend else {})
        command = [pulumi_cli(), *arguments, "--non-interactive"]
        ended = subprocess.run(command, cwd=project, env=env, capture_output=True, text=True, timeout=60, check=False)
        return ended.returncode, ended.stdout + ended.stderr

    return run


@pytest.mark.wide_except("s3*")
@pytest.mark.parametrize("address", ["s3://states", "azblob://states", "postgres://states"])
def test_states_of_another_cloud_are_refused(pulumi, address):
    for arguments, backend in ((("login", address), ""), (("stack", "ls"), address)):
        code, text = pulumi(*arguments, backend=backend)
        assert code != 0
        assert f"{LEFT_OUT} state in {address.partition(':')[0]}://" in text
        assert RELEASE in text


def test_states_in_a_folder_are_taken(pulumi, tmp_path):
    assert pulumi("login", f"file://{tmp_path}/states")[0] == 0


def test_states_in_a_bucket_reach_its_driver(pulumi):
    code, text = pulumi("stack", "ls", backend="gs://states?unknown=1")
    assert code != 0
    assert "unknown" in text
    assert LEFT_OUT not in text


@pytest.mark.wide_except("awskms*")
@pytest.mark.parametrize("address", ["awskms://alias/k", "azurekeyvault://v.vault.azure.net/keys/k", "hashivault://k"])
def test_keys_of_another_cloud_are_refused(pulumi, address):
    code, text = pulumi("stack", "init", "dev", "--secrets-provider", address)
    assert code != 0
    assert f"{LEFT_OUT} secrets by {address.partition(':')[0]}://" in text
    assert RELEASE in text


def test_keys_of_google_cloud_reach_their_driver(pulumi):
    code, text = pulumi("stack", "init", "dev", "--secrets-provider", f"gcpkms://{KEY}?unknown=1")
    assert code != 0
    assert 'invalid query parameter "unknown"' in text
    assert LEFT_OUT not in text


def test_a_passphrase_keeps_secrets(pulumi):
    assert pulumi("stack", "init", "dev", "--secrets-provider", "passphrase")[0] == 0
    assert pulumi("config", "set", "--secret", "key", "value", "--stack", "dev")[0] == 0
    code, text = pulumi("config", "get", "key", "--stack", "dev")
    assert (code, text) == (0, "value\n")


# The last two are as long as the first; only the lists of names and words tell that they are easy to guess.
@pytest.mark.wide_except("*-True", "password*")
@pytest.mark.parametrize(
    ("value", "is_refused"),
    [("rV7kqZ2mXw9pLs4T", True), ("elizabethmontgomery"[:16], False), ("passwordpassword", False)],
)
def test_a_value_that_looks_like_a_secret_is_refused(pulumi, value, is_refused):
    assert pulumi("stack", "init", "dev")[0] == 0
    code, text = pulumi("config", "set", "password", value, "--stack", "dev")
    assert ("looks like a secret" in text, code != 0) == (is_refused, is_refused)


@pytest.mark.wide_except("neo")
@pytest.mark.parametrize("command", ["neo", "api", "env setup"])
def test_a_command_that_is_left_out_says_so(pulumi, command):
    code, text = pulumi(*command.split(), "--help")
    assert code != 0
    assert f"{LEFT_OUT} `pulumi {command}`" in text
    assert RELEASE in text


@pytest.mark.wide_except("import", "policy", "plugin")  # the runs of the engine use the others
@pytest.mark.parametrize(
    "command",
    ["up", "preview", "destroy", "refresh", "import", "state", "config", "policy", "plugin", "package", "env", "org"],
)
def test_every_other_command_is_there(pulumi, command):
    code, text = pulumi(command, "--help")
    assert code == 0
    assert f"pulumi {command}" in text
    assert LEFT_OUT not in text
