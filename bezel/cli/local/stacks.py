"""The subcommands of `bezel local` for stacks: start localcloud, seed weights, run the engine, print the result.

Leaves out localcloud alone (`bezel.cli.local.localcloud`), the engine's environment (`bezel.engine.local`) and
the text of the summary (`bezel.cli.up_summary`).
"""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from bezel.cli.local.hub_repositories import put_on_hub
from bezel.cli.local.program import BezelLocal, serves_untrained_model
from bezel.cli.local.proxy import require_proxy
from bezel.cli.local.shell_hint import shell_hint
from bezel.cli.local.typed_commands import as_typed
from bezel.cli.up_summary import off_hours, own_url, summary
from bezel.engine.local.cloud_stacks import CloudStacks, cloud_stacks
from bezel.engine.local.engine import LocalEngine
from bezel.engine.local.place import Provider
from bezel.engine.local.project_places import run_folder
from bezel.engine.project.project import Project
from bezel.engine.run.policy_packs import configurations, has_packs, with_packs
from bezel.engine.run.process import end_with_make
from bezel_base.atomic_write import write_whole
from bezel_base.console import note, say
from bezel_base.errors import Problem, UserError
from bezel_base.terminal.layout import lay_out
from bezel_base.terminal.screen import show
from bezel_base.text.shell import shell_word, shell_word_for_make
from bezel_localcloud import control
from bezel_localcloud.command.cloud import LocalCloud, behind
from bezel_localcloud.core.files.locks import Use, using
from bezel_localcloud.core.paths import Endpoint, Paths

if TYPE_CHECKING:
    from bezel.planner import AnyPlan

# Options for a run without prompts; the summary at the end shows the outputs instead.
UNATTENDED = ("--yes", "--skip-preview", "--suppress-outputs")


def run(project: Project, options: argparse.Namespace) -> int:
    """Run one of the subcommands; return the exit code."""
    local = Local.of(project, options)
    if options.action == "recover":
        return local.recover(options.stack, adopt=options.adopt, forget=options.forget)
    end_with_make()
    try:
        return local.run_stack(options.action, options.stack, options.pulumi)
    except UserError as error:
        if hint := shell_hint([str(error)], local.cloud.directory, os.environ):
            note(as_typed(hint))
        raise


