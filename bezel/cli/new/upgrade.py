"""`bezel upgrade --check`: what the installed version would write otherwise in a project; nothing is changed.

Owns which files of a project are Bezel's and which are its owner's. The former are compared as a whole; of the latter
only what a newer version adds or asks for: the pin of the library, policies without a limit, the release of vLLM, and
stack files that the installed catalogue no longer plans.
"""

import argparse
import difflib
import importlib.metadata
import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from bezel.cli.new.template import fill_in, template_files
from bezel.engine.outcomes import Exit
from bezel.engine.project.project import Project
from bezel.planner import PlanError, make_plan
from bezel.planner.base.problems import setting
from bezel.planner.base.settings import Settings
from bezel_base.console import write
from bezel_base.errors import NOT_SET, Problem, UserError, WrongValueError, one_line
from bezel_base.terminal.screen import show_text

_PIN = re.compile(r"bezel(?:-[a-z-]+)?(?:\[[a-z,]+\])?\s*==\s*(?P<version>[^\s;]+)")
# Files whose text is Bezel's alone; everything else of the template belongs to the project as soon as it is made.
_OWN_FILES = re.compile(r"\.github/workflows/.+|policies/[^/]+/.+|plugins/.+|Makefile|stack\.schema\.json|__main__\.py")
_LIMITS = re.compile(r"policies/(?P<pack>[a-z_]+)\.(?P<environment>dev|prod)\.json")
_MOST_BYTES = 1 << 18  # the largest file of the template has a tenth of it
_PROJECT = "my-project"  # a plan needs one; nothing that is written names it


@dataclass(frozen=True)
class Difference:
    """Something that the installed version has otherwise.

    Attributes:
        where: The file.
        text: What differs, as lines of a diff or as a sentence.
    """

    where: str
    text: str


def run(project: Project, options: argparse.Namespace) -> Literal[Exit.DONE, Exit.DRIFTED]:
    """Print the differences; return the exit code.

    Raises:
        WrongValueError: `--check` is missing: nothing is written by this command.
        UserError: The project's files cannot be read.
    """
    if not options.check:
        consequence = "this command changes no file: it shows what a newer version would write."
        raise WrongValueError(Problem("--check", NOT_SET, consequence, "write `bezel upgrade --check`."))
    version = importlib.metadata.version("bezel")
    differences, problems = find_differences(project, version)
    if problems:
        raise UserError(*problems, title=f"{project.name} cannot be compared with bezel {version}")
    for each in differences:
        write(f"{each.where}\n{each.text}\n\n")
    if not differences:
        show_text(f"{project.name}: nothing differs from what bezel {version} writes")
        return Exit.DONE
    count = f"{len(differences)} difference{'' if len(differences) == 1 else 's'}"
    show_text(f"{project.name}: {count} from what bezel {version} writes; nothing was changed")
    return Exit.DRIFTED


def find_differences(project: Project, version: str) -> tuple[list[Difference], list[Problem | str]]:
    """What the installed version has otherwise, in the order of the files, and what cannot be compared.

    Args:
        project: The project.
        version: The installed version.

    Raises:
        UserError: This installation has no template.
    """
    comparisons: list[Callable[[], Iterable[Difference]]] = [partial(_pins, project.folder, version)]
    for path, text in template_files().items():
        if _OWN_FILES.fullmatch(path):
            comparisons.append(partial(_file_differences, project, path, text))
        elif _LIMITS.fullmatch(path):
            comparisons.append(partial(_missing_policies, project.folder, path, json.loads(text)))
    comparisons += [partial(_stack_differences, project, stack) for stack in project.stacks()]
    differences: list[Difference] = []
    problems: list[Problem | str] = []
    for compare in comparisons:
        try:
            differences += compare()
        except UserError as error:
            problems += error.problems
    return differences, list(dict.fromkeys(problems))


