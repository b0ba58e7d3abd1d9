"""Unmodified clients on `bezel local serve`, with nothing but its variables and addresses."""

import shutil
import subprocess

import pytest

from tests.support.cli.served import Served
from tests.support.clients import environment
from tests.support.docs.markdown import ROOT, after

pytestmark = [pytest.mark.slow, pytest.mark.clients]
# google-cloud-storage finds address, project and credentials in the variables alone.
STORAGE = """
from google.cloud import storage
client = storage.Client()
blob = client.bucket("seeded-bucket").blob("greeting.txt")
print(client.project, blob.download_as_text())
"""


@pytest.fixture(scope="module")
def served_cloud(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    (home / "seed" / "seeded-bucket").mkdir(parents=True)
    (home / "seed" / "seeded-bucket" / "greeting.txt").write_text("hello")
    served = Served(home, "--dir", "cloud", "--enable", "secretmanager", "--seed", "seed", "--emulator")
    yield served
    served.end()


def run(served_cloud, *command, variables=None, status=0):
    ran = subprocess.run(
        [str(word) for word in command],
        cwd=served_cloud.home,
        env=served_cloud.variables | (served_cloud.report["environment"] if variables is None else variables),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == status, ran.stderr
    return ran.stdout if status == 0 else ran.stderr


def gcloud_options(served_cloud):
    return {"variables": served_cloud.report["environment"] | {"CLOUDSDK_CORE_DISABLE_PROMPTS": "1"}}


def test_the_worked_example_runs_as_it_is_shown(served_cloud):
    text = after(ROOT / "docs" / "localcloud.md", "run by tests/clients/test_serve.py")
    assert "http://127.0.0.1:8085/" in text
    program = text.replace("http://127.0.0.1:8085", served_cloud.report["base"])
    assert run(served_cloud, environment.python("google"), "-c", program) == "hello\n"


def test_a_storage_client_needs_no_option_with_credentials_or_emulator(served_cloud):
    own_variables = {
        name: value for name, value in served_cloud.report["environment"].items() if name != "STORAGE_EMULATOR_HOST"
    }
    none = {"GOOGLE_CLOUD_PROJECT": "bezel-local", "STORAGE_EMULATOR_HOST": served_cloud.report["emulator"]}
    for variables in (own_variables, none):
        python = environment.python("storage")
        assert run(served_cloud, python, "-c", STORAGE, variables=variables) == "bezel-local hello\n"
    # At the other port a client without credentials may read nothing.
    none["STORAGE_EMULATOR_HOST"] = served_cloud.report["base"]
    assert "Anonymous credentials cannot be refreshed" in run(
        served_cloud, environment.python("storage"), "-c", STORAGE, variables=none, status=1
    )


def test_gcloud_leaves_the_users_own_configuration_alone(served_cloud):
    if shutil.which("gcloud") is None:
        pytest.skip("gcloud is not on PATH")
    own_options = gcloud_options(served_cloud)
    assert run(served_cloud, "gcloud", "storage", "cat", "gs://seeded-bucket/greeting.txt", **own_options) == "hello"
    assert (served_cloud.home / "cloud" / "gcloud").is_dir()
    assert not (served_cloud.home / ".config").exists()


@pytest.mark.wide
def test_gcloud_creates_secrets_and_objects(served_cloud):
    if shutil.which("gcloud") is None:
        pytest.skip("gcloud is not on PATH")
    own_options = gcloud_options(served_cloud)
    run(served_cloud, "gcloud", "secrets", "create", "by-gcloud", "--replication-policy=automatic", **own_options)
    (served_cloud.home / "sent.txt").write_text("by gcloud")
    run(served_cloud, "gcloud", "storage", "cp", "sent.txt", "gs://seeded-bucket/sent.txt", **own_options)
    assert run(served_cloud, "gcloud", "storage", "cat", "gs://seeded-bucket/sent.txt", **own_options) == "by gcloud"
