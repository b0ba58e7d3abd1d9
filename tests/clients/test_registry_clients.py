"""Registry clients, unmodified, and the OCI conformance suite, on localcloud's Artifact Registry."""

import subprocess
import sys
from urllib.parse import urlsplit

import pytest

from localcloud_support.client import PARENT, REGION
from tests.support.clients import environment, programs

pytestmark = [pytest.mark.slow, pytest.mark.clients]
REPOSITORIES = f"/artifactregistry/v1/{PARENT}/locations/{REGION}/repositories"
CONFORMANCE = f"{REGION}-docker.pkg.dev/bezel-local/conformance"
ABOUT = (
    "crane and oras (built from their Go modules), skopeo and podman (Debian's packages) and the suite of the OCI "
    "distribution spec push to, pull from and delete in a repository of Artifact Registry on localcloud, each command "
    "or test case counted as a call. A refusal that Artifact Registry gives too counts as passed where the client "
    "reports it."
)


@pytest.fixture(scope="module")
def registry(cloud, endpoint):
    """HOST:PORT of a registry with three repositories, and an access token."""
    frozen = {"dockerConfig": {"immutableTags": True}}
    for name, more in {"tools": {}, "conformance": {}, "frozen": frozen}.items():
        body = {"format": "DOCKER"} | more
        cloud.finish("artifactregistry/v1", cloud.post(REPOSITORIES, body, repository_id=name))
    return urlsplit(endpoint.base).netloc, cloud.http.headers["Authorization"].removeprefix("Bearer ")


def program_of(name):
    """(path of a tool, its variables)."""
    if name not in {"skopeo", "podman"}:
        return environment.go_tool(name), {}
    folder = environment.debian(name) / "usr"
    return folder / "bin" / name, {"LD_LIBRARY_PATH": ":".join(map(str, folder.glob("lib/*-linux-gnu")))}


def check(calls):
    programs.assert_served(calls)
    table = programs.table(
        "Clients of the registry", 74, ABOUT, "", calls, command="make clients", checked="make clients"
    )
    programs.check_part("clients-registry", table)


@pytest.mark.wide_except("crane")
@pytest.mark.parametrize("name", ["crane", "oras", "skopeo", "podman"])
def test_a_registry_tool_works_unmodified(registry, endpoint, variables, tmp_path, name):
    host, token = registry
    tool, more = program_of(name)
    command = [sys.executable, programs.PROGRAMS / "registry_tools.py", tool, host, endpoint.credentials, tmp_path]
    check(programs.run(command, variables | more | {"REGISTRY_TOKEN": token}))


@pytest.mark.wide
def test_the_conformance_suite_passes(registry, cloud, variables, tmp_path):
    host, token = registry
    settings = {
        "OCI_REGISTRY": host,
        "OCI_TLS": "disabled",
        "OCI_VERSION": "1.1",
        "OCI_REPO1": f"{CONFORMANCE}/one/deep",
        "OCI_REPO2": f"{CONFORMANCE}/two",
        "OCI_USERNAME": "oauth2accesstoken",
        "OCI_PASSWORD": token,
        "OCI_API_BLOBS_DIGEST_HEADER": "true",
        "OCI_API_MANIFESTS_DIGEST_HEADER": "true",
        "OCI_API_BLOBS_UPLOAD_CANCEL": "true",
    }
    suite = environment.go_tool("conformance")
    program = programs.PROGRAMS / "oci_conformance.py"
    check(programs.run([sys.executable, program, suite, tmp_path], variables | settings))
    assert cloud.get(f"{REPOSITORIES}/conformance/files").json() == {}


def test_a_tool_with_a_wrong_token_pulls_only_what_is_public(registry, variables, tmp_path):
    """The negative twin: the same tool without a valid token."""
    host, _ = registry
    tool, _ = program_of("crane")
    login = [tool, "auth", "login", host, "-u", "oauth2accesstoken", "--password-stdin"]
    own_variables = variables | {"HOME": str(tmp_path)}
    subprocess.run(login, input="wrong", env=own_variables, text=True, capture_output=True, timeout=60, check=False)
    command = [tool, "catalog", host]
    ended = subprocess.run(command, env=own_variables, text=True, capture_output=True, timeout=60, check=False)
    assert ended.returncode != 0
    assert "UNAUTHORIZED" in ended.stderr or "401" in ended.stderr
