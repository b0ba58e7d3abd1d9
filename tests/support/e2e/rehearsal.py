"""A checkout of the program and a localcloud, each in its own folder, and the `bezel` command run as a user would."""

import base64
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from bezel.engine.local.stack_copy import without_keys
from bezel_localcloud import control
from bezel_localcloud.core.paths import Endpoint
from tests.support.e2e import warm_bezel, warm_localcloud, warm_python
from tests.support.stack_files import change_stack_file

ROOT = Path(__file__).parents[3]
PROGRAM = ("__main__.py", "Pulumi.yaml", "components", "policies", "services", "stacks", "smoke")
SECONDS = 240
BUCKET = "bezel-local-models"
MODEL = "gemma-4-12B-it-qat-w4a16-ct"
SECRETS = "/secretmanager/v1/projects/bezel-local/secrets"
# Waits of the platform pass quickly; serving runs at the pace of the roofline.
SPEED = "2000"
COST_PACK, SECURITY_PACK = "policies/hardware_cost", "policies/security"
BOTH_PACKS = ("--policy-pack", COST_PACK, "--policy-pack", SECURITY_PACK)


@dataclass(frozen=True)
class Run:
    """How a command ended."""

    code: int
    text: str

    def changed_names(self, verb: str) -> set[str]:
        """The names of the resources that a preview (`update`) or a run (`updated`) shows as changed in place."""
        return set(re.findall(rf"^ ~ +\S+ (\S+) {verb}\b", self.text, re.MULTILINE))


@dataclass
class Rehearsal:
    """One checkout and the cloud that its commands use."""

    folder: Path
    cloud: Path
    warm: bool = True  # whether what the engine starts is forked from a process that has loaded the SDKs

    @classmethod
    def new(cls, folder: Path, cloud: Path) -> "Rehearsal":
        """Check the program out into `folder`."""
        folder.mkdir()
        for name in PROGRAM:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, folder / name)
        for file in ROOT.glob("Pulumi.*.yaml"):
            # A salt that pulumi wrote into the working tree belongs to another backend.
            (folder / file.name).write_text(without_keys(file.read_text()))
        warm_python.environment(folder / ".venv")
        return cls(folder, cloud)

    def bezel(self, *arguments: str, **variables: str) -> Run:
        """Run `bezel ARGUMENTS` in the checkout."""
        with tempfile.NamedTemporaryFile("r", prefix="said-") as output_file:
            warm = warm_python.variables(self.folder) if self.warm else {}
            code = warm_bezel.run(
                arguments, self.folder, os.environ | warm | variables, Path(output_file.name), SECONDS
            )
            return Run(code, output_file.read())

    def local(self, action: str, *arguments: str) -> Run:
        """Run `bezel local ACTION ARGUMENTS` against this rehearsal's cloud, which runs already where this is warm."""
        if self.warm and action in ("preview", "up") and not {"--project", "--server"} & {*arguments}:
            self.start_cloud()
        return self.bezel("local", action, "--dir", str(self.cloud), "--speed", SPEED, *arguments)

    def start_cloud(self) -> None:
        """Start this rehearsal's cloud unless it runs."""
        if not control.status(self.cloud):
            warm_localcloud.start(self.cloud, "--speed", SPEED)

    def stop_cloud(self) -> None:
        """Stop this rehearsal's cloud where it runs, as `bezel local stop` does."""
        control.stop(self.cloud)

    def start(self, action: str, *arguments: str) -> "subprocess.Popen[str]":
        """Start what `local` runs, without waiting for its end."""
        command = [
            str(Path(sys.executable).parent / "bezel"),
            "local",
            action,
            "--dir",
            str(self.cloud),
            "--speed",
            SPEED,
        ]
        return subprocess.Popen(
            [*command, *arguments],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def wait_for(self, process: "subprocess.Popen[str]", text: str) -> None:
        """Read what the process prints until a line holds `text`."""
        assert process.stdout is not None
        read = []
        for line in process.stdout:
            read.append(line)
            if text in line:
                return
        raise AssertionError(f"never printed {text!r}:\n{''.join(read)}")

    def kill_engine(self, process: "subprocess.Popen[str]", *, when: str) -> None:
        """Kill the engine, and nothing else, once a line holds the words `when`."""
        self.wait_for(process, when)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        (engine,) = [int(pid) for pid in children if Path(f"/proc/{pid}/comm").read_text().strip() == "pulumi"]
        os.kill(engine, signal.SIGKILL)
        process.communicate(timeout=SECONDS)

    def outputs(self, stack: str = "l4-qat") -> dict[str, Any]:
        """The stack's outputs."""
        run = self.local("outputs", stack)
        assert run.code == 0, run.text
        outputs: dict[str, Any] = json.loads(run.text)
        return outputs

    def variables(self) -> dict[str, str]:
        """What a user's shell takes over from `bezel local env`."""
        lines = [line for line in self.local("env").text.splitlines() if line.startswith("export ")]
        return dict(shlex.split(line)[1].split("=", 1) for line in lines)

    def set(self, path: str, value: object, stack: str = "l4-qat") -> None:
        """Change one value of the stack file: `set("vllm.max-num-seqs", 4)`; None removes it."""
        change_stack_file(self.folder / f"Pulumi.{stack}.yaml", path, value)

    def token(self, url: str) -> str:
        """An identity token for the service at `url`."""
        run = self.local("token", url)
        assert run.code == 0, run.text
        return run.text.strip()

    def api(self) -> httpx.Client:
        """A client for localcloud's Google APIs, with the deployer's token: what somebody else does by hand."""
        endpoint = self._endpoint()
        token = control.access_token(endpoint)
        return httpx.Client(base_url=endpoint.base, headers={"Authorization": f"Bearer {token}"}, timeout=30)

    def exists(self) -> dict[str, Any]:
        """Everything that exists in the cloud, by kind."""
        return control.inventory(self._endpoint())

    def _endpoint(self) -> Endpoint:
        endpoint = control.status(self.cloud)
        assert endpoint is not None
        return endpoint


def make_secret(api: httpx.Client, name: str) -> None:
    """Make a secret without a version, as a user does by hand."""
    service = "/serviceusage/v1/projects/bezel-local/services/secretmanager.googleapis.com:enable"
    assert api.post(service, json={}).is_success
    body = {"replication": {"automatic": {}}}
    assert api.post(SECRETS, params={"secretId": name}, json=body).is_success


def add_version(api: httpx.Client, name: str, value: str) -> None:
    """Give a secret its value."""
    body = {"payload": {"data": base64.b64encode(value.encode()).decode()}}
    assert api.post(f"{SECRETS}/{name}:addVersion", json=body).is_success


def break_model(rehearsal: Rehearsal) -> None:
    """Give the model in the bucket a context of 4096 tokens, so that vLLM refuses a longer one when it starts."""
    with rehearsal.api() as api:
        answer = api.get(f"/storage/v1/b/{BUCKET}/o/{MODEL}%2Fconfig.json", params={"alt": "media"})
        config = answer.json()
        config["text_config"]["max_position_embeddings"] = 4096
        query = {"uploadType": "media", "name": f"{MODEL}/config.json"}
        assert api.post(f"/upload/storage/v1/b/{BUCKET}/o", params=query, json=config).is_success
