"""Images of the catalogue: real bytes, the same on every machine, that say what they are."""

import gzip
import io
import json
import tarfile

import pytest

from bezel_localcloud.core.files.blobs import digest_of
from bezel_localcloud.services.artifact_registry.images import upstream_image, upstream_manifest
from bezel_localcloud.services.artifact_registry.manifests import parse_manifest

NAMES = [("docker.io", name) for name in ("vllm/vllm-openai", "vllm/vllm-tpu", "library/haproxy", "library/python")]
NAMES.append(("localhost", "bezel-bench"))


@pytest.mark.parametrize(("host", "name"), NAMES)
def test_every_manifest_is_valid_and_every_part_of_it_is_there(host, name):
    image = upstream_image(host, name)
    for digest, manifest in image.manifests.items():
        parsed = parse_manifest(manifest.content, manifest.media_type)
        assert parsed.digest == digest == digest_of(manifest.content)
        for part in parsed.children:
            assert len(image.manifests[part["digest"]].content) == part["size"]
        for part in parsed.blobs:
            assert digest_of(image.blobs[part["digest"]]) == part["digest"]
            assert len(image.blobs[part["digest"]]) == part["size"]


def test_digests_do_not_depend_on_the_machine():
    assert upstream_manifest("docker.io", "vllm/vllm-openai", "v0.32.0").digest == (
        "sha256:7cdc9508c9ac7934664d674599ed59d9d8194cd06343a3bb7dd81a38014b799e"
    )


@pytest.mark.slow
def test_a_pull_gets_config_and_layer_over_the_protocol(registry):
    path = "/v2/vllm/vllm-openai"
    index = registry.send("GET", f"{path}/manifests/v0.32.0", token="").json()
    assert [row["platform"]["architecture"] for row in index["manifests"]] == ["amd64", "arm64"]
    manifest = registry.send("GET", f"{path}/manifests/{index['manifests'][0]['digest']}", token="").json()
    config = registry.send("GET", f"{path}/blobs/{manifest['config']['digest']}", token="").json()
    assert config["config"]["Entrypoint"] == ["vllm", "serve"]
    layer = registry.send("GET", f"{path}/blobs/{manifest['layers'][0]['digest']}", token="").content
    files = gzip.decompress(layer)
    assert config["rootfs"]["diff_ids"] == [digest_of(files)]
    with tarfile.open(fileobj=io.BytesIO(files)) as tar:
        text = tar.extractfile(tar.getnames()[0]).read().decode()
    assert text.startswith("docker.io/vllm/vllm-openai:v0.32.0 linux/amd64\nMade by localcloud")


def test_blobs_of_one_image_are_not_another_ones(registry):
    config = json.loads(upstream_manifest("docker.io", "vllm/vllm-tpu", "v0.32.0").content)["manifests"][0]["digest"]
    assert registry.send("GET", f"/v2/vllm/vllm-tpu/manifests/{config}", token="").status_code == 200
    assert registry.send("GET", f"/v2/vllm/vllm-openai/manifests/{config}", token="").status_code == 404
    assert registry.send("GET", "/v2/no/such/tags/list", token="").status_code == 404
