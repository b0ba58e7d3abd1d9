"""The examples in the components' own texts run as they stand, in a program that has nothing else of Bezel's."""

import importlib
import pkgutil
import re
from collections.abc import Iterator
from textwrap import dedent
from typing import Any

import pulumi
import pytest

import bezel_components
from tests.support.components.fake_cloud_run import running
from tests.support.components.fake_engine import declare

BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)
# What the examples build on, in the order in which a program would make it.
ORDER = (
    "enabled_apis",
    "runtime_identity",
    "weights_bucket",
    "model_files",
    "container_image",
    "vllm_container",
    "metrics.sidecar",
    "metrics.configuration",
    "cloud_run_gpu_service",
    "scaling_schedule",
    "traffic_switch",
    "node_network",
    "tpu_lease",
    "scheduling_identity",
    "lease_hours",
    "identity_gateway",
    "global_address",
    "door.key_door",
)


@pytest.fixture(autouse=True)
def _cloud_run(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Cloud Run without a service."""
    with running(monkeypatch):
        yield


def examples(module: str) -> list[str]:
    text = importlib.import_module(f"bezel_components.{module}").__doc__ or ""
    return [dedent(block) for block in BLOCK.findall(text)]


def run(modules: tuple[str, ...]) -> Any:
    def program() -> None:
        names: dict[str, Any] = {"pulumi": pulumi}
        for module in modules:
            names |= vars(importlib.import_module(f"bezel_components.{module}"))
            for example in examples(module):
                exec(example.replace("sha256:…", "sha256:" + "0" * 64), names)  # noqa: S102

    return declare(program)


@pytest.mark.slow
def test_all_examples_make_one_program() -> None:
    declared = run(ORDER)
    assert declared.by_name("service-service").inputs["name"] == "chat"
    assert declared.waits_for(declared.by_name("service-service"), declared.by_name("runtime-account"))
    assert declared.waits_for(declared.by_name("lease-node"), declared.by_name("nodes-network"))


@pytest.mark.parametrize(
    "module",
    [
        "enabled_apis",
        "runtime_identity",
        "container_image",
        "vllm_container",
        "node_network",
        "global_address",
        "door.key_door",
    ],
)
def test_a_component_that_needs_no_other_stands_alone(module: str) -> None:
    run((module,))


def test_every_component_has_an_example_and_only_helpers_have_none() -> None:
    with_example = {module.name for module in pkgutil.iter_modules(bezel_components.__path__) if examples(module.name)}
    assert with_example == {module for module in ORDER if "." not in module}
    assert not examples("base.arguments")
