"""The example of each component is deployed on the cloud by a program that has it and what it builds on, no more."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from textwrap import dedent
from typing import TYPE_CHECKING
from urllib.parse import quote

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
LEASE_NEEDS = ("node_network", "runtime_identity", "weights_bucket")
APIS = (
    "artifactregistry",
    "certificatemanager",
    "cloudscheduler",
    "compute",
    "iam",
    "run",
    "secretmanager",
    "storage",
    "tpu",
)
ENABLES_APIS = f"""
from bezel_components.enabled_apis import EnabledApis, EnabledApisArgs

services = tuple(f"{{api}}.googleapis.com" for api in {APIS})
EnabledApis("all", EnabledApisArgs(project="{PROJECT}", services=services))
"""
# Component -> those whose examples it builds on, in their order.
EXAMPLES: dict[str, tuple[str, ...]] = {
    "enabled_apis": (),
    "global_address": (),
    "node_network": (),
    "identity_gateway": ("node_network",),
    "runtime_identity": (),
    "scheduling_identity": ("runtime_identity",),
    "container_image": (),
    "metrics.configuration": ("runtime_identity",),
    "weights_bucket": ("runtime_identity",),
    "model_files": ("runtime_identity", "weights_bucket"),
    "cloud_run_gpu_service": SERVICE_NEEDS,
    "door.key_door": (*SERVICE_NEEDS, "cloud_run_gpu_service"),
    "traffic_switch": (*SERVICE_NEEDS, "cloud_run_gpu_service"),
    "scaling_schedule": (*SERVICE_NEEDS, "cloud_run_gpu_service"),
    "tpu_lease": LEASE_NEEDS,
    "lease_hours": (*LEASE_NEEDS, "scheduling_identity", "tpu_lease"),
}
PROTECTED = ("identity_gateway", "door.key_door")  # no later example has them
VALUES = ("vllm_container", "metrics.sidecar")  # in what the examples of services hold
# A last argument of a service's example -> the same with the service open to deletion.
UNPROTECTED = {
    argument: f"{argument}, deletion_protection=False"
    for argument in ("request_concurrency=16", 'nodes=("10.64.0.5",)', 'servers={"us-east4": "chat"}')
}
# On the platform's fast clock their job returns the lease seconds after the deploy, while by this clock they go on.
HOURS = 'Window("0 8 * * 1-5", "0 18 * * 1-5", "Europe/Berlin")'


def hours_in_half_a_year() -> str:
    """Ten hours of one day of a year, which no clock reaches while this runs."""
    month = (datetime.now(UTC).month + 5) % 12 + 1
    return f'Window("0 8 1 {month} *", "0 18 1 {month} *", "Europe/Berlin")'


def example(module: str) -> str:
    """The example of a component with names and hours of this cloud, and the imports that its text leaves out."""
    source = (COMPONENTS / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8")
    text = "\n".join(dedent(block) for block in BLOCK.findall(source))
    text = text.replace("acme-llm-models", BUCKET).replace("acme-llm", PROJECT).replace("sha256:…", DIGEST)
    text = text.replace(HOURS, hours_in_half_a_year())
    return f"from bezel_components.{module} import *\n{text}"


def unprotected_example(module: str) -> str:
    """The same, of a service that may be deleted."""
    text = example(module)
    for argument, unprotected in UNPROTECTED.items():
        text = text.replace(argument, unprotected)
    return text


def program_of(module: str) -> str:
    """A program of a component's example as it stands, and of those that it builds on, which may be deleted."""
    return "\n".join(["import pulumi", *map(unprotected_example, EXAMPLES[module]), example(module)])


@pytest.fixture
def shop(rehearsal: Rehearsal, tmp_path: Path) -> Program:
    """A program on a cloud with a secret and all APIs, which stay enabled."""
    rehearsal.start_cloud()
    with rehearsal.api() as api:
        make_secret(api, "hf-token")
        add_version(api, "hf-token", "a value")
    made = Program.make(tmp_path / "shop", rehearsal, ENABLES_APIS)
    assert made.engine("up", "--yes", "--skip-preview").code == 0
    return made


def deploy(shop: Program, module: str, text: str) -> None:
    """Deploy a program: what it no longer has is deleted."""
    shop.write(text)
    run = shop.engine("up", "--yes", "--skip-preview")
    assert run.code == 0, f"{module}:\n{run.text}"


def empty_bucket(rehearsal: Rehearsal) -> None:
    """Delete the objects of the bucket, which is protected by them."""
    with rehearsal.api() as api:
        for item in api.get(f"/storage/v1/b/{BUCKET}/o").json()["items"]:
            assert api.delete(f"/storage/v1/b/{BUCKET}/o/{quote(item['name'], safe='')}").is_success


@pytest.mark.wide
@pytest.mark.timeout(900)
def test_example_of_each_component_is_deployed(rehearsal: Rehearsal, shop: Program) -> None:
    for module, earlier in EXAMPLES.items():
        if module == "model_files":  # its bucket is there, from the example before
            for folder in ("gemma", "gemma-4-12b-it"):
                shop.put_model(BUCKET, folder, "google/gemma-4-E2B-it")
        deploy(shop, module, program_of(module))
        unchanged = shop.engine("preview", "--expect-no-changes")
        assert unchanged.code == 0, f"{module}:\n{unchanged.text}"
        if module in PROTECTED:
            unprotected = (unprotected_example(each) for each in (*earlier, module))
            deploy(shop, module, "\n".join(["import pulumi", *unprotected]))
    empty_bucket(rehearsal)
    destroyed = shop.engine("destroy", "--yes", "--skip-preview")
    assert destroyed.code == 0, destroyed.text
    assert rehearsal.exists().keys() == {"secrets", "secretVersions", "enabledApis"}


def test_every_component_with_an_example_is_deployed() -> None:
    files = [file for file in COMPONENTS.rglob("*.py") if file.parent.name != "observability"]
    modules = {
        ".".join(file.relative_to(COMPONENTS).with_suffix("").parts)
        for file in files
        if BLOCK.search(file.read_text(encoding="utf-8"))
    }
    assert modules == {*EXAMPLES, *VALUES}
    assert HOURS in (COMPONENTS / "lease_hours.py").read_text(encoding="utf-8")
