"""The example of each component is deployed on the cloud by a program that has it and what it builds on, no more."""

from __future__ import annotations

import re
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest

from tests.support.e2e.program import Program
from tests.support.e2e.rehearsal import ROOT, add_version, make_secret

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.e2e.rehearsal import Rehearsal

COMPONENTS = ROOT / "components" / "bezel_components"
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)
DIGEST = "sha256:" + "0" * 64
PROJECT = "bezel-local"
BUCKET = f"{PROJECT}-examples"
SERVICE_NEEDS = ("runtime_identity", "weights_bucket", "model_files", "container_image", "vllm_container")
APIS = ("artifactregistry", "cloudscheduler", "compute", "iam", "run", "secretmanager", "storage", "tpu")
ENABLES_APIS = f"""
from bezel_components.enabled_apis import EnabledApis, EnabledApisArgs

services = tuple(f"{{api}}.googleapis.com" for api in {APIS})
EnabledApis("all", EnabledApisArgs(project="{PROJECT}", services=services))
"""
# Component -> those whose examples it builds on, in their order.
EXAMPLES: dict[str, tuple[str, ...]] = {
    "enabled_apis": (),
    "node_network": (),
    "runtime_identity": (),
    "scheduling_identity": ("runtime_identity",),
    "container_image": (),
    "weights_bucket": ("runtime_identity",),
    "model_files": ("runtime_identity", "weights_bucket"),
    "cloud_run_gpu_service": SERVICE_NEEDS,
    "traffic_switch": (*SERVICE_NEEDS, "cloud_run_gpu_service"),
    "scaling_schedule": (*SERVICE_NEEDS, "cloud_run_gpu_service"),
}


def example(module: str) -> str:
    """The example of a component with the names of this cloud, and the imports that its text leaves out."""
    source = (COMPONENTS / f"{module}.py").read_text(encoding="utf-8")
    text = "\n".join(dedent(block) for block in BLOCK.findall(source))
    text = text.replace("acme-llm-models", BUCKET).replace("acme-llm", PROJECT).replace("sha256:…", DIGEST)
    return f"from bezel_components.{module} import *\n{text}"


def program_of(module: str) -> str:
    """A program of a component's example and those that it builds on."""
    return "\n".join(["import pulumi", *map(example, (*EXAMPLES[module], module))])


@pytest.mark.wide
@pytest.mark.timeout(900)
def test_example_of_each_component_is_deployed(rehearsal: Rehearsal, tmp_path: Path) -> None:
    assert rehearsal.local("start").code == 0
    with rehearsal.api() as api:
        make_secret(api, "hf-token")
        add_version(api, "hf-token", "a value")
    shop = Program.make(tmp_path / "shop", rehearsal, ENABLES_APIS)
    assert shop.engine("up", "--yes", "--skip-preview").code == 0  # they stay enabled
    for module in EXAMPLES:
        shop.write(program_of(module))
        if module == "model_files":  # its bucket is there, from the example before
            for folder in ("gemma", "gemma-4-12b-it"):
                shop.put_model(BUCKET, folder, "google/gemma-4-E2B-it")
        made = shop.engine("up", "--yes", "--skip-preview")
        assert made.code == 0, f"{module}:\n{made.text}"
    unchanged = shop.engine("preview", "--expect-no-changes")
    assert unchanged.code == 0, unchanged.text
