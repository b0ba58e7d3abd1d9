"""The subcommands of `bezel local`: start localcloud, seed weights, run the engine, print the result.

Leaves out the engine's environment (`bezel.pulumi_engine.local_engine`) and the text of the summary
(`bezel.cli.up_summary`).
"""

import json
import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from bezel.atomic_write import write_whole
from bezel.cli.in_service import why_not_serving
from bezel.cli.up_summary import summary
from bezel.localcloud import control
from bezel.localcloud.core.locks import Use, using
from bezel.localcloud.core.paths import Endpoint
from bezel.pulumi_engine.local_engine import FOREIGN, EngineError, LocalEngine, Provider
from bezel.pulumi_engine.policy_packs import configurations, judged, with_packs
from bezel.pulumi_engine.project import Project

if TYPE_CHECKING:
    from bezel.planner import AnyPlan

# Options for a run without prompts; the summary at the end shows the outputs instead.
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
    deadline: float | None = None

    def run_stack(self, action: str, stack: str, options: Sequence[str]) -> int:
        """Run `up`, `preview`, `refresh`, `down` or `outputs` on a stack; return the exit code."""
        self.project.stack_file(stack)
        if action == "outputs":
            engine = self._engine(self._running())
            sys.stdout.write(json.dumps(engine.outputs(stack), indent=2) + "\n")
            return 0
        with using(self.directory) as use:
            return self._run_stack(action, stack, options, use)

    def _run_stack(self, action: str, stack: str, options: Sequence[str], use: Use) -> int:
        # `down` works with whichever server is running.
        endpoint = (control.status(self.directory) if action == "down" else None) or self._start(use)
        engine = self._engine(endpoint, use)
        plan, refusal = self._plan(endpoint, stack)
        if plan is None and action in {"up", "preview"}:
            sys.stderr.write(f"{refusal}\n")
            return 1
        engine.prepare(stack, accepted=plan is not None)
        if plan and action in {"up", "preview"}:
            self._say_what_runs(endpoint)
            self._enable_quotas(endpoint)
            self._put_weights(endpoint, plan)
            self._say_what_is_rewritten(plan)
            options = self._with_packs(stack, options)
        if action == "preview":
            return engine.run("preview", stack, options).code
        engine.recover(stack)
        if action == "refresh":
            return engine.run("refresh", stack, [*UNATTENDED, *options]).code
        if action == "down":
            self._check_protection(plan, stack)
            self._check_refused(engine, stack)
            code = engine.run("destroy", stack, [*UNATTENDED, *options]).code
            if code == 0:
                self._stop_unless_used(use)
            return code
        code = self._up(engine, stack, options)
        return code or self._summarize(engine, endpoint, stack)

    def recover(self, stack: str, *, adopt: bool, forget: bool = False) -> int:
        """Repair the state that a killed run of the engine left; return the exit code.

        Args:
            stack: The stack's name.
            adopt: Adopt resources that exist already: they belong to this stack.
            forget: Leave these resources alone: they belong to another owner.
        """
        with using(self.directory) as use:
            # As for `down`, any running server will do.
            endpoint = control.status(self.directory) or self._start(use)
            engine = self._engine(endpoint, use)
            engine.prepare(stack, accepted=self._plan(endpoint, stack)[0] is not None)
            given_up = engine.give_up_refused(stack) if forget else 0
            if given_up:
                _say(f"{stack}: {given_up} of the resources that exist already are left alone")
            found = engine.recover(stack, adopt=adopt, whatever=True)
        if not found.looked_at and not given_up:
            _say(f"{stack}: nothing is open")
        return 0

    @staticmethod
    def _up(engine: LocalEngine, stack: str, options: Sequence[str]) -> int:
        """Deploy; repeat once where a plugin died while the cloud created the resource nevertheless."""
        # With policy packs a preview judges the stack first: else resources before a violation would be created.
        quiet = [option for option in UNATTENDED if option != "--skip-preview" or not judged(options)]
        ended = engine.run("up", stack, [*quiet, *options])
        if ended.code <= 0 or ended.interrupted or control.status(engine.folder) is None:
            return ended.code
        found = engine.recover(stack)
        if found.adopted and not found.cut_off:
            return engine.run("up", stack, [*quiet, *options]).code
        if refused := engine.refused(stack):
            _say("\n".join(_in_the_way(stack, refused, "deploy again, under other names")))
        return ended.code

    def run_cloud(self, action: str) -> int:
        """Run `start`, `stop`, `status` or `env`; return the exit code."""
        if action == "stop":
            control.stop(self.directory)
            return 0
        if action == "start":
            with using(self.directory) as use:
                self._say_what_runs(self._start(use))
            return 0
        endpoint = self._running()
        if action == "status":
            self._say_what_runs(endpoint)
            return 0
        sys.stdout.write(f"unset {' '.join(FOREIGN)}\n")
        for name, value in self._engine(endpoint).environment().items():
            sys.stdout.write(f"export {name}={shlex.quote(value)}\n")
        return 0

    def _summarize(self, engine: LocalEngine, endpoint: Endpoint, stack: str) -> int:
        """Print the stack's summary after a successful run; return 0, or 1 where the service does not answer."""
        outputs = engine.outputs(stack)
        url = str(outputs.get("url", ""))
        missing = why_not_serving(url, lambda: self._identity_token(endpoint, url))
        sys.stdout.write(summary(stack, outputs, behind=self._behind(endpoint), not_serving=missing))
        return 1 if missing else 0

    def token(self, url: str) -> int:
        """Print an identity token for `url`; return the exit code."""
        sys.stdout.write(self._identity_token(self._running(), url) + "\n")
        return 0

    @staticmethod
    def _identity_token(endpoint: Endpoint, url: str) -> str:
        """An identity token of localcloud's deployer.

        Raises:
            EngineError: No token can be obtained.
        """
        from bezel.rest import Credentials, RestError

        for name in FOREIGN:
            os.environ.pop(name, None)
        os.environ.update(control.environment(endpoint))
        try:
            return Credentials().identity_token(url)
        except RestError as error:
            raise EngineError(str(error)) from error

    def fault(self, action: str, kind: str, parameters: Sequence[str]) -> int:
        """Run `list`, `show`, `add` or `clear` of `bezel local fault`; return the exit code."""
        from bezel.cli import local_fault

        if action == "list":
            return local_fault.print_kinds()
        if action == "show":
            return local_fault.print_faults(self._running())
        if action == "add":
            return local_fault.add_fault(self._running(), kind, parameters)
        return local_fault.clear_faults(self._running(), kind)

    def _start(self, use: Use) -> Endpoint:
        """Start the localcloud that this command needs, in place of another one unless that is in use.

        Raises:
            EngineError: Another command uses a different one, or localcloud does not start.
        """
        if self.server == "vllm":
            os.environ["LOCALCLOUD_VLLM_MODEL"] = str(_checked_model(self.model))
        found = control.status(self.directory)
        if found and found.kind != control.kind(self.server, self.speed) and not use.take_alone():
            raise EngineError(
                f"localcloud at {found.base} (server {found.server}, speed {found.speed:g}, started from other code or "
                f"for other options) is used by another command, and this one wants server {self.server} and speed "
                f"{self.speed:g}: it would have to stop it. Wait until that command has ended, or name a folder of its "
                "own (--dir)."
            )
        try:
            return control.start(self.directory, server=self.server, speed=self.speed)
        except control.ControlError as error:
            raise EngineError(str(error)) from error
        finally:
            use.share()

    def _stop_unless_used(self, use: Use) -> None:
        if use.take_alone():
            control.stop(self.directory)
        else:
            _say("localcloud goes on: another command uses it")

    def _running(self) -> Endpoint:
        endpoint = control.status(self.directory)
        if endpoint is None:
            raise EngineError("localcloud does not run here: `make up`, or `.venv/bin/bezel local start`, starts it.")
        return endpoint

    def _engine(self, endpoint: Endpoint, use: Use | None = None) -> LocalEngine:
        variables = control.environment(endpoint)
        if self.deadline is not None:
            variables["BEZEL_DEADLINE_SECONDS"] = f"{self.deadline:g}"
        held = () if use is None else (use.descriptor,)
        return LocalEngine(self.project, self.directory, variables, self.provider, held)

    def _say_what_runs(self, endpoint: Endpoint) -> None:
        providers = "stand-in providers" if self.provider == "stand-in" else "the published providers"
        _say(f"localcloud at {endpoint.base}: {providers}, behind each service {self._behind(endpoint)}")

    def _behind(self, endpoint: Endpoint) -> str:
        return "a simulated vLLM" if endpoint.server == "sim" else "the real vLLM of this machine"

    def _say_what_is_rewritten(self, plan: "AnyPlan") -> None:
        from bezel.localcloud.services.cloud_run.runtime import real_vllm
        from bezel.planner import Plan

        if self.server == "vllm" and self.model and isinstance(plan, Plan):
            _, notes, _ = real_vllm.command(plan.service.arguments, model_dir=self.model.absolute(), address="")
            for note in notes:
                _say(f"  for the model on this machine: {note}")

    def _with_packs(self, stack: str, options: Sequence[str]) -> list[str]:
        environment = self.project.configuration(stack).get("environment")
        whole = with_packs(options, here=Path.cwd(), environment=environment)
        for file in configurations(whole):
            _say(f"  judged with the limits of {os.path.relpath(file)}")
        return whole

    def _plan(self, endpoint: Endpoint, stack: str) -> "tuple[AnyPlan | None, str]":
        """The stack's plan and "", or None and the problems of the stack file."""
        from bezel.planner import PlanError, make_plan  # late: half of this module's import time

        project = self.project.cloud_project(stack, control.environment(endpoint))
        try:
            return make_plan(self.project.configuration(stack), project=project, stack=stack), ""
        except PlanError as error:
            return None, str(error)

    @staticmethod
    def _check_protection(plan: "AnyPlan | None", stack: str) -> None:
        """Refuse up front: the provider would refuse only midway, after the smoke checks were deleted.

        Raises:
            EngineError: The stack file protects the service.
        """
        if plan and plan.protected:
            raise EngineError(
                f"{stack} is protected from deletion (bezel:environment = {plan.environment}, "
                "bezel:deletion_protection), so nothing was taken down. If it is to go: set "
                f"`bezel:deletion_protection: never` in Pulumi.{stack}.yaml, run `make up STACK={stack}`, "
                "then this again."
            )

    def _enable_quotas(self, endpoint: Endpoint) -> None:
        """Enable, once, the API that a first preview requests quotas from, as a user would."""
        done = self.directory / "quotas-enabled"
        if done.exists():
            return
        from bezel.localcloud import seed

        seed.enable(endpoint, "cloudquotas.googleapis.com")
        done.touch(mode=0o600)

    @staticmethod
    def _check_refused(engine: LocalEngine, stack: str) -> None:
        """Refuse while resources exist that the state does not hold: they would stay unnoticed.

        Raises:
            EngineError: A run could not create a resource because it exists already.
        """
        if refused := engine.refused(stack):
            raise EngineError(
                "\n".join(
                    [
                        f"nothing of {stack} was taken down, as this would stay and cost money:",
                        *_in_the_way(stack, refused, f"`make down STACK={stack}` again"),
                    ]
                )
            )

    def _put_weights(self, endpoint: Endpoint, plan: "AnyPlan") -> None:
        """Copy the model into the bucket once, as a user would (here: synthetic files of the right layout)."""
        weights = plan.weights
        if weights.bucket is None or weights.create:
            return
        from bezel.localcloud import seed
        from bezel.simulated_vllm import synthetic_weights

        # Only once: a user who removes files from the bucket wants to see the effect.
        put = self.directory / "weights-put.json"
        done = json.loads(put.read_text()) if put.exists() else []
        for path, model in {weights.path: plan.model, **weights.drafts}.items():
            place = f"gs://{weights.bucket}/{path}"
            if place in done:
                continue
            seed.seed(endpoint, weights.bucket, path, synthetic_weights.model_files(model))
            _say(f"put made-up weights of {model} into {place}")
            done.append(place)
            write_whole(put, json.dumps(done), mode=0o600)


