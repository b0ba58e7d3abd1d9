"""A pipeline's surroundings: a localcloud with a port for clients without credentials, a bucket of states, a checkout.

`Pipeline.whole` checks out the program with its stacks, `Pipeline.small` a program of two resources whose values are
in its stack file. `environment` holds what a runner's job has; nothing of the forge.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from bezel.engine.local.place import PLUGINS
from bezel.engine.project.project import Project
from bezel.planner import make_plan
from bezel_localcloud import clients, control, seed
from bezel_localcloud.core.paths import PROJECT, Endpoint
from bezel_simulated_vllm import synthetic_weights
from localcloud_support.client import Client
from tests.support.e2e import warm_bezel, warm_localcloud, warm_python
from tests.support.e2e.rehearsal import SECONDS, SPEED, Rehearsal, Run

STATES = "states"
STACK = "dev"
BACKEND = f"gs://{STATES}"
SMALL = """
import pulumi
import pulumi_gcp as gcp

from bezel_base.run_facts import tell_fact

settings = pulumi.Config()
tell_fact("quota_use", "L4 in us-east4: 1 GPU used")
labels = {"owner": "ml", "environment": "dev", "expires-at": "never"}
labels |= pulumi.Config("bezel").get_object("labels") or {}
bucket = gcp.storage.Bucket("data", location="US", force_destroy=True, labels=labels)
notes = {
    name: gcp.storage.BucketObject(name, bucket=bucket.name, name=f"{name}.txt", content=content)
    for name, content in (settings.get_object("notes") or {}).items()
}
gcp.storage.BucketObject("hidden", bucket=bucket.name, name="hidden", content=pulumi.Output.secret("hush-hush"))
if gpu := settings.get("gpu"):
    container = {"image": "us-docker.pkg.dev/p/r/i", "resources": {"limits": {"cpu": "8", "nvidia.com/gpu": "1"}}}
    template = {"containers": [container], "node_selector": {"accelerator": gpu}, "scaling": {"max_instance_count": 1}}
    hashes = {name: note.md5hash for name, note in notes.items()}  # of a new note: unknown in a preview
    gcp.cloudrunv2.Service("service", location="us-east4", template=template, labels=labels, annotations=hashes)
if settings.get("fails"):
    raise RuntimeError("the program failed")
pulumi.export("bucket", bucket.name)
pulumi.export("smoke", {"verdict": {"ok": True, "checks": {"health": {"ok": True}}}, "figures": {}})
pulumi.export("simulated", True)
if price := settings.get("price"):
    pulumi.export("price", price)
