"""`bezel init`: parses the options, asks, and calls the set-up of a project (bezel.gitops.project_setup)."""

import argparse
import os
import sys
from pathlib import Path
from typing import Literal

from bezel.engine.outcomes import Exit
from bezel.engine.project.project import checked_cloud_project
from bezel.foundation.settings import Settings, checked_settings, plain
from bezel.gitops.project_setup.pipeline import checkout_around
from bezel.gitops.project_setup.repository import repository_id
from bezel.gitops.project_setup.setup import Setup, set_up
from bezel.gitops.project_setup.teardown import tear_down
from bezel_base.errors import NOT_SET, Problem, UserError

# Options with another name than their setting.
_NAMES = {
    "environments": "environment",
    "deploy_workflows": "deploy-workflow",
    "weights_buckets": "weights-bucket",
    "secrets": "secret",
    "domains": "domain",
    "smoke_users": "smoke-user",
}


def run(options: argparse.Namespace) -> Literal[Exit.DONE, Exit.FAILED]:
    """Set the project up, or take its foundation away; return the exit code."""

    def ask(question: str) -> bool:
        return options.yes or _asks_agreement(question)

    if options.destroy:
        project = checked_cloud_project(options.project)
        return tear_down(project, options.state_bucket or f"{plain(project)}-pulumi-state", ask)
    settings = _settings(options)
    forge_url = os.environ.get("GITHUB_SERVER_URL", "")
    return set_up(Setup(options.project, settings, forge_url, checkout_around(Path.cwd())), ask)


def _settings(options: argparse.Namespace) -> Settings:
    """The settings that the options name.

    Raises:
        WrongValueError: They have problems.
        UserError: The forge does not tell the repository's number.
    """
    values = {name: getattr(options, name, None) for name in Settings.model_fields}
    values = {name: value for name, value in values.items() if value not in (None, [], "")}
    if "repository_id" in values or options.no_forge:
        return checked_settings(values, options.project, _option)
    # Everything else first: the look-up needs a valid repository.
    settings = checked_settings({**values, "repository_id": "0"}, options.project, _option)
    number = repository_id(settings.forge, settings.repository)
    return settings.model_copy(update={"repository_id": number})


def _option(name: str) -> str:
    return f"--{_NAMES.get(name, name).replace('_', '-')}"


def _asks_agreement(question: str) -> bool:
    """Ask on the terminal.

    Raises:
        UserError: There is none.
    """
    if not sys.stdin.isatty():
        consequence = "there is no terminal to ask on, so nothing was changed."
        raise UserError(Problem("--yes", NOT_SET, consequence, "add --yes to agree beforehand."))
    return input(f"{question} [yes/no] ").strip().lower() in {"y", "yes"}
