"""The one look-up of the docker stand-in: a tag's digest, asked where containerd would ask a mirror."""

from collections.abc import Iterator

import pytest
from pulumi.runtime.proto import provider_pb2 as pb

from bezel_pulumi_offline.google.errors import ProviderError
from bezel_pulumi_offline.plugin.docker_plugin import DockerPlugin, Reference, parse_reference
from pulumi_offline_support.client import FailedError, Provider, ServedProvider, urn
from pulumi_offline_support.google import FakeGoogle

LOOK_UP = "docker:index/getRegistryImage:getRegistryImage"
DIGEST = "sha256:" + "a" * 64


@pytest.fixture
def docker(google: FakeGoogle, monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    monkeypatch.setenv("BEZEL_REGISTRY_ENDPOINT", google.base)
    google.things["/v2/vllm/vllm-openai/manifests/v1"] = {"digest": DIGEST}
    provider = ServedProvider(DockerPlugin())
    yield provider
    provider.close()


def test_the_digest_behind_a_tag(docker: Provider, google: FakeGoogle) -> None:
    image = docker.invoke(LOOK_UP, {"name": "docker.io/vllm/vllm-openai:v1"})
    assert image == {
        "id": DIGEST,
        "name": "docker.io/vllm/vllm-openai:v1",
        "sha256Digest": DIGEST,
        "insecureSkipVerify": False,
    }
    (request,) = google.requests
    assert (request.method, request.query) == ("HEAD", {"ns": "docker.io"})


def test_a_tag_that_is_not_there_is_named(docker: Provider) -> None:
    with pytest.raises(FailedError, match=r"docker\.io has no image vllm/vllm-openai:v2"):
        docker.invoke(LOOK_UP, {"name": "vllm/vllm-openai:v2"})


def test_a_registry_that_is_not_there_is_no_missing_image(docker: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BEZEL_REGISTRY_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(FailedError, match="make up"):
        docker.invoke(LOOK_UP, {"name": "vllm/vllm-openai:v1"})
    monkeypatch.delenv("BEZEL_REGISTRY_ENDPOINT")
    with pytest.raises(FailedError, match="BEZEL_REGISTRY_ENDPOINT is not set"):
        docker.invoke(LOOK_UP, {"name": "vllm/vllm-openai:v1"})


def test_everything_else_is_refused_by_name(docker: Provider) -> None:
    with pytest.raises(FailedError, match="docker:index/container:Container"):
        docker.call("Check", pb.CheckRequest(urn=urn("docker:index/container:Container")))
    with pytest.raises(FailedError, match="docker:index/getImage:getImage"):
        docker.invoke("docker:index/getImage:getImage", {})


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("alpine", ("docker.io", "library/alpine", "latest")),
        ("docker.io/vllm/vllm-openai:v0.32.0", ("docker.io", "vllm/vllm-openai", "v0.32.0")),
        ("localhost:5000/a/b:c", ("localhost:5000", "a/b", "c")),
        (f"ghcr.io/a/b:c@{DIGEST}", ("ghcr.io", "a/b", DIGEST)),
    ],
)
def test_a_reference_in_its_parts(name: str, parts: tuple[str, str, str]) -> None:
    assert parse_reference(name) == Reference(*parts)


@pytest.mark.parametrize("name", ["", "UPPER/case", "a b", "docker.io/"])
def test_what_is_no_reference_is_refused(name: str) -> None:
    with pytest.raises(ProviderError, match="not an image reference"):
        parse_reference(name)