def _pins(folder: Path, version: str) -> Iterator[Difference]:
    file = folder / "pyproject.toml"
    try:
        content = tomllib.loads(_text_of(file))
    except tomllib.TOMLDecodeError as error:
        raise UserError(Problem(file.name, None, f"it is not valid TOML: {error}.", "correct it.")) from None
    table = content.get("project", {})
    dependencies = table.get("dependencies", []) if isinstance(table, dict) else None
    if not isinstance(dependencies, list):
        consequence = "it has no list of dependencies, so nothing pins the library."
        raise UserError(Problem(f"{file.name}: project.dependencies", None, consequence, "write a list of texts."))
    pins = {match[0]: match["version"] for each in dependencies if (match := _PIN.match(str(each)))}
    if not pins:
        yield Difference(file.name, f"  no dependency pins bezel; this version would write bezel=={version}")
    if newer := sorted({other for other in pins.values() if _numbers(other) > _numbers(version)}):
        consequence = f"it is newer than the installed {version}, which cannot say what a newer one would write."
        repair = "run `make setup`, which installs what the project pins, then this command again."
        raise UserError(Problem(f"{file.name}: bezel", ", ".join(newer), consequence, repair))
    if lines := [f"-{pin}\n+{pin.replace(other, version)}" for pin, other in pins.items() if other != version]:
        yield Difference(file.name, "\n".join(lines))


def _numbers(version: str) -> tuple[int, ...]:
    """The numbers of a version, for an order; of a text that is none, nothing."""
    return tuple(map(int, re.findall(r"\d{1,9}", version)[:4]))


def _file_differences(project: Project, path: str, text: str) -> Iterator[Difference]:
    new = _default_stack(project, fill_in(text, project.name)) if path == "Makefile" else fill_in(text, project.name)
    file = project.folder / path
    old = _text_of(file) if file.is_file() else ""
    lines = difflib.unified_diff(
        old.splitlines(), new.splitlines(), path, f"{path} as this version writes it", lineterm=""
    )
    if diff := "\n".join(lines):
        yield Difference(path, diff)


def _default_stack(project: Project, makefile: str) -> str:
    """The Makefile with the stack that the project's own one names: which one is the usual one, its owner chooses."""
    file, stack = project.folder / "Makefile", re.compile(r"^export STACK \?= (.*)$", re.MULTILINE)
    own_text = _text_of(file) if file.is_file() else ""
    present = stack.search(own_text)
    if present is None:
        return makefile
    text = stack.sub(lambda _: present[0], makefile)
    # A help text names it too, where the project was made with another stack than dev.
    return text.replace("(dev)", shown) if (shown := f"({present[1]})") in own_text else text


def _missing_policies(folder: Path, path: str, shipped: Mapping[str, Any]) -> Iterator[Difference]:
    """Policies of a pack that the project's limits do not configure; values are the project's own."""
    file = folder / path
    if not file.is_file():
        return
    try:
        present = json.loads(_text_of(file))
    except ValueError as error:
        raise UserError(Problem(path, None, f"it is not valid JSON: {error}.", "correct it.")) from None
    if not isinstance(present, dict):
        consequence = "it is not an object, so it configures no policy."
        raise UserError(Problem(path, None, consequence, "write an object with the name of a policy as each key."))
    lines = [f"+{json.dumps(name)}: {json.dumps(keys)}" for name, keys in shipped.items() if name not in present]
    if lines:
        yield Difference(path, "\n".join(lines))


def _stack_differences(project: Project, stack: str) -> Iterator[Difference]:
    name, newest = f"Pulumi.{stack}.yaml", str(Settings.model_fields["vllm_version"].default)
    try:
        configuration = project.configuration(stack)
    except UserError as error:
        yield Difference(name, f"  it cannot be read: {one_line(error)}")
        return
    release = str(configuration.get("vllm_version") or newest)
    if release != newest:
        yield Difference(name, f"-{setting('vllm_version')}: {release}\n+{setting('vllm_version')}: {newest}")
    try:
        make_plan(configuration, project=project.cloud_project(stack) or _PROJECT, stack=stack, models=project.models())
    except PlanError as error:
        yield Difference(name, f"  the installed catalogue and planner refuse it:\n{error}")


def _text_of(file: Path) -> str:
    try:
        if file.stat().st_size > _MOST_BYTES:
            consequence = f"it has {file.stat().st_size} bytes: comparing it could take hours."
            raise UserError(Problem(file.name, None, consequence, f"shorten it to {_MOST_BYTES} bytes."))
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        consequence = f"it cannot be read as text: {error}."
        raise UserError(Problem(file.name, None, consequence, "restore it, or make it readable.")) from None
