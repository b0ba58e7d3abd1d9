"""The Pulumi project on disk: its folder, its stacks, a stack's configuration as the program gets it from the engine.

Leaves out what the values mean: see `bezel.planner`.
"""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from bezel.engine.project.folder import project_folder
from bezel.planner.base.names import is_project_id
from bezel.planner.base.problems import NAMESPACE
from bezel.planner.base.stack_file import StackFileError, engine_key, problems_of_spellings, read_stack_file
from bezel_base.errors import NOT_SET, Problem, UserError, WrongValueError

if TYPE_CHECKING:
    from bezel_catalog import Model

_MODELS = "catalog.toml"
STACK_NAME = re.compile(r"[A-Za-z0-9_.-]{1,100}")  # the engine's own rule
_SHOWN = 100  # characters of a wrong name that a message repeats


class ProjectError(UserError):
    """There is no such project or stack, or its files cannot be read."""


class WrongNameError(WrongValueError, ProjectError):
    """A user named a stack that does not exist, or gave an ID that no Google Cloud project can have."""


@dataclass(frozen=True)
class Project:
    """A folder that holds a Pulumi.yaml.

    Attributes:
        folder: The folder.
        scope: The only stacks that it is read for; empty for all. Every other one is as if it had no file.
    """

    folder: Path
    scope: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The project's name, also the namespace of keys without one; that of the settings is always `bezel`."""
        return str(self._project_file()["name"])

    def stacks(self) -> list[str]:
        """Names of the stacks that have a file, sorted."""
        files = (file.name for file in self.folder.glob("Pulumi.*.yaml"))
        names = sorted(name.removeprefix("Pulumi.").removesuffix(".yaml") for name in files)
        return [name for name in names if not self.scope or name in self.scope]

    def stack_file(self, stack: str) -> Path:
        """The stack's file.

        Raises:
            WrongNameError: There is none.
        """
        file = self.folder / f"Pulumi.{stack}.yaml"
        # Looked for by its listing first: a name may be longer than any file's, or lead out of the folder.
        if stack in self.stacks() and file.is_file():
            return file
        from bezel_catalog import closest  # late: the catalogue takes as long to import as all else here

        near = closest(stack, self.stacks())
        hint = f"did you mean {near}? " if near else ""
        repair = f"{hint}choose one of {', '.join(self.stacks()) or '(no stacks)'}"
        if STACK_NAME.fullmatch(stack):
            raise WrongNameError(
                Problem("STACK", stack, f"there is no {file.name}.", f"{repair}, or write {file.name}.")
            )
        consequence = "a stack's name has at most 100 letters, digits, periods, hyphens and underscores."
        raise WrongNameError(Problem("STACK", stack[:_SHOWN], consequence, f"{repair}."))

    def configuration(self, stack: str) -> dict[str, object]:
        """The stack's settings, without the prefix of their namespace, defaults of Pulumi.yaml included.

        Raises:
            ProjectError: There is no such stack, or its file is not YAML of the right shape, or spells a key as the
                engine does not name it.
        """
        prefix = f"{NAMESPACE}:"
        values = self.engine_configuration(stack)
        return {key.removeprefix(prefix): value for key, value in values.items() if key.startswith(prefix)}

    def engine_configuration(self, stack: str) -> dict[str, object]:
        """The stack's values of every namespace by the engine's keys, defaults of Pulumi.yaml included.

        Raises:
            ProjectError: As of `configuration`.
        """
        return self._with_defaults(self._stack_values(stack))

    def configuration_in(self, text: str, name: str) -> dict[str, object]:
        """The values of a stack file's text, as of `engine_configuration`.

        Args:
            text: The text, which need not be that of a file.
            name: Name of the file, for messages.

        Raises:
            ProjectError: As of `configuration`.
        """
        return self._with_defaults(self._values_in(_content_of(text, name), name))

    def given_keys(self, stack: str) -> frozenset[str]:
        """The settings that the stack's file has, without the prefix of their namespace."""
        prefix = f"{NAMESPACE}:"
        return frozenset(key.removeprefix(prefix) for key in self._stack_values(stack) if key.startswith(prefix))

    def models(self) -> "Mapping[str, Model]":
        """The project's own models by id: the rows of its `catalog.toml`.

        Raises:
            UserError: The file cannot be read; holds every problem of its rows.
        """
        if not os.path.lexists(self.folder / _MODELS):
            return {}
        from bezel_catalog.project_models import read_project_models

        return read_project_models(self.folder)

    def cloud_project(self, stack: str, environment: Mapping[str, str] = os.environ) -> str | None:
        """The Google Cloud project: `gcp:project` of the stack, else of the environment that the program gets."""
        value = self._stack_values(stack).get("gcp:project")
        return str(value) if value else cloud_project_of(environment)

    def _stack_values(self, stack: str) -> Mapping[str, object]:
        """Values of the stack's file by their keys as the engine names them."""
        file = self.stack_file(stack)
        return self._values_in(_read(file), file.name)

    def _values_in(self, content: Mapping[str, object], name: str) -> Mapping[str, object]:
        values = _mapping(content.get("config"), f"{name}: config")
        project = self.name
        if problems := problems_of_spellings(content, project, name):
            raise ProjectError(*problems)
        return {engine_key(key, project): value for key, value in values.items()}

    def _with_defaults(self, stack_values: Mapping[str, object]) -> dict[str, object]:
        declared, project = _mapping(self._project_file().get("config"), "Pulumi.yaml: config"), self.name
        values: dict[str, object] = {}
        for key, schema in declared.items():
            values |= {engine_key(key, project): _as_passed_on(value) for value in _declared_values(schema)}
        return values | {key: _as_passed_on(value) for key, value in stack_values.items()}

    def _project_file(self) -> Mapping[str, object]:
        return _read(self.folder / "Pulumi.yaml")