@dataclass(frozen=True)
class Local:
    """A project's stacks on the embedded cloud."""

    project: Project
    cloud: LocalCloud
    provider: Provider = "stand-in"
    deadline: float | None = None

    @classmethod
    def of(cls, project: Project, options: argparse.Namespace) -> "Local":
        """The project's stacks, on the embedded cloud that the options describe."""
        return cls(project, LocalCloud.of(BezelLocal(), options), options.provider, getattr(options, "deadline", None))

    def run_stack(self, action: str, stack: str, options: Sequence[str]) -> int:
        """Run `up`, `preview`, `refresh`, `down` or `outputs` on a stack; return the exit code."""
        self.project.stack_file(stack)
        if action == "outputs":
            sys.stdout.write(json.dumps(self.engine(self.cloud.running()).outputs(stack), indent=2) + "\n")
            return 0
        with using(self.cloud.directory) as use:
            code = self._run_stack(action, stack, options, use)
        if code:
            self._print_hint(stack)
        return code

    def _print_hint(self, stack: str) -> None:
        """Say that the commands that a failed run has named need localcloud's variables, where the shell has none."""
        from bezel.engine.events.reader import read_events

        events = run_folder(self.cloud.directory.absolute(), self.project.name, stack) / "events.jsonl"
        texts = [item.message for item in read_events(events).diagnostics]
        if hint := shell_hint(texts, self.cloud.directory, os.environ):
            say(as_typed(hint))

    def _run_stack(self, action: str, stack: str, options: Sequence[str], use: Use) -> int:
        # `down` works with whichever server is running.
        endpoint = (control.status(self.cloud.directory) if action == "down" else None) or self.cloud.start(use)
        engine = self.engine(endpoint, use)
        plan = self._plan(endpoint, stack, required=action in {"up", "preview"})
        if action == "up" and _is_lease(plan):
            require_proxy()
        if plan and action in {"up", "preview"}:
            from bezel.engine.local.neighbours import check_neighbours

            check_neighbours(engine.state, self.project.name, plan)
        engine.prepare(stack, accepted=plan is not None)
        if plan and action in {"up", "preview"}:
            self._print_endpoint(endpoint)
            self._enable_quotas(endpoint)
            put_on_hub(self.cloud.directory, self.project, plan)
            self._put_weights(endpoint, plan)
            self._print_rewritten_arguments(plan)
            options = self._with_packs(stack, options)
        if action == "preview":
            return engine.run("preview", stack, options).end.code
        engine.recover(stack)
        if action == "refresh":
            return engine.run("refresh", stack, [*UNATTENDED, *options]).end.code
        if action == "down":
            _check_down(plan, engine, stack)
            run = engine.run("destroy", stack, [*UNATTENDED, *options])
            if run.ok:
                self._end_cloud(engine, endpoint, stack, use)
            elif run.text:
                say(run.text)
            return run.end.code
        return self._up(engine, stack, options) or self._summarize(engine, endpoint, stack)

    def _end_cloud(self, engine: LocalEngine, endpoint: Endpoint, stack: str, use: Use) -> None:
        """End localcloud unless another command uses it or a stack is left on it, and say what is left."""
        import httpx  # late: no other command here needs it

        present = CloudStacks((), ())
        with suppress(httpx.HTTPError):  # one that does not respond serves no stack
            present = cloud_stacks(engine.state, control.inventory(endpoint))
        if deployed := present.text(self.project.name):
            option = f" --dir {shell_word(folder)}" if (folder := self._folder_to_name()) else ""
            end = f"it ends with the last stack, or by `bezel local stop{option}`"
            say(as_typed(f"localcloud keeps running: {deployed}; {end}"))
            return
        if not use.take_alone():
            say("localcloud keeps running: another command uses it")
            return
        control.stop(self.cloud.directory)
        say(f"localcloud has ended; history and logs of {stack} stay in {self.cloud.directory}")

    def recover(self, stack: str, *, adopt: bool, forget: bool = False) -> int:
        """Repair the state that a killed run of the engine left; return the exit code.

        Args:
            stack: The stack's name.
            adopt: Adopt resources that exist already: they belong to this stack.
            forget: Leave these resources alone: they belong to another owner.
        """
        self.project.stack_file(stack)
        with using(self.cloud.directory) as use:
            # As for `down`, any running server will do.
            endpoint = control.status(self.cloud.directory) or self.cloud.start(use)
            engine = self.engine(endpoint, use)
            engine.prepare(stack, accepted=self._plan(endpoint, stack) is not None)
            forgotten = engine.forget_refused(stack) if forget else 0
            if forgotten:
                say(f"{stack}: {forgotten} of the resources that exist already are left alone")
            result = engine.recover(stack, adopt=adopt, always=True)
        if not result.checked and not forgotten:
            say(f"{stack}: no open changes")
        return 0

    @staticmethod
    def _up(engine: LocalEngine, stack: str, options: Sequence[str]) -> int:
        """Deploy; repeat once where a plugin died while the cloud created the resource nevertheless."""
        # With policy packs a preview checks the stack first: else resources before a violation would be created.
        quiet = [option for option in UNATTENDED if option != "--skip-preview" or not has_packs(options)]
        end = engine.run("up", stack, [*quiet, *options]).end
        if end.code <= 0 or end.interrupted or control.status(engine.folder) is None:
            return end.code
        recovered = engine.recover(stack)
        if recovered.adopted and not recovered.cut_off:
            return engine.run("up", stack, [*quiet, *options]).end.code
        if refused := engine.existing_resources(stack):
            say(as_typed(str(_existing(refused, stack, "then deploy again, under other names"))))
        return end.code

    def _summarize(self, engine: LocalEngine, endpoint: Endpoint, stack: str) -> int:
        """Print the stack's summary after a successful run; return 1 where the service should respond and does not."""
        from bezel.cli.in_service import why_not_serving  # late: a run that fails sends no request

        outputs = engine.outputs(stack)
        url = own_url(outputs)
        failure = why_not_serving(url, lambda: self.cloud.token(url))
        now = datetime.now(UTC)
        folder = self._folder_to_name()
        blocks = [*summary(stack, outputs, behind=behind(endpoint), now=now, not_serving=failure, folder=folder)]
        show(blocks, edit=as_typed)
        if hint := shell_hint(["\n".join(lay_out(blocks))], self.cloud.directory, os.environ):
            say(as_typed(hint))
        return 1 if failure and not off_hours(outputs, now) else 0

    def _folder_to_name(self) -> str:
        """Folder of localcloud that printed commands have to name; "" where they find it by themselves."""
        usual = self.cloud.program.default_directory()
        return "" if self.cloud.directory.absolute() == usual.absolute() else str(self.cloud.directory)

    def engine(self, endpoint: Endpoint, use: Use | None = None) -> LocalEngine:
        """The engine with its environment; `use` is passed on to its runs."""
        variables = control.environment(endpoint)
        if self.deadline is not None:
            variables["BEZEL_DEADLINE_SECONDS"] = f"{self.deadline:g}"
        if serves_untrained_model(self.cloud):
            variables["BEZEL_RANDOM_WEIGHTS"] = "1"
        descriptors = () if use is None else (use.descriptor,)
        return LocalEngine(self.project, self.cloud.directory, variables, self.provider, descriptors)

    def _print_endpoint(self, endpoint: Endpoint) -> None:
        providers = "stand-in providers" if self.provider == "stand-in" else "the published providers"
        say(f"localcloud at {endpoint.base}: {providers}, behind each service {behind(endpoint)}")

    def _print_rewritten_arguments(self, plan: "AnyPlan") -> None:
        from bezel.planner import Plan
        from bezel_localcloud.services.cloud_run.runtime import real_vllm

        if self.cloud.server == "vllm" and self.cloud.model and isinstance(plan, Plan):
            _, notes, _ = real_vllm.command(plan.service.arguments, model_dir=self.cloud.model.absolute(), address="")
            for text in notes:
                say(f"  for the model on this machine: {text}")
            if serves_untrained_model(self.cloud):
                say("  for the model on this machine: its weights are random: accepted drafts are shown, not judged")

    def _with_packs(self, stack: str, options: Sequence[str]) -> list[str]:
        environment = self.project.configuration(stack).get("environment")
        completed = with_packs(options, here=Path.cwd(), environment=environment)
        for file in configurations(completed):
            say(f"  policy limits: {os.path.relpath(file)}")
        return completed

    def _plan(self, endpoint: Endpoint, stack: str, *, required: bool = False) -> "AnyPlan | None":
        """The stack's plan; None for a stack file with problems, unless a plan is required.

        Raises:
            PlanError: A plan is required, and the stack file has problems.
        """
        from bezel.planner import PlanError, make_plan  # late: half of this module's import time

        project = self.project.cloud_project(stack, control.environment(endpoint))
        try:
            return make_plan(
                self.project.configuration(stack), project=project, stack=stack, models=self.project.models()
            )
        except PlanError:
            if required:
                raise
            return None

    def _enable_quotas(self, endpoint: Endpoint) -> None:
        """Enable, once, the API that a first preview requests quotas from, as a user would."""
        done = Paths(self.cloud.directory).seeded / "quotas-enabled"
        if done.exists():
            return
        from bezel_localcloud import seed

        seed.enable(endpoint, "cloudquotas.googleapis.com")
        done.touch(mode=0o600)

    def _put_weights(self, endpoint: Endpoint, plan: "AnyPlan") -> None:
        """Copy the model into the bucket once, as a user would (here: synthetic files of the right layout)."""
        weights = plan.weights
        if weights.bucket is None or weights.create:
            return
        from bezel.planner.vllm.model.named_adapters import adapter_folder
        from bezel_catalog.models import using_models
        from bezel_localcloud import seed
        from bezel_simulated_vllm import synthetic_weights

        # Only once: a user who removes files from the bucket wants to see the effect.
        record = Paths(self.cloud.directory).seeded / "weights-put.json"
        done = json.loads(record.read_text(encoding="utf-8")) if record.exists() else []
        ranks = {adapter_folder(each): each.rank for each in plan.settings.adapters}
        models = {path: name for path, (name, _) in plan.bucket_models.items()}
        for path, name in {**models, **weights.drafts, **dict.fromkeys(weights.adapters, "")}.items():
            missing = {key: at for key, at in _bucket_locations(plan).items() if f"gs://{key}/{path}" not in done}
            if not missing:
                continue
            with using_models(self.project.models()):
                files = (
                    synthetic_weights.model_files(name)
                    if name
                    else synthetic_weights.adapter_files(plan.model, ranks.get(path, weights.adapters[path]))
                )
            for bucket, location in missing.items():
                address = f"gs://{bucket}/{path}"
                seed.seed(endpoint, bucket, path, files, location)
                say(f"copied synthetic weights of {name or f'an adapter of {plan.model}'} to {address}")
                done.append(address)
            write_whole(record, json.dumps(done), mode=0o600)


