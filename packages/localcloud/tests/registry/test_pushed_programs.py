"""The program that localcloud starts in place of a pushed image: what its config, or the container's command, says."""

import json
from types import SimpleNamespace

import pytest

from bezel_localcloud.core.errors import ApiError
from bezel_localcloud.core.paths import RUN_AGENT
from bezel_localcloud.services.artifact_registry.images import parse_reference
from bezel_localcloud.services.artifact_registry.registry import find_image
from bezel_localcloud.services.cloud_run.failures import RevisionFailureError
from bezel_localcloud.services.cloud_run.runtime.container_command import Command, container_command
from localcloud_support.registry_harness import APP, CONFIG, HOST, LAYER, MANIFEST

IMAGE = f"{HOST}/bezel-local/tools/app"
WORKER = ("bezel", "bench", "worker")


@pytest.fixture(autouse=True)
def bezel_on_path(tmp_path, monkeypatch):
    """An executable `bezel`, which another distribution installs: these tests find it and do not run it."""
    program = tmp_path / "bin" / "bezel"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")


def push(registry, config, kind=CONFIG):
    content = json.dumps({"config": config}).encode()
    parts = {"config": (kind, content), "layers": (LAYER, b"layer")}
    descriptors = {
        name: {"mediaType": media, "digest": registry.blob(data), "size": len(data)}
        for name, (media, data) in parts.items()
    }
    body = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": descriptors["config"],
        "layers": [descriptors["layers"]],
    }
    answer = registry.send("PUT", f"{APP}/manifests/1", json.dumps(body).encode(), content_type=MANIFEST)
    assert answer.status_code == 201, answer.text
    return answer.headers["docker-content-digest"]


def command_of(registry, image, command=(), args=()):
    """("vllm", its arguments), or the words of a program."""
    spec = SimpleNamespace(
        image=image, command=command, args=args, environment=(), mounts=(), secrets=(), service_account="a"
    )

    def launcher(container):
        return Command(("vllm", *container.args), {})

    return container_command(registry.cloud, launcher, spec, "/s/1:8080", 1.0, {}).argv


@pytest.mark.slow
@pytest.mark.parametrize("reference", ["1", "all", "digest"])
def test_a_pushed_image_runs_as_the_program_of_its_entrypoint(registry, reference):
    digest = push(registry, {"Entrypoint": ["/bezel/.venv/bin/bezel"]})
    registry.index(digest)
    image = f"{IMAGE}@{digest}" if reference == "digest" else f"{IMAGE}:{reference}"
    assert command_of(registry, image, WORKER) == WORKER
    with pytest.raises(RevisionFailureError, match="localcloud starts bezel by a command only"):
        command_of(registry, image)


@pytest.mark.parametrize("entrypoint", [["vllm", "serve"], ["python3", "-m", "vllm.entrypoints.openai.api_server"]])
def test_a_pushed_image_of_vllm_runs_as_one(registry, entrypoint):
    push(registry, {"Entrypoint": entrypoint, "Cmd": None})
    assert command_of(registry, f"{IMAGE}:1", args=("--model=x",)) == ("vllm", "--model=x")


@pytest.mark.slow
@pytest.mark.parametrize("config", [{"Entrypoint": ["python3", "app.py"]}, {"Cmd": ["sh"]}, {}, None, []])
def test_another_pushed_image_is_refused_by_its_command(registry, config):
    """Another pushed image is refused by its command instead of running as a vLLM."""
    push(registry, config)
    with pytest.raises(
        RevisionFailureError, match="localcloud starts bezel, haproxy, python and vllm in place of images"
    ):
        command_of(registry, f"{IMAGE}:1")
    assert command_of(registry, f"{IMAGE}:1", WORKER) == WORKER


def test_an_image_of_the_catalogue_runs_as_its_name_says(registry):
    assert command_of(registry, "localhost/bezel-bench:0.1.0", WORKER) == WORKER
    assert command_of(registry, "docker.io/vllm/vllm-openai:v0.32.0", args=("x",)) == ("vllm", "x")


def test_cloud_run_finds_a_pushed_image_and_no_other(registry):
    digest = push(registry, {})
    for reference in (f"{IMAGE}:1", f"{IMAGE}@{digest}"):
        assert find_image(registry.cloud, parse_reference(reference), RUN_AGENT).digest == digest
    for reference in (f"{IMAGE}:2", f"{HOST}/bezel-local/tools/bezel-bench:0.1.0", f"{HOST}/bezel-local/tools"):
        with pytest.raises(ApiError) as refused:
            find_image(registry.cloud, parse_reference(reference), RUN_AGENT)
        assert refused.value.code == "NOT_FOUND"
    with pytest.raises(ApiError) as refused:
        find_image(registry.cloud, parse_reference(f"{IMAGE}:1"), None)
    assert refused.value.code == "PERMISSION_DENIED"