def _checked_model(model: Path | None) -> Path:
    """The folder that a real vLLM is to serve.

    Raises:
        EngineError: There is no such folder, or no vLLM to serve it.
    """
    problems = []
    if model is None:
        problems.append("no model is named: add MODEL=DIR (--model DIR), the folder of a small local model")
    elif not (model / "config.json").is_file():
        problems.append(f"MODEL={model} holds no config.json, so it is no model: name the folder that holds one")
    if shutil.which("vllm") is None:
        problems.append("there is no `vllm` on PATH: activate the environment that it is installed in")
    if model is None or problems:
        raise EngineError("SERVER=vllm cannot start: " + "; ".join(problems) + ".")
    return model.absolute()


def _in_the_way(stack: str, refused: Sequence[str], otherwise: str) -> list[str]:
    """Lines that list resources that exist already, with the repair."""
    adopt = f"`.venv/bin/bezel local recover {stack} --adopt`"
    forget = f"`.venv/bin/bezel local recover {stack} --forget`"
    return [
        *(f"  {one}" for one in refused),
        "  Google did not create this, as it exists already, and the state of this stack does not hold it.",
        f"  Repair: if an earlier run of this stack made it: {adopt}, then the same command again.",
        f"  If it is somebody else's: {forget}, then {otherwise}.",
    ]


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