def cloud_project_of(environment: Mapping[str, str]) -> str | None:
    """The Google Cloud project that an environment names."""
    return environment.get("GOOGLE_PROJECT") or environment.get("GOOGLE_CLOUD_PROJECT")


def checked_cloud_project(named_project: str | None) -> str:
    """The Google Cloud project that an option names, else the environment.

    Raises:
        ProjectError: None is named, or its name cannot be that of a project.
    """
    project = named_project or cloud_project_of(os.environ)
    if not project:
        consequence = "no Google Cloud project is named."
        raise ProjectError(Problem("--project", NOT_SET, consequence, "add it, or set GOOGLE_CLOUD_PROJECT."))
    if not is_project_id(project):
        repair = "choose the ID of a project: `gcloud projects list`."
        raise WrongNameError(Problem("--project", project, "it is not the ID of a Google Cloud project.", repair))
    return project


def find_project(start: Path) -> Project:
    """The project of `start` or of the nearest folder above it.

    Raises:
        ProjectError: None of them has a Pulumi.yaml.
    """
    if folder := project_folder(start):
        return Project(folder)
    consequence = "there is no Pulumi.yaml in this folder or above, so no Pulumi project."
    raise ProjectError(Problem(str(start), None, consequence, "change to the clone's folder."))


def _read(file: Path) -> Mapping[str, object]:
    try:
        return _content_of(file.read_text(encoding="utf-8"), file.name)
    except UnicodeDecodeError as error:
        raise ProjectError(Problem(file.name, None, f"it is not UTF-8 text: {error}.", "save it as UTF-8.")) from None


def _content_of(text: str, name: str) -> Mapping[str, object]:
    try:
        return _mapping(json.loads(_as_json(text, name)), name)
    except StackFileError as error:
        raise ProjectError(*error.problems, title=error.title) from None


def _declared_values(schema: object) -> list[object]:
    """The value of a key below `config` of Pulumi.yaml, if it has one: a provider's key has no default but a value."""
    if not isinstance(schema, Mapping):
        return [] if schema is None else [schema]
    return [schema[word] for word in ("default", "value") if word in schema]


@lru_cache
def _as_json(text: str, name: str) -> str:
    """A file as cached JSON: parsing Pulumi.yaml takes longer than planning a stack, and every stack needs it.

    Raises:
        ProjectError: Parsers read a value in it in different ways.
        StackFileError: It is not valid YAML.
    """
    content, problems = read_stack_file(text, name)
    if problems:
        raise ProjectError(*problems)
    return json.dumps(content)


def _as_passed_on(value: object) -> object:
    """A top-level value as the engine passes it to a program: anything but a map or a list is text."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(value)
    return "" if value is None else value


def _mapping(value: object, what: str) -> Mapping[str, object]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        consequence = "expected a mapping of keys to values."
        # Its content may be a password.
        raise ProjectError(Problem(what, None, consequence, "write settings as in docs/stacks.md, Configuration."))
    return value
