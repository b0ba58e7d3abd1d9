"""The `pulumi` command after `bezel local env`: the CLI itself, in a folder where copies stand for the stack files.

Pulumi writes its keys, and what `pulumi config set` changes, into the stack file beside Pulumi.yaml; many of its
commands take no other file. So it runs in a folder of localcloud that has links to everything of the project and
copies of Pulumi.yaml and of the stack files: no file of the project changes. A copy is renewed when its stack file has
changed; until then it keeps what pulumi wrote. Imports little: every plain `pulumi` waits for it. Leaves out the
engine's environment (`engine`), which the shell has already.
"""

import hashlib
import json
import os
import shlex
import shutil
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from bezel.engine import LOCAL_PULUMI
from bezel.engine.local.project_places import command_folder, copies_folder, make_private
from bezel.engine.local.stack_copy import copy_of
from bezel.engine.project.folder import PROJECT_FILE
from bezel_base.atomic_write import write_whole

VARIABLE = LOCAL_PULUMI
_SEEN = ".stack-files.json"
# Commands that read no stack: they stay in the user's folder, where their relative paths are meant.
_ELSEWHERE = frozenset(
    (
        *("new", "convert", "login", "logout", "whoami", "version", "gen-completion", "plugin", "package", "schema"),
        *("policy", "org", "install", "template", "help", "project", "api", "do", "env", "neo", "insights"),
    )
)
# Options that name files, of Pulumi 3.274's commands that read a stack.
_PATHS = frozenset(
    (
        *("--save-plan", "--plan", "--import-file", "--generate-resources", "--policy-pack", "--policy-pack-config"),
        *("--event-log", "--file", "--out", "--path"),
    )
)
_IMPORT_PATHS = {"-f", "-o"}
_CONFIG_FILE = "--config-file"
_FOLDER = ("-C", "--cwd")
# Global options with a value of their own, before which no command is looked for.
_VALUED = {"--color", "--tracing", "--profiling", "--memprofilerate", "--otel-traces", "-v", "--verbose", *_FOLDER}
# The one command that reads a stack and names a file without an option, and its options with a value.
_GRAPH = ["stack", "graph"]
_GRAPH_VALUED = {"-s", "--stack", "--dependency-edge-color", "--dot-fragment", "--parent-edge-color"}


