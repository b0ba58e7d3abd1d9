"""The subcommands of `bezel local`: localcloud started, weights put in, the engine run, the result printed.

Leaves out the engine's environment (`bezel.ops.engine`) and the text of the summary (`bezel.ops.summary`).
"""

import json
import os
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bezel.localcloud import control, made_up, seed
from bezel.localcloud.layout import Endpoint
from bezel.ops.engine import Engine, EngineError, Provider
from bezel.ops.project import Project
from bezel.ops.summary import summary
from bezel.planner import PlanError, make_plan
from bezel.rest import Credentials, RestError

# Asks nothing, and leaves the outputs to the readable form at the end.
UNATTENDED = ("--yes", "--skip-preview", "--suppress-outputs")


@dataclass(frozen=True)
class Local:
    """The embedded cloud of one clone, and how to run it."""

    project: Project
    directory: Path
    server: Literal["sim", "vllm"] = "sim"
    model: Path | None = None
    speed: float = 60.0
    provider: Provider = "stand-in"

    def run_stack(self, action: str, stack: str, options: Sequence[str]) -> int:
        """Run `up`, `preview`, `refresh`, `down` or `outputs` on a stack; the exit code."""
        self.project.stack_file(stack)
        if action == "outputs":
            engine = self._engine(self._running())
            sys.stdout.write(json.dumps(engine.outputs(stack), indent=2) + "\n")
            return 0
        endpoint = self._start()
        engine = self._engine(endpoint)
        engine.prepare(stack)
        if action in {"up", "preview"}:
            self._say_what_runs(endpoint)
            self._put_weights(endpoint, stack)
        if action == "preview":
            return engine.run("preview", stack, options)
        if action == "refresh":
            return engine.run("refresh", stack, [*UNATTENDED, *options])
        if action == "down":
            code = engine.run("destroy", stack, [*UNATTENDED, *options])
            if code == 0:
                control.stop(self.directory)
            return code
        code = engine.run("up", stack, [*UNATTENDED, *options])
        if code == 0:
            sys.stdout.write(summary(stack, engine.outputs(stack)))
        return code

    def run_cloud(self, action: str) -> int:
        """Run `start`, `stop`, `status` or `env`; the exit code."""
        if action == "stop":
            control.stop(self.directory)
            return 0
        if action == "start":
            self._say_what_runs(self._start())
            return 0
        endpoint = self._running()
        if action == "status":
            self._say_what_runs(endpoint)
            return 0
        for name, value in self._engine(endpoint).environment().items():
            sys.stdout.write(f"export {name}={shlex.quote(value)}\n")
        return 0

    def token(self, url: str) -> int:
        """Print an identity token for `url`; the exit code."""
        os.environ.update(control.environment(self._running()))
        try:
            sys.stdout.write(Credentials().identity_token(url) + "\n")
        except RestError as error:
            raise EngineError(str(error)) from error
        return 0

    def _start(self) -> Endpoint:
        if self.model:
            os.environ["LOCALCLOUD_VLLM_MODEL"] = str(self.model.absolute())
        try:
            return control.start(self.directory, server=self.server, speed=self.speed)
        except control.ControlError as error:
            raise EngineError(str(error)) from error

    def _running(self) -> Endpoint:
        endpoint = control.status(self.directory)
        if endpoint is None:
            raise EngineError("localcloud does not run here: `make up`, or `.venv/bin/bezel local start`, starts it.")
        return endpoint

    def _engine(self, endpoint: Endpoint) -> Engine:
        return Engine(self.project, self.directory, control.environment(endpoint), self.provider)

    def _say_what_runs(self, endpoint: Endpoint) -> None:
        providers = "stand-in providers" if self.provider == "stand-in" else "the published providers"
        behind = "a simulated vLLM" if endpoint.server == "sim" else "the real vLLM on this machine"
        sys.stdout.write(f"localcloud at {endpoint.base}: {providers}, behind each service {behind}\n")
        sys.stdout.flush()

    def _put_weights(self, endpoint: Endpoint, stack: str) -> None:
        """Do once what a user does once: copy the model into the bucket (here: made-up files of the right layout)."""
        configuration = self.project.configuration(stack)
        project = self.project.cloud_project(stack) or control.environment(endpoint)["GOOGLE_PROJECT"]
        try:
            plan = make_plan(configuration, project=project, stack=stack)
        except PlanError:
            return  # the program itself reports it, through the engine
        weights = plan.service.weights
        if weights.create or weights.bucket in control.inventory(endpoint).get("buckets", []):
            return  # only once: who takes files out of the bucket wants to see what happens
        seed.seed(endpoint, weights.bucket, weights.path, made_up.model_files(plan.model))
        sys.stdout.write(f"put made-up weights of {plan.model} into gs://{weights.bucket}/{weights.path}\n")
        sys.stdout.flush()