def _bucket_locations(plan: "AnyPlan") -> dict[str, str]:
    """The buckets that servers of a plan read, each with its location: that of each region, or one in the US."""
    from bezel.planner import Plan

    if isinstance(plan, Plan) and plan.settings.weights.regional_buckets:
        return {each.bucket: each.region.upper() for each in plan.regions if each.bucket}
    return {plan.weights.bucket: "US"} if plan.weights.bucket else {}


def _is_lease(plan: "AnyPlan | None") -> bool:
    from bezel.planner import LeasePlan

    return isinstance(plan, LeasePlan)


def _check_down(plan: "AnyPlan | None", engine: LocalEngine, stack: str) -> None:
    """Refuse to destroy a protected stack, or one with resources in the cloud that its state does not contain.

    The provider would refuse the first only midway, after the smoke checks were deleted; the second would stay
    unnoticed.

    Raises:
        UserError: The stack is not destroyed.
    """
    if plan and plan.is_protected:
        raise UserError(
            Problem(
                "bezel:deletion_protection",
                None,
                f"{stack} is protected from deletion (bezel:environment = {plan.environment}); nothing was deleted.",
                f"set `bezel:deletion_protection: never` in Pulumi.{stack}.yaml, run `make up "
                f"STACK={shell_word_for_make(stack)}`, then "
                "this command again.",
            )
        )
    if refused := engine.existing_resources(stack):
        raise UserError(
            _existing(
                refused, stack, f"then `make down STACK={shell_word_for_make(stack)}` again", ", and would cost money"
            )
        )


def _existing(refused: Sequence[str], stack: str, otherwise: str, effect: str = "") -> Problem:
    """The problem of resources that exist already."""
    return Problem(
        f"stack {stack}",
        None,
        f"these resources exist already, so Google did not create them, and the stack's state does not contain them; "
        f"they would stay{effect}:\n   " + "\n   ".join(refused),
        f"if an earlier run of this stack created them: `.venv/bin/bezel local recover {shell_word(stack)} --adopt`, "
        "then the "
        f"same command again. If they belong to another owner: `.venv/bin/bezel local recover {shell_word(stack)} "
        "--forget`, "
        f"{otherwise}.",
    )