def install(project: Path, cloud: Path, name: str) -> dict[str, str]:
    """Write the command into localcloud's folder; return the variables by which a shell finds it.

    Args:
        project: Folder of the Pulumi project.
        cloud: localcloud's folder.
        name: The project's name.
    """
    script = command_folder(cloud.resolve(), name) / "pulumi"
    make_private(cloud.resolve(), script.parent)
    places = [str(project.resolve()), str(cloud.resolve()), name]
    command = [sys.executable, "-P", "-m", "bezel.engine.local.shell_pulumi", *places]
    write_whole(script, f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n', mode=0o700)
    return {VARIABLE: str(script)}


def run(project: Path, cloud: Path, name: str, arguments: Sequence[str]) -> None:
    """Become the Pulumi CLI, in the folder with the copies where the arguments concern the project's stacks.

    Args:
        project: Folder of the Pulumi project.
        cloud: localcloud's folder.
        name: The project's name.
        arguments: Arguments of `pulumi`.

    Raises:
        OSError: There is no Pulumi CLI, or the folder cannot be written.
    """
    environment = {name: value for name, value in os.environ.items() if name != VARIABLE}
    own_folder = command_folder(cloud, name)
    entries = [entry for entry in environment.get("PATH", "").split(os.pathsep) if Path(entry) != own_folder]
    environment["PATH"] = os.pathsep.join(entries)
    beside = Path(sys.executable).parent / "pulumi"
    command = str(beside) if beside.exists() else shutil.which("pulumi", path=environment["PATH"])
    if command is None:
        raise FileNotFoundError("the Pulumi CLI is neither beside this Python nor on PATH: run `make setup`")
    here, others = _folder_of(arguments)
    if not _concerns_stacks(here, project, cloud) or command_of(others) in _ELSEWHERE:
        os.execve(command, [command, *arguments], environment)  # noqa: S606 - an argument list, never a shell's
    view = renew(project, cloud, name)
    inside = view / here.relative_to(project)
    os.chdir(inside)
    environment["PWD"] = str(inside)  # the engine looks for Pulumi.yaml above this path, not above the link's target
    os.execve(command, [command, *with_paths(others, here, project, view)], environment)  # noqa: S606 - as above


def renew(project: Path, cloud: Path, name: str) -> Path:
    """Bring the folder with the links and the copies up to date; return it.

    Args:
        project: Folder of the Pulumi project.
        cloud: localcloud's folder.
        name: The project's name.
    """
    view = copies_folder(cloud, name)
    make_private(cloud, view)
    _link(project, cloud, view)
    seen = _recorded_digests(view)
    digests: dict[str, str] = {}
    for file in sorted(project.glob("Pulumi.*.yaml")):
        text, copy = file.read_text(encoding="utf-8"), view / file.name
        digests[file.name] = hashlib.sha256(text.encode()).hexdigest()
        if not copy.exists() or seen.get(file.name) != digests[file.name]:
            write_whole(copy, copy_of(text, copy.read_text(encoding="utf-8") if copy.exists() else ""), mode=0o600)
    for name, content in (
        (PROJECT_FILE, (project / PROJECT_FILE).read_text(encoding="utf-8")),
        (_SEEN, json.dumps(digests)),
    ):
        if not (view / name).exists() or (view / name).read_text(encoding="utf-8") != content:
            write_whole(view / name, content, mode=0o600)
    return view


def _link(project: Path, cloud: Path, view: Path) -> None:
    """Link everything of the project but what has a copy, and localcloud's own folder; remove links to what is gone."""
    wanted = {
        entry.name: entry
        for entry in project.iterdir()
        if not _has_copy(entry.name) and not cloud.is_relative_to(entry)
    }
    for link in view.iterdir():
        if link.is_symlink() and (link.name not in wanted or link.readlink() != wanted[link.name]):
            link.unlink(missing_ok=True)
    for name, entry in wanted.items():
        with suppress(FileExistsError):  # another `pulumi` was faster, or pulumi wrote a file of that name
            (view / name).symlink_to(entry)


def _has_copy(name: str) -> bool:
    return name in (PROJECT_FILE, _SEEN) or (name.startswith("Pulumi.") and name.endswith(".yaml"))


def _recorded_digests(view: Path) -> Mapping[str, str]:
    """Digests of the stack files that the copies were made from."""
    try:
        digests = json.loads((view / _SEEN).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return digests if isinstance(digests, dict) else {}


def _folder_of(arguments: Sequence[str]) -> tuple[Path, list[str]]:
    """The folder in which pulumi is to run, and the arguments without the option that names it."""
    here, others = Path.cwd(), []
    rest = iter(arguments)
    for argument in rest:
        name, is_joined, value = argument.partition("=")
        if argument == "--":
            others += [argument, *rest]
        elif name in _FOLDER:
            here /= value if is_joined else next(rest, "")
        elif argument.startswith("-C") and not argument.startswith("--"):
            here /= argument[2:]
        else:
            others.append(argument)
    return here.resolve(), others


def _concerns_stacks(here: Path, project: Path, cloud: Path) -> bool:
    """Whether the nearest Pulumi.yaml of a folder is the project's."""
    if here.is_relative_to(cloud) or not here.is_relative_to(project):
        return False
    return next((folder for folder in (here, *here.parents) if (folder / PROJECT_FILE).exists()), None) == project


def command_of(arguments: Sequence[str]) -> str:
    """The first word of the arguments that is no option; "" for none."""
    return next((arguments[place] for place in _places_of_words(arguments, _VALUED)), "")


def _places_of_words(arguments: Sequence[str], valued: Collection[str]) -> Iterator[int]:
    """Places of the arguments that are neither options nor the values of those in `valued`, up to `--`."""
    places = iter(range(len(arguments)))
    for place in places:
        if arguments[place] == "--":
            return
        if arguments[place] in valued:
            next(places, None)
        elif not arguments[place].startswith("-"):
            yield place


def _with_graph_file(arguments: Sequence[str], here: Path) -> list[str]:
    """The arguments with the file of `stack graph` named as seen from the user's folder."""
    changed = list(arguments)
    places = [*_places_of_words(arguments, _VALUED | _GRAPH_VALUED)]
    if [arguments[place] for place in places[:2]] == _GRAPH:
        for place in places[2:]:
            changed[place] = os.path.normpath(here / arguments[place])
    return changed


def with_paths(arguments: Sequence[str], here: Path, project: Path, view: Path) -> list[str]:
    """Arguments whose files are named as seen from the user's folder; a stack file is its copy."""
    names = _PATHS | (_IMPORT_PATHS if command_of(arguments) == "import" else set())
    changed: list[str] = []
    rest = iter(_with_graph_file(arguments, here))
    for argument in rest:
        name, is_joined, value = argument.partition("=")
        if argument == "--":
            return [*changed, argument, *rest]
        if name not in names and name != _CONFIG_FILE:
            changed.append(argument)
            continue
        paths = value if is_joined else next(rest, None)
        if paths is None:
            changed.append(argument)
            continue
        shown = ",".join(_absolute_path(path, here, project, view, name) for path in paths.split(","))
        changed += [f"{name}={shown}"] if is_joined else [name, shown]
    return changed


def _absolute_path(path: str, here: Path, project: Path, view: Path, option: str) -> str:
    if not path:
        return path
    file = Path(os.path.normpath(here / path))
    if option == _CONFIG_FILE and file.resolve().parent == project and _has_copy(file.name):
        return str(view / file.name)
    return str(file)


if __name__ == "__main__":
    try:
        run(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], sys.argv[4:])
    except OSError as error:
        sys.exit(f"bezel: pulumi cannot be started on localcloud: {error}")
