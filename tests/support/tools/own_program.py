"""A Pulumi program of somebody else, whose own folders have the names of folders of this repository.

It runs with an environment of wheels on a localcloud that the environment starts. Nothing of this clone is on its
path; only the Pulumi CLI is the toolchain's.
"""

import base64
import json
import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.tools.fresh_environment import FreshEnvironment, without_this_clone

FOLDERS = ("bootstrap", "components", "docs", "packages", "policies", "providers", "smoke", "stacks", "tests", "tools")
SECONDS = 300
# Modules that this repository has had by the same names, without what they hold here.
_OWN_MODULES = ("components/providers/model_files.py", "smoke/health.py", "smoke/base.py")
_PROJECT = """name: shop
runtime: {{name: python, options: {{virtualenv: {environment}}}}}
plugins:
  providers:
    - {{name: pulumi-python, path: {packages}/bezel_components/dynamic_plugin}}
"""
_PROGRAM = """
import importlib

import pulumi

import bezel_components
from bezel_components.cloud_run_gpu_service import CloudRunGpuService, CloudRunGpuServiceArgs
from bezel_components.container_image import ContainerImage, ContainerImageArgs
from bezel_components.enabled_apis import EnabledApis, EnabledApisArgs
from bezel_components.model_files import ModelFiles, ModelFilesArgs
from bezel_components.runtime_identity import RuntimeIdentity, RuntimeIdentityArgs
from bezel_components.vllm_container import BucketMount, Probe, VllmContainer
from bezel_components.weights_bucket import WeightsBucket, WeightsBucketArgs
from bezel_smoke.health import HealthCheck, HealthCheckArgs
from components.providers.model_files import OWN

PLACE = {"project": "bezel-local", "location": "us-east4"}


def after(*resources):
    return pulumi.ResourceOptions(depends_on=list(resources))


apis = EnabledApis(
    "apis",
    EnabledApisArgs(
        project="bezel-local", services=tuple(f"{api}.googleapis.com" for api in ("run", "artifactregistry", "iam"))
    ),
)
identity = RuntimeIdentity(
    "runtime", RuntimeIdentityArgs(project="bezel-local", account_id="shop-runtime"), opts=after(apis)
)
weights = WeightsBucket(
    "weights", WeightsBucketArgs(**PLACE, bucket="shop-models", readers=(identity.email,)), opts=after(identity)
)
model = ModelFiles(
    "model",
    ModelFilesArgs(
        bucket_url=weights.url, bucket=weights.bucket, path="gemma", source="google/gemma-4-E2B-it"
    ),
)
image = ContainerImage(
    "image", ContainerImageArgs(**PLACE, repository_id="hub", image="vllm/vllm-openai", tag="v0.32.0"),
    opts=after(apis),
)
container = VllmContainer(
    arguments=("/mnt/models/gemma", "--served-model-name=gemma", "--max-model-len=4096"),
    cpu=4,
    memory_gib=16,
    startup_probe=Probe(path="/health", period_seconds=30, timeout_seconds=5, failure_threshold=50),
    mounts=(BucketMount(bucket="shop-models", path="/mnt/models"),),
)
service = CloudRunGpuService(
    "service",
    CloudRunGpuServiceArgs(
        **PLACE, service="chat", container=container, image=image.reference, accelerator="nvidia-l4",
        service_account=identity.email, max_instances=1, request_concurrency=16, invokers=(), deletion_protection=False,
    ),
    opts=after(identity, weights, image, model),
)
HealthCheck(
    "health",
    HealthCheckArgs(
        service=service.resource_name, url=service.url, revision=service.created_revision, served_model="gemma",
        resources=[],
    ),
    opts=after(service),
)
folders = pulumi.Config().require_object("folders")
pulumi.export("own", [importlib.import_module(f"{folder}.own").NAME for folder in folders])
pulumi.export("module", OWN)
pulumi.export("components", bezel_components.__file__)
"""
_SEED = """
import sys
from pathlib import Path
from bezel_localcloud import seed
from bezel_localcloud.core.paths import Endpoint
from bezel_simulated_vllm.synthetic_weights import model_files
seed.seed(Endpoint.read(Path(sys.argv[1])), "shop-models", "gemma", model_files("google/gemma-4-E2B-it"))
"""
_RUN = """
import sys
from pathlib import Path
from bezel.engine.local.engine import LocalEngine
from bezel.engine.project.project import Project
from bezel_localcloud import control
from bezel_localcloud.core.paths import Endpoint
folder = Path(sys.argv[1])
engine = LocalEngine(Project(Path.cwd()), folder, control.environment(Endpoint.read(folder)))
engine.prepare("dev")
sys.exit(engine.run(sys.argv[2], "dev", sys.argv[3:]).end.code)
"""


