"""Checks of this machine: tools, the state's backend, stack files. They need no login to Google."""

import shutil
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from bezel.engine.project.own_program import declares_its_services
from bezel.engine.project.project import cloud_project_of
from bezel.engine.run.command import command_output, pulumi_cli
from bezel.engine.state.bucket import BACKEND
from bezel.engine.state.secrets_key import KEYS, foreign_key
from bezel.operations.context import Context
from bezel.operations.deployment.state_reader import read_state
from bezel.operations.doctor.check import Check, Job, check, of_error
from bezel.operations.plan.plan import plan_of
from bezel.planner import AnyPlan
from bezel_base.errors import UserError

_SECONDS = 10.0
# What each Pulumi CLI printed as its version, by its path and the time of its last change: a server asks it once.
_VERSIONS: dict[tuple[str, int], str] = {}
# Of each tool that a deploy can do without: what it is for.
_OPTIONAL: Mapping[str, tuple[str, str]] = {
    "git": ("it says which commit is deployed", "install git."),
    "gcloud": (
        "messages name commands of it as repairs",
        "install the Google Cloud CLI (https://cloud.google.com/sdk/docs/install), or do the same in the console.",
    ),
}


def local_jobs(context: Context) -> list[Job]:
    """Checks of tools and of the backend."""
    return [
        Job("tools", "pulumi", lambda: _pulumi(context)),
        *(Job("tools", tool, partial(_optional, context, tool)) for tool in _OPTIONAL),
        Job("login", "Pulumi backend", lambda: _backend(context)),
    ]


def plan_stacks(context: Context, stacks: Iterable[str]) -> tuple[list[Check], dict[str, tuple[AnyPlan, str | None]]]:
    """Outcomes of stack files, and the plans of the valid ones by stack, each with its project; None without one."""
    quiet = replace(context, show=lambda _line: None)
    checks: list[Check] = []
    plans: dict[str, tuple[AnyPlan, str | None]] = {}
    for stack in stacks:
        checks += _foreign_keys(context, stack)
        try:
            if declares_its_services(context.project, stack):
                detail = "its program declares the services itself, so no stack file is planned"
                checks.append(check("stack files", stack, "ok", detail))
                continue
            made, project = plan_of(quiet, stack)
            named = context.project.cloud_project(stack, context.environ)
        except UserError as error:
            checks += of_error("stack files", stack, error, "problem")
            continue
        plans[stack] = (made, project if named else None)
        checks.append(check("stack files", stack, "ok", f"{made.model} can be planned"))
    return checks, plans


def _foreign_keys(context: Context, stack: str) -> list[Check]:
    """Keys of secrets in a stack's file that were written for another backend; none where they are the stack's own."""
    try:
        file = context.project.stack_file(stack)
        text = file.read_text(encoding="utf-8")
        if not any(key in text for key in KEYS):
            return []
        state = read_state(context.folder, context.project.name, stack, context.environ)
    except (UserError, UnicodeDecodeError):
        return []  # the outcome of the file, or of the backend, says so
    providers = None if state is None else state.get("secrets_providers") or {}
    problems = foreign_key(file.name, text, providers, context.environ)
    return [
        check("stack files", stack, "problem", f"{each.head}; {each.consequence}", each.repair) for each in problems
    ]


def project_check(context: Context, plans: Mapping[str, tuple[AnyPlan, str | None]]) -> list[Check]:
    """The outcome that stacks name no Google Cloud project; none where all do."""
    without = [stack for stack, (_, project) in plans.items() if project is None]
    if not without:
        return []
    repair = "set GOOGLE_CLOUD_PROJECT, or `gcp:project` in the stack file."
    environment_project = cloud_project_of(context.environ)
    detail = "no Google Cloud project is set, so APIs, quotas, regions and weights are not checked, for "
    detail += f"{', '.join(without)}" + (f"; the environment has {environment_project}" if environment_project else "")
    return [check("project", "Google Cloud project", "problem", detail, repair)]


def _pulumi(context: Context) -> Iterable[Check]:
    try:
        cli = pulumi_cli()
        program = (cli, Path(cli).stat().st_mtime_ns)
        if program not in _VERSIONS:
            _VERSIONS[program] = command_output([cli, "version"], folder=context.folder, seconds=_SECONDS).strip()
    except UserError as error:
        return of_error("tools", "pulumi", error, "problem")
    return [check("tools", "pulumi", "ok", _VERSIONS[program])]


def _optional(context: Context, tool: str) -> Iterable[Check]:
    path = shutil.which(tool, path=context.environ.get("PATH"))
    if path:
        return [check("tools", tool, "ok", "found on PATH")]
    use, repair = _OPTIONAL[tool]
    return [check("tools", tool, "warning", f"not found on PATH: {use}", repair)]


def _backend(context: Context) -> Iterable[Check]:
    backend = context.environ.get(BACKEND, "")
    try:
        deployed = context.stacks()
    except UserError as error:
        return of_error("login", "Pulumi backend", error, "problem")
    where = backend.partition("?")[0] or "the one that `pulumi login` chose"
    return [check("login", "Pulumi backend", "ok", f"{where}: {len(deployed)} stacks are deployed from this project")]