"""
SETTINGS = {"config": {"bezel:environment": "dev", "small:notes": {"first": "one"}}}
_GIT = ("-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false")


@dataclass
class Pipeline:
    """One checkout, the cloud that it deploys to, and the bucket of its states."""

    folder: Path
    endpoint: Endpoint
    cloud: Client
    environment: dict[str, str]

    @classmethod
    def small(cls, folder: Path) -> "Pipeline":
        """A checkout of the small program, with the policy packs of this repository."""
        checkout = folder / "checkout"
        Rehearsal.new(checkout, folder / "cloud")
        for file in checkout.glob("Pulumi.*.yaml"):
            file.unlink()
        (checkout / "__main__.py").write_text(SMALL)
        runtime = {"name": "python", "options": {"toolchain": "uv", "virtualenv": ".venv"}}
        (checkout / "Pulumi.yaml").write_text(json.dumps({"name": "small", "runtime": runtime}))
        (checkout / f"Pulumi.{STACK}.yaml").write_text(yaml.safe_dump(SETTINGS))
        return cls._of(folder, checkout)

    @classmethod
    def whole(cls, folder: Path) -> "Pipeline":
        """A checkout of the program with all its stacks; the weights are not in the cloud yet."""
        checkout = folder / "checkout"
        Rehearsal.new(checkout, folder / "cloud")
        return cls._of(folder, checkout)

    @classmethod
    def _of(cls, folder: Path, checkout: Path) -> "Pipeline":
        directory = folder / "cloud"
        endpoint = warm_localcloud.start(directory, "--speed", SPEED, "--emulator")
        cloud = Client(endpoint)
        body = {"name": STATES, "location": "US", "versioning": {"enabled": True}}
        assert cloud.post("/storage/v1/b", body, project=PROJECT).status_code == 200
        environment = {
            **clients.environment(endpoint),
            # The engine's client takes no scheme here.
            "STORAGE_EMULATOR_HOST": endpoint.emulator.removeprefix("http://"),
            "HOME": str(folder),
            "PATH": f"{Path(sys.executable).parent}:{PLUGINS}:/usr/local/bin:/usr/bin:/bin",
            "BEZEL_PYTHON": sys.executable,
            "PULUMI_BACKEND_URL": BACKEND,
            "PULUMI_HOME": str(folder / "pulumi"),
            "PULUMI_CONFIG_PASSPHRASE": "not a secret",
            "PULUMI_SKIP_UPDATE_CHECK": "1",
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "1",
        }
        made = cls(checkout, endpoint, cloud, environment)
        made.git("init", "-q", "-b", "main")
        (checkout / ".gitignore").write_text(".venv/\n__pycache__/\n")
        made.commit("Begin")
        return made

    @property
    def warm_environment(self) -> dict[str, str]:
        """`environment`, and what the engine starts is forked from a process that has loaded the SDKs."""
        return self.environment | warm_python.variables(self.folder)

    def stop(self) -> None:
        """Stop the cloud."""
        control.stop(self.endpoint.directory)

    def git(self, *arguments: str) -> str:
        """Run git in the checkout; what it printed."""
        command = ["git", *_GIT, *arguments]
        ended = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=60, check=True)
        return ended.stdout.strip()

    def commit(self, message: str = "Change") -> str:
        """Commit everything; the new tree."""
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD^{tree}")

    def bezel(self, *arguments: str, **variables: str) -> Run:
        """Run `bezel ARGUMENTS` in the checkout, as a step of a job."""
        with tempfile.NamedTemporaryFile("r", prefix="said-") as output_file:
            environment = self.warm_environment | variables
            code = warm_bezel.run(arguments, self.folder, environment, Path(output_file.name), SECONDS)
            return Run(code, output_file.read())

    def report(self, *arguments: str, code: int = 0, **variables: str) -> dict[str, Any]:
        """Run `bezel ARGUMENTS`, which must end with this exit code; its report."""
        with tempfile.TemporaryDirectory(prefix="report-") as folder:
            out = Path(folder) / "report.json"
            run = self.bezel(*arguments, "--out", str(out), **variables)
            assert run.code == code, run.text
            report: dict[str, Any] = json.loads(out.read_text())
        return report

    def start(self, *arguments: str, **variables: str) -> "subprocess.Popen[str]":
        """Start `bezel ARGUMENTS` in a process of its own, without waiting for its end."""
        return subprocess.Popen(
            [str(Path(sys.executable).parent / "bezel"), *arguments],
            cwd=self.folder,
            env=self.environment | variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def set(self, key: str, value: object, stack: str = STACK) -> None:
        """Change one value of the stack file, `small:notes` for example; None removes it."""
        file = self.folder / f"Pulumi.{stack}.yaml"
        content = yaml.safe_load(file.read_text())
        if value is None:
            content["config"].pop(key, None)
        else:
            content["config"][key] = value
        file.write_text(yaml.safe_dump(content, sort_keys=False))

    def seed(self, *stacks: str, project: Project | None = None) -> None:
        """Make ready what a user has before the first deploy of a stack: the API of quotas, and the model's files.

        Args:
            stacks: Their names.
            project: The project that has them; None for the checkout.
        """
        seed.enable(self.endpoint, "cloudquotas.googleapis.com")
        for stack in stacks:
            settings = (project or Project(self.folder)).configuration(stack)
            plan = make_plan(settings, project=PROJECT, stack=stack, today=datetime.now(UTC).date())
            if plan.weights.bucket is not None and not plan.weights.create:
                files = synthetic_weights.model_files(plan.model)
                seed.seed(self.endpoint, plan.weights.bucket, plan.weights.path, files)

    def reset(self) -> None:
        """Commit the small program's first stack file."""
        (self.folder / f"Pulumi.{STACK}.yaml").write_text(yaml.safe_dump(SETTINGS))
        self.commit()

    def clear(self) -> None:
        """Delete the small program's buckets and all states, and commit its first stack file."""
        for bucket in self.buckets():
            self._delete_objects(bucket["name"])
            self.cloud.delete(f"/storage/v1/b/{bucket['name']}")
        self._delete_objects(STATES)
        self.reset()

    def _delete_objects(self, bucket: str) -> None:
        for name in self._names(bucket, ""):
            self.cloud.delete(f"/storage/v1/b/{bucket}/o/{name.replace('/', '%2F')}")

    def buckets(self) -> list[dict[str, Any]]:
        """Buckets that the small program made."""
        items = self.cloud.get("/storage/v1/b", project=PROJECT).json()["items"]
        return [item for item in items if item["name"].startswith("data-")]

    def objects(self, prefix: str = "") -> list[str]:
        """Names of the objects in the bucket of states."""
        return self._names(STATES, prefix)

    def _names(self, bucket: str, prefix: str) -> list[str]:
        answer = self.cloud.get(f"/storage/v1/b/{bucket}/o", prefix=prefix)
        return [item["name"] for item in answer.json().get("items", [])]

    def account(self, name: str, *grants: tuple[str, str]) -> dict[str, str]:
        """Variables that make a step another account, with these grants on the bucket: (role, prefix of objects).

        The engine sends no credentials to an emulator: with these it reads as everybody may, and writes nothing.
        """
        self.cloud.enable("iam", "iamcredentials")
        account = self.cloud.account(name)
        policy = self.cloud.get(f"/storage/v1/b/{STATES}/iam", optionsRequestedPolicyVersion=3).json()
        policy["version"] = 3
        policy.setdefault("bindings", []).append({"role": "roles/storage.objectViewer", "members": ["allUsers"]})
        for role, prefix in grants:
            binding: dict[str, Any] = {"role": role, "members": [f"serviceAccount:{account}"]}
            if prefix:
                start = f"projects/_/buckets/{STATES}/objects/{prefix}"
                binding["condition"] = {"title": prefix, "expression": f'resource.name.startsWith("{start}")'}
            policy["bindings"].append(binding)
        assert self.cloud.put(f"/storage/v1/b/{STATES}/iam", policy).status_code == 200
        path = f"/iamcredentials/v1/projects/-/serviceAccounts/{account}:generateAccessToken"
        answer = self.cloud.post(path, {"scope": ["https://www.googleapis.com/auth/cloud-platform"]})
        host = self.endpoint.base.removeprefix("http://")
        return {"GOOGLE_OAUTH_ACCESS_TOKEN": answer.json()["accessToken"], "STORAGE_EMULATOR_HOST": host}

    def put(self, name: str, content: Mapping[str, object]) -> None:
        """Write an object of the bucket as somebody who may."""
        params = {"uploadType": "media", "name": name}
        answer = self.cloud.http.post(f"/upload/storage/v1/b/{STATES}/o", params=params, json=content)
        assert answer.is_success, answer.text

    def read(self, name: str) -> Any:
        """The content of an object of the bucket."""
        quoted = name.replace("/", "%2F")
        return json.loads(self.cloud.http.get(f"/storage/v1/b/{STATES}/o/{quoted}", params={"alt": "media"}).content)

    def edit_state(self, edit: Callable[[dict[str, Any]], None]) -> None:
        """Change the stack's state by hand, as a run of the engine does: `edit` gets its newest snapshot."""
        name = next(name for name in self.objects(".pulumi/stacks/") if name.endswith(f"{STACK}.json"))
        content = self.read(name)
        edit(content["checkpoint"]["latest"])
        self.put(name, content)
