"""The pipeline's file, `bezel.toml` at the top of a project: deployed stacks, environments, limits of the packs.

A stack file that it does not name is an example. The file judges: what it says is not to be overruled by a stack's own
file, so the environment there has to be the same. Owns the form of the file and every problem of it at once. Leaves out
what is done with a stack (bezel.gitops), and the rules of the packs.
"""

import codecs
import difflib
import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, TypeGuard

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from bezel.engine.project.pack_limits import LARGEST, PACKS, find_defect, is_pack
from bezel.engine.project.project import STACK_NAME, Project
from bezel.planner.base.environments import PATTERN as ENVIRONMENT_PATTERN
from bezel.planner.base.environments import is_environment
from bezel_base.console import note
from bezel_base.errors import NOT_SET, Problem, UserError, format_value

FILE = "bezel.toml"
REQUIRED_PACKS = ("hardware_cost", "security")
"""Packs that judge every deploy, so each environment of a stack has a configuration for them."""
ENVIRONMENTS = ("dev", "prod")
"""Environments as shipped: those of the packs' configurations of this repository."""
PROTECTED = "prod"
_TITLE = f"{FILE} cannot be used"
_NO_FILE = (
    f"no {FILE}: every stack file counts as a stack of the pipeline with the environment in it, {PROTECTED} is "
    "protected, and each policy pack has the limits beside it"
)


class PipelineError(UserError):
    """The pipeline's file has problems; it holds all of them."""


_Environment = Annotated[str, StringConstraints(pattern=ENVIRONMENT_PATTERN)]


class _Content(BaseModel):
    """The keys of the file."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    protected_environments: list[_Environment] = Field(
        [PROTECTED], description="environments whose deploys are approved"
    )
    stacks: dict[str, _Environment] = Field(description="name of a stack -> its environment")
    packs: dict[str, dict[_Environment, str]] = Field(description="name of a pack -> environment -> its configuration")


@dataclass(frozen=True)
class Pipeline:
    """What the pipeline deploys, and under which limits.

    Attributes:
        stacks: Stack -> its environment.
        protected: Environments whose deploys are approved, and in which nothing is destroyed because it has expired.
        packs: Policy pack -> environment -> its configuration, a path below the project's folder.
        is_declared: Whether there is a file; without one every stack file counts.
    """

    stacks: Mapping[str, str]
    protected: tuple[str, ...] = (PROTECTED,)
    packs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    is_declared: bool = True

    def examples(self, project: Project) -> list[str]:
        """The stacks whose files it does not name, sorted."""
        return [stack for stack in project.stacks() if stack not in self.stacks]


def pipeline_of(project: Project) -> Pipeline:
    """The pipeline of a project; a note says what holds where it has no file.

    Raises:
        PipelineError: The file cannot be read, or has problems.
    """
    if not (project.folder / FILE).exists() and not (project.folder / FILE).is_symlink():
        note(_NO_FILE)
        return Pipeline(
            {stack: _own_environment(project, stack) or PROTECTED for stack in project.stacks()}, is_declared=False
        )
    return read_pipeline(project)


def read_pipeline(project: Project) -> Pipeline:
    """Read the file of a project.

    Raises:
        PipelineError: There is none, it cannot be read, or it has problems.
    """
    typed, problems = _validated_content(project.folder)
    problems += _of_stacks(project, typed.stacks)
    problems += _of_packs(project.folder, typed)
    problems += _of_protected(typed)
    if problems:
        raise PipelineError(*dict.fromkeys(problems), title=_TITLE)
    packs = {pack: {str(name): file for name, file in files.items()} for pack, files in typed.packs.items()}
    return Pipeline(typed.stacks, tuple(typed.protected_environments), packs)


def environment_of(project: Project, stack: str) -> object:
    """The environment whose limits hold for a stack: that of the pipeline's file, of an example that of its own file.

    Raises:
        UserError: The pipeline's file has problems, or the stack's file cannot be read.
    """
    own_environment = project.configuration(stack).get("environment")
    return (
        read_pipeline(project).stacks.get(stack, own_environment)
        if (project.folder / FILE).exists()
        else own_environment
    )


def configuration_of(pack: Path, environment: object) -> Path | None:
    """The configuration of a policy pack in an environment; None where the pack has none there.

    The file of the folder that holds the pack decides, which may be an export without the stacks' files. A pack beside
    no such file has the one named after it and the environment, e.g. `hardware_cost.dev.json`.

    Raises:
        PipelineError: That file has problems.
    """
    pack = Path(os.path.normpath(pack))
    top = pack.parent.parent
    if pack.parent.name == PACKS and (top / FILE).exists():
        typed, problems = _validated_content(top)
        if problems := [*problems, *_of_packs(top, typed)]:
            raise PipelineError(*dict.fromkeys(problems), title=_TITLE)
        named = {str(name): file for name, file in typed.packs.get(pack.name, {}).items()}.get(str(environment))
        return None if named is None else top / named
    beside = pack.parent / f"{pack.name}.{environment}.json"
    return beside if beside.is_file() else None


def _validated_content(folder: Path) -> tuple[_Content, list[Problem]]:
    """The content of a folder's file, its valid part if it has problems, and the problems of its form."""
    content = _parse_file(folder / FILE)
    try:
        return _Content.model_validate(content), []
    except ValidationError as error:
        return _usable(content), [_wrong(detail) for detail in error.errors(include_url=False)]


