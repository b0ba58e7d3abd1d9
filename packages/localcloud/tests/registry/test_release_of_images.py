"""The vLLM release that localcloud simulates in place of an image, and the images that name none."""

import json

import pytest

from bezel_localcloud.services.artifact_registry.images import upstream_image, upstream_manifest
from bezel_localcloud.services.artifact_registry.releases import release_of
from bezel_localcloud.services.cloud_run.runtime.container_command import container_command, simulated_server
from bezel_localcloud.services.cloud_run.spec import revision_spec
from localcloud_support.registry_harness import APP, CONFIG, HOST, LAYER, MANIFEST

IMAGE = f"{HOST}/bezel-local/tools/app"
HUB = f"{HOST}/bezel-local/hub/vllm/vllm-openai"
DIGESTS = {tag: upstream_manifest("docker.io", "vllm/vllm-openai", tag).digest for tag in ("v0.32.0", "v0.33.0")}


def push(registry, tag, layers):
    """Push an image with these layers and return its digest."""
    parts = [(CONFIG, b"{}"), *((LAYER, layer) for layer in layers)]
    config, *rows = ({"mediaType": kind, "digest": registry.blob(data), "size": len(data)} for kind, data in parts)
    body = {"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": rows}
    answer = registry.send("PUT", f"{APP}/manifests/{tag}", json.dumps(body).encode(), content_type=MANIFEST)
    assert answer.status_code == 201, answer.text
    return answer.headers["docker-content-digest"]


def base_layer(tag):
    """The layer of an upstream image on which a user builds another."""
    image = upstream_image("docker.io", "vllm/vllm-openai")
    child = image.manifests[image.tags[tag].children[0]["digest"]]
    return image.blobs[child.body["layers"][0]["digest"]]


@pytest.mark.parametrize(
    ("image", "release"),
    [
        ("vllm/vllm-openai:v0.33.0", "0.33.0"),
        ("docker.io/vllm/vllm-tpu:v0.32.0", "0.32.0"),
        (f"{HUB}:v0.33.0", "0.33.0"),
        (f"{HUB}@{DIGESTS['v0.33.0']}", "0.33.0"),
        (f"docker.io/vllm/vllm-openai@{DIGESTS['v0.32.0']}", "0.32.0"),
        ("vllm/vllm-openai:v0.34.0rc1", "0.34.0rc1"),
        ("vllm/vllm-openai:v0.33.0-cu130", "0.33.0"),
        ("vllm/vllm-openai:latest", ""),
        ("vllm/vllm-openai@sha256:" + "0" * 64, ""),
        ("no reference", ""),
        (f"{IMAGE}:1", ""),
    ],
)
def test_release_follows_from_tag_or_digest(registry, image, release):
    assert release_of(registry.cloud, image) == release


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tag", "base", "release"), [("1", "v0.33.0", "0.33.0"), ("v0.34.0", "", "0.34.0"), ("1", "", "")]
)
def test_release_of_a_pushed_image_follows_from_its_base_or_its_tag(registry, tag, base, release):
    digest = push(registry, tag, [*([base_layer(base)] if base else []), b"another layer"])
    assert release_of(registry.cloud, f"{IMAGE}:{tag}") == release_of(registry.cloud, f"{IMAGE}@{digest}") == release


@pytest.mark.parametrize(("tag", "release", "notes"), [("v0.33.0", "0.33.0", 0), ("latest", None, 1)])
def test_simulated_server_gets_the_release_of_its_image(registry, tag, release, notes):
    spec = revision_spec({"containers": [{"image": f"vllm/vllm-openai:{tag}"}]}, {})
    command = container_command(registry.cloud, simulated_server, spec, "/s/1:8080", 1.0, {})
    assert command.environment.get("LOCALCLOUD_RELEASE") == release
    assert len(command.notes) == notes
