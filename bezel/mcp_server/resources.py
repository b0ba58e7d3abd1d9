"""Resources of the server: the table of stacks, the plan of each stack, and the project's documents.

A document is named, never a path: nothing outside of the folder of documents can be read.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from mcp_types import Resource

if TYPE_CHECKING:
    from bezel.pulumi_engine.project import Project

STACKS, PLAN, DOCS = "bezel://stacks", "bezel://plan/", "bezel://docs/"
_MARKDOWN, _TEXT = "text/markdown", "text/plain"
MAX_TEXT = 100_000


class NoSuchResourceError(Exception):
    """There is no resource of that name."""


def resources(project: "Project", stacks: tuple[str, ...]) -> list[Resource]:
    """The resources of a project.

    Args:
        project: The Pulumi project.
        stacks: The only stacks that are served; empty for all.
    """
    return [
        Resource(uri=STACKS, name="stacks", description="stacks with a file in the project", mime_type=_TEXT),
        *(
            Resource(uri=f"{PLAN}{stack}", name=f"plan of {stack}", description="values, cost, fit", mime_type=_TEXT)
            for stack in _served(project, stacks)
        ),
        *(
            Resource(uri=f"{DOCS}{name}", name=f"docs/{name}.md", mime_type=_MARKDOWN)
            for name in sorted(_documents(project.folder))
        ),
    ]


def read(project: "Project", stacks: tuple[str, ...], uri: str) -> tuple[str, str]:
    """The text of a resource and its MIME type.

    Raises:
        NoSuchResourceError: There is none of that name.
        UserError: The stack cannot be planned.
    """
    if uri == STACKS:
        return "".join(f"{stack}\n" for stack in _served(project, stacks)), _TEXT
    if (stack := uri.removeprefix(PLAN)) != uri and stack in _served(project, stacks):
        return _plan(project, stack), _TEXT
    if (name := uri.removeprefix(DOCS)) != uri and name in (documents := _documents(project.folder)):
        return documents[name].read_text(encoding="utf-8")[:MAX_TEXT], _MARKDOWN
    raise NoSuchResourceError(uri)


def _served(project: "Project", stacks: tuple[str, ...]) -> list[str]:
    return [stack for stack in project.stacks() if not stacks or stack in stacks]


def _documents(folder: Path) -> dict[str, Path]:
    return {file.stem: file for file in (folder / "docs").glob("*.md") if file.is_file()}


def _plan(project: "Project", stack: str) -> str:
    from bezel.operations.context import Context
    from bezel.operations.plan import PlanArguments, plan

    return plan(Context(project.folder), PlanArguments(stack=stack)).text()