def _parse_file(file: Path) -> dict[str, Any]:
    def refusal(consequence: str, repair: str) -> PipelineError:
        return PipelineError(Problem(FILE, None, consequence, repair))

    try:
        # A link within a view of the project keeps the name and stands beside another Pulumi.yaml.
        target = file.resolve(strict=True)
        if target.name != FILE or not (target.parent / "Pulumi.yaml").exists():
            raise refusal(
                "it is a link to a file elsewhere, which is not reviewed as this file is.", "write the file itself."
            )
        if target.stat().st_size > LARGEST:
            raise refusal(f"it is larger than {LARGEST // 1024} KiB.", "name each stack once, and nothing else.")
        content = target.read_bytes()
        if content.startswith(codecs.BOM_UTF8):
            raise refusal(
                "it begins with a mark of the byte order, which TOML has not.", "save it as UTF-8 without BOM."
            )
        read = tomllib.loads(content.decode())
        if _has_long_integer(read):
            raise refusal("an integer in it has more than 64 bits, which TOML has not.", f"correct it; {_EXAMPLE}")
    except UnicodeDecodeError as error:
        raise refusal(f"it is not UTF-8 text: {error}.", "save it as UTF-8.") from None
    except (ValueError, RecursionError) as error:  # also an integer of more digits than Python reads
        why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        twice = " A stack, or another key, stands there twice." if "overwrite" in why or "twice" in why else ""
        raise refusal(f"it is not valid TOML: {format_value(why)}.{twice}", f"correct it; {_EXAMPLE}") from None
    except OSError as error:
        raise refusal(f"it cannot be read ({error.strerror}).", f"restore it; {_EXAMPLE}") from None
    return read


def _has_long_integer(content: object) -> bool:
    """Whether it holds one that no message can write: in base 16, Python reads integers of any length."""
    remaining = [content]
    while remaining:
        value = remaining.pop()
        if isinstance(value, int) and value.bit_length() > 64:
            return True
        remaining += value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return False


_EXAMPLE = 'a stack is one line below [stacks], e.g. `l4-qat = "dev"`.'


def _usable(content: Mapping[str, Any]) -> _Content:
    """The valid part of a file with problems, so that the rest of it is checked too."""
    stacks, packs = content.get("stacks"), content.get("packs")
    return _Content(
        stacks={name: value for name, value in _items(stacks) if _is_environment(value)},
        packs={
            name: {key: value for key, value in _items(files) if _is_environment(key) and isinstance(value, str)}
            for name, files in _items(packs)
            if isinstance(files, dict)
        },
    )


def _items(table: object) -> Iterator[tuple[str, Any]]:
    yield from table.items() if isinstance(table, dict) else ()


def _is_environment(environment: object) -> TypeGuard[str]:
    return isinstance(environment, str) and is_environment(environment)


def _wrong(detail: Any) -> Problem:
    """A problem of the file's form."""
    place = [format_value(str(part)) for part in detail["loc"] if part != "[key]"]
    key, value = f"{FILE}: {'.'.join(place)}", format_value(detail["input"])
    match detail["type"]:
        case "missing":
            return Problem(key, NOT_SET, _REQUIRED[place[0]], f"add [{place[0]}]; {_EXAMPLE}")
        case "extra_forbidden":
            near = difflib.get_close_matches(place[0], _Content.model_fields, n=1)
            hint = f"write {near[0]}, or remove it" if near else "remove it"
            known_keys = ", ".join(_Content.model_fields)
            return Problem(
                key, value, "there is no such key: it would have no effect.", f"{hint}. Known: {known_keys}."
            )
        case "string_pattern_mismatch":
            repair = "write at most 32 lower-case letters, digits and hyphens, with a letter first."
            return Problem(key, value, "no stack can have such an environment.", repair)
        case "dict_type":
            return Problem(key, value, "expected a table.", f"write {_FORMS.get(place[0], 'a table')}.")
        case "list_type":
            return Problem(key, value, "expected a list of environments.", 'write e.g. ["prod"].')
    return Problem(key, value, f"expected {_expected_kind(detail['type'])}.", f"correct it; {_EXAMPLE}")


