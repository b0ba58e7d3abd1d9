"""Unmodified clients on `bezel local serve`, with nothing but its variables and addresses."""

import os
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
def served(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    (home / "seed" / "seeded-bucket").mkdir(parents=True)
    (home / "seed" / "seeded-bucket" / "greeting.txt").write_text("hello")
    served = Served(home, "--dir", "cloud", "--enable", "secretmanager", "--seed", "seed")
    yield served
    served.end()


def run(served, *command, **variables):
    ran = subprocess.run(
        [str(word) for word in command],
        cwd=served.home,
        env=served.variables | served.told["environment"] | variables,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_the_worked_example_runs_as_it_is_shown(served):
    text = after(ROOT / "docs" / "localcloud.md", "run by tests/clients/test_serve.py")
    assert "http://127.0.0.1:8085/" in text
    program = text.replace("http://127.0.0.1:8085", served.told["base"])
    assert run(served, environment.python("google"), "-c", program) == "hello\n"


def test_a_storage_client_needs_no_option_at_all(served):
    assert run(served, environment.python("storage"), "-c", STORAGE) == "bezel-local hello\n"


def test_gcloud_works_with_the_variables_and_leaves_the_users_own_configuration_alone(served):
    if shutil.which("gcloud") is None:
        pytest.skip("gcloud is not on PATH")
    own = {"PATH": os.environ["PATH"], "CLOUDSDK_CORE_DISABLE_PROMPTS": "1"}
    run(served, "gcloud", "secrets", "create", "by-gcloud", "--replication-policy=automatic", **own)
    assert run(served, "gcloud", "secrets", "list", "--format=value(name)", **own).split()[0] == "by-gcloud"
    assert run(served, "gcloud", "storage", "cat", "gs://seeded-bucket/greeting.txt", **own) == "hello"
    assert (served.home / "cloud" / "gcloud").is_dir()
    assert not (served.home / ".config").exists()
