"""Explanation of a name: a constraint, a checkpoint, hardware, a vLLM option or a variable. Asks no cloud.

Says only what is recorded, with its source; a name that nothing records is refused with the nearest ones. Leaves
whether a whole stack works to `plan`, which applies all rules together.
"""

import difflib
from collections.abc import Iterator
from typing import Annotated

from pydantic import Field, StringConstraints

from bezel.operations.arguments.model import Arguments, Option, Reach, Word
from bezel.operations.context import Context
from bezel.operations.explain import checkpoints, policies, settings, variables, vllm_options
from bezel.operations.explain.entry import Entry
from bezel.operations.results import Result
from bezel.planner.base.settings import Settings
from bezel_base.errors import Problem, WrongValueError
from bezel_base.terminal.blocks import Block, Line
from bezel_catalog import NotInCatalogueError, agrees_in_numbers, vllm_versions
from bezel_catalog.models import using_models
from bezel_catalog.project_models import read_project_models

_MOST_NEAR = 5
_LIKENESS = 0.6
_RELEASE = str(Settings.model_fields["vllm_version"].default)


class ExplainArguments(Arguments):
    """Which name."""

    subject: Annotated[
        str,
        StringConstraints(strip_whitespace=True, min_length=1, max_length=200),
        Reach.INSIDE,
        Word("NAME", dashed=True),
    ] = Field(description="its name, e.g. scaling.max_instances, gemma-4-12b-it, --max-model-len")
    vllm_version: Annotated[str, Reach.INSIDE, Option("RELEASE")] = Field(
        _RELEASE,
        max_length=100,
        description="recorded release (default: that of a stack without one)",
    )


class Explanation(Result):
    """What is recorded of a name."""

    subject: str
    entries: tuple[Entry, ...] = Field(description="one for each kind of thing that has the name")
    near: tuple[str, ...] = Field(description="similar names")

    def page(self) -> Iterator[Block]:
        """The entries, then the similar names."""
        for number, entry in enumerate(self.entries):
            yield from (Line(),) if number else ()
            yield from entry.page()
        if self.near:
            yield Line(f"similar: {', '.join(self.near)}")


def explain(context: Context, arguments: ExplainArguments) -> Explanation:
    """What is allowed for a name, and why.

    Raises:
        WrongValueError: Nothing records the name, or the release.
    """
    subject, version = arguments.subject, arguments.vllm_version
    if version not in vllm_versions():
        consequence = "no options of this release are recorded."
        repair = f"choose one of {', '.join(vllm_versions())}."
        raise WrongValueError(Problem("--vllm-version", version, consequence, repair))
    with using_models(read_project_models(context.folder)):
        return _explanation(context, subject, version)


def _explanation(context: Context, subject: str, version: str) -> Explanation:
    try:
        entries = [
            *policies.entries(subject, context.folder),
            *settings.entries(subject),
            *checkpoints.entries(subject),
            *vllm_options.entries(subject, version),
            *variables.entries(subject, version),
        ]
    except NotInCatalogueError as error:
        raise WrongValueError(str(error)) from None
    near = _near(subject, version)
    if not entries:
        hint = f"did you mean {', '.join(near)}?" if near else "`bezel catalog show` lists what the catalogue knows."
        consequence = f"no policy, setting, checkpoint, hardware, option or variable of vLLM {version} has this name."
        raise WrongValueError(Problem("NAME", subject, consequence, hint))
    shown = {entry.name.lower().removeprefix("bezel:") for entry in entries}
    return Explanation(
        subject=subject, entries=tuple(entries), near=tuple(name for name in near if name.lower() not in shown)
    )


def _near(subject: str, version: str) -> list[str]:
    """Similar names of any kind, an option with its dashes."""
    options = {f"--{name}": name for name in vllm_options.names(version)}
    others = (*policies.names(), *settings.names(), *checkpoints.names(), *variables.names(version))
    spelled = {**{name.lower(): name for name in others}, **{name: flag for flag, name in options.items()}}
    word = subject.lower().lstrip("-").removeprefix("bezel:")
    candidates = {word, word.replace("_", "-")}
    matches = [
        spelled[name]
        for candidate in sorted(candidates)
        for name in difflib.get_close_matches(candidate, spelled, n=_MOST_NEAR, cutoff=_LIKENESS)
        if agrees_in_numbers(candidate, name)
    ]
    return list(dict.fromkeys(name for name in matches if name.lower().lstrip("-") != word))[:_MOST_NEAR]