@dataclass(frozen=True)
class OwnProgram:
    """The program's folder, its environment, and the folder of its cloud."""

    folder: Path
    environment: FreshEnvironment
    cloud: Path

    @classmethod
    def make(cls, folder: Path, environment: FreshEnvironment) -> "OwnProgram":
        """Write the program; its environment gets the toolchain's Pulumi CLI."""
        program, cloud = folder / "shop", folder / "cloud"
        for name in FOLDERS:
            (program / name).mkdir(parents=True)
            (program / name / "own.py").write_text(f"NAME = {name!r}\n")
        for name in _OWN_MODULES:
            (program / name).parent.mkdir(exist_ok=True)
            (program / name).write_text("OWN = 'of the shop'\n")
        project = _PROJECT.format(environment=environment.folder, packages=environment.packages)
        (program / "Pulumi.yaml").write_text(project)
        (program / "Pulumi.dev.yaml").write_text(f"config:\n  shop:folders: {json.dumps(FOLDERS)}\n")
        (program / "__main__.py").write_text(_PROGRAM)
        environment.add_pulumi()
        return cls(program, environment, cloud)

    def start(self) -> None:
        """Start the cloud, with a model in a bucket."""
        self._run_python(*self._bezel, "local", "start", "--dir", str(self.cloud))
        self._run_python("-c", _SEED, str(self.cloud))

    def stop(self) -> None:
        """Stop the cloud."""
        self._python(*self._bezel, "local", "stop", "--dir", str(self.cloud))

    def engine(self, command: str, *options: str) -> subprocess.CompletedProcess[str]:
        """Run the engine on the program's stack."""
        return self._python("-c", _RUN, str(self.cloud), command, "--non-interactive", *options)

    def inventory(self) -> dict[str, Any]:
        """What the cloud has."""
        text = "import json, sys; from pathlib import Path; from bezel_localcloud import control"
        text += "; from bezel_localcloud.core.paths import Endpoint"
        text += "; print(json.dumps(control.inventory(Endpoint.read(Path(sys.argv[1])))))"
        contents: dict[str, Any] = json.loads(self._run_python("-c", text, str(self.cloud)))
        return contents

    def outputs(self) -> dict[str, Any]:
        """The stack's outputs."""
        stack = next(
            each for each in self._state()["checkpoint"]["latest"]["resources"] if each["type"] == "pulumi:pulumi:Stack"
        )
        return dict(stack["outputs"])

    def rename_providers(self, rename: Callable[[str], str]) -> int:
        """Change the modules that pickled providers in the state are named by; return how many were changed."""
        state, changed = self._state(), 0
        for resource in state["checkpoint"]["latest"]["resources"]:
            for part in ("inputs", "outputs"):
                entries = resource.get(part, {})
                if "__provider" in entries:
                    renamed = renamed_pickle(entries["__provider"], rename)
                    changed += renamed != entries["__provider"]
                    entries["__provider"] = renamed
        self.state_file.write_text(json.dumps(state))
        return changed

    @property
    def _bezel(self) -> tuple[str]:
        return (str(self.environment.folder / "bin" / "bezel"),)

    @property
    def state_file(self) -> Path:
        """The stack's state."""
        return self.cloud / "state" / ".pulumi" / "stacks" / "shop" / "dev.json"

    def _state(self) -> dict[str, Any]:
        state: dict[str, Any] = json.loads(self.state_file.read_text())
        return state

    def _run_python(self, *arguments: str) -> str:
        ended = self._python(*arguments)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    def _python(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        # -P: the folder of the program has names of the standard library's kind.
        command = [str(self.environment.python), "-P", *arguments]
        variables = without_this_clone(os.environ)
        return subprocess.run(
            command, cwd=self.folder, env=variables, capture_output=True, text=True, timeout=SECONDS, check=False
        )


def renamed_pickle(stored: str, rename: Callable[[str], str]) -> str:
    """A pickle of a provider, as states hold it, with another name of its module.

    The SDK writes protocol 4: after its header of two bytes a frame (a byte and eight of its length), then the module's
    name as a short text, with a byte and one of its length.
    """
    content = base64.b64decode(stored)
    length = content[12]
    module, rest = content[13 : 13 + length].decode(), content[13 + length :]
    name = rename(module).encode()
    body = b"\x8c" + bytes([len(name)]) + name + rest
    return base64.b64encode(content[:3] + len(body).to_bytes(8, "little") + body).decode()
