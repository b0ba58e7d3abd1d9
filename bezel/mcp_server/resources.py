"""Resources of the server: the table of stacks, the plan of each stack, and the project's documents.

A document is named, never a path, and a link that leads out of the folder of documents is none: nothing outside of the
folder can be read. A project that is read for some stacks only has the plans of no other.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from mcp_types import Resource

if TYPE_CHECKING:
    from bezel.engine.project.project import Project

STACKS, PLAN, DOCS = "bezel://stacks", "bezel://plan/", "bezel://docs/"
_MARKDOWN, _TEXT = "text/markdown", "text/plain"
MAX_TEXT = 100_000


class NoSuchResourceError(Exception):
    """There is no resource of that name."""


def resources(project: "Project") -> list[Resource]:
    """The resources of a project."""
    return [
        Resource(uri=STACKS, name="stacks", description="stacks with a file in the project", mime_type=_TEXT),
        *(
            Resource(uri=f"{PLAN}{stack}", name=f"plan of {stack}", description="values, cost, fit", mime_type=_TEXT)
            for stack in project.stacks()
        ),
        *(
            Resource(uri=f"{DOCS}{name}", name=f"docs/{name}.md", mime_type=_MARKDOWN)
            for name in sorted(_documents(project.folder))
        ),
    ]


def read(project: "Project", uri: str) -> tuple[str, str]:
    """The text of a resource and its MIME type.

    Raises:
        NoSuchResourceError: There is none of that name.
        UserError: The stack cannot be planned.
    """
    if uri == STACKS:
        return "".join(f"{stack}\n" for stack in project.stacks()), _TEXT
    if (stack := uri.removeprefix(PLAN)) != uri and stack in project.stacks():
        return _plan(project, stack), _TEXT
    if (name := uri.removeprefix(DOCS)) != uri and name in (documents := _documents(project.folder)):
        with documents[name].open(encoding="utf-8", errors="replace") as document:
            return document.read(MAX_TEXT), _MARKDOWN
    raise NoSuchResourceError(uri)


def _documents(folder: Path) -> dict[str, Path]:
    docs = (folder / "docs").resolve()
    if not docs.is_relative_to(folder.resolve()):
        return {}
    return {file.stem: file for file in docs.glob("*.md") if file.is_file() and file.resolve().parent == docs}


def _plan(project: "Project", stack: str) -> str:
    from bezel.operations.context import Context
    from bezel.operations.plan.plan import PlanArguments, plan

    return plan(Context(project.folder, scope=project.scope), PlanArguments(stack=stack)).text()