_REQUIRED = {
    "stacks": "without it the pipeline would deploy nothing.",
    "packs": "without it the policy packs have no limits, and refuse everything.",
}
_FORMS = {
    "stacks": '[stacks] with a line for each stack, e.g. `l4-qat = "dev"`',
    "packs": f'[packs.hardware_cost] with a file for each environment, e.g. `dev = "{PACKS}/hardware_cost.dev.json"`',
}


def _expected_kind(kind: str) -> str:
    return "a text" if kind == "string_type" else kind.replace("_", " ")


def _of_stacks(project: Project, stacks: Mapping[str, str]) -> Iterator[Problem]:
    files, seen = set(project.stacks()), dict[str, str]()
    for name, environment in stacks.items():
        key = f"{FILE}: stacks.{format_value(name)}"
        if not STACK_NAME.fullmatch(name) or not name.strip("."):
            consequence = "a stack's name has at most 100 letters, digits, periods, hyphens and underscores."
            yield Problem(key, environment, consequence, "write the name without Pulumi., .yaml and folders.")
            continue
        if (twin := seen.setdefault(name.casefold(), name)) != name:
            consequence = f"it differs from {twin} by case only: on some machines both have one file."
            yield Problem(key, environment, consequence, "keep one of them.")
        if name not in files:
            near = difflib.get_close_matches(name, files, n=1) or [
                file for file in files if file.casefold() == name.casefold()
            ]
            hint = f"did you mean {near[0]}? Write" if near else "write"
            consequence = f"there is no Pulumi.{name}.yaml, so there is nothing to deploy."
            yield Problem(key, environment, consequence, f"{hint} the file, or remove the line.")
        elif (own_environment := _own_environment(project, name)) not in (None, environment):
            other = format_value(own_environment)
            consequence = f"Pulumi.{name}.yaml has bezel:environment {other}: approval and limits would differ."
            yield Problem(key, environment, consequence, "write the same environment in both.")


def _of_protected(content: _Content) -> Iterator[Problem]:
    """Protected environments that nothing else names: a misspelt one would leave the meant one without protection."""
    if "protected_environments" not in content.model_fields_set:
        return
    environments = sorted({*content.stacks.values(), *(name for files in content.packs.values() for name in files)})
    for environment in (name for name in content.protected_environments if environments and name not in environments):
        consequence = "neither a stack nor a pack below has this environment, so it protects nothing."
        repair = f"name one of {', '.join(environments)}, or remove it."
        yield Problem(f"{FILE}: protected_environments", environment, consequence, repair)


def _own_environment(project: Project, stack: str) -> str | None:
    """The environment in a stack's file; None where it cannot be read, which its plan reports."""
    try:
        return str(project.configuration(stack).get("environment") or "") or None
    except UserError:
        return None


def _of_packs(folder: Path, content: _Content) -> Iterator[Problem]:
    for pack in REQUIRED_PACKS:
        without = sorted(set(content.stacks.values()) - content.packs.get(pack, {}).keys())
        for environment in without:
            consequence = f"{environment} has stacks, and this pack would have no limits for them."
            repair = f'add {environment} = "{PACKS}/{pack}.{environment}.json".'
            yield Problem(f"{FILE}: packs.{pack}", NOT_SET, consequence, repair)
    for pack, files in content.packs.items():
        if not is_pack(folder, pack):
            consequence = f"there is no policy pack {PACKS}/{format_value(pack)}, so its limits would hold for nothing."
            yield Problem(f"{FILE}: packs.{format_value(pack)}", None, consequence, "correct the name, or remove it.")
        for environment, name in files.items():
            if why := find_defect(folder, pack, name, environment):
                key = f"{FILE}: packs.{format_value(pack)}.{environment}"
                yield Problem(key, name, why, f"name a file below {PACKS}/ with limits for {environment}.")
