"""Resources of the server: the table of stacks, files and plans of stacks, benchmark results, and documents.

A document is named, never a path, and a link that leads out of the folder of documents is none: nothing outside of the
folder can be read. A project that is read for some stacks only has the files and plans of no other.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from mcp_types import Resource, ResourceTemplate

if TYPE_CHECKING:
    from bezel.engine.project.project import Project

STACKS, STACK, PLAN = "bezel://stacks", "bezel://stack/", "bezel://plan/"
RESULT, DOCS = "bezel://result/", "bezel://docs/"
_MARKDOWN, _TEXT, _YAML = "text/markdown", "text/plain", "application/yaml"
MAX_TEXT = 100_000
_LONGEST_URI = 2000


class NoSuchResourceError(Exception):
    """There is no resource of that name; the text says why."""


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


def templates() -> list[ResourceTemplate]:
    """The forms of the addresses, each with what it names."""
    rows = (
        (f"{STACK}{{stack}}", "file of a stack", "its settings, with comments", _YAML),
        (f"{PLAN}{{stack}}", "plan of a stack", "values with their origins, cost, fit", _TEXT),
        (f"{RESULT}{{+file}}", "benchmark result", "tables of a result file below the project's folder", _MARKDOWN),
        (f"{DOCS}{{page}}", "document", "a page of the project's docs folder", _MARKDOWN),
    )
    return [
        ResourceTemplate(uri_template=uri, name=name, description=text, mime_type=kind)
        for uri, name, text, kind in rows
    ]


def read(project: "Project", uri: str) -> tuple[str, str]:
    """The text of a resource and its MIME type.

    Raises:
        NoSuchResourceError: There is none of that name.
        UserError: The stack cannot be planned, or the result not read.
    """
    if len(uri) > _LONGEST_URI:
        raise NoSuchResourceError(f"an address has {_LONGEST_URI} characters at most")
    if uri == STACKS:
        return "".join(f"{stack}\n" for stack in project.stacks()), _TEXT
    for prefix, (reads, kind) in _READERS.items():
        if uri.startswith(prefix):
            return reads(project, unquote(uri.removeprefix(prefix)))[:MAX_TEXT], kind
    forms = ", ".join([STACKS, *(each.uri_template for each in templates())])
    raise NoSuchResourceError(f"expected one of {forms}")


def _check_stack(project: "Project", stack: str) -> None:
    if stack not in project.stacks():
        raise NoSuchResourceError(f"there is no stack of that name; {STACKS} lists them")


def _file(project: "Project", stack: str) -> str:
    _check_stack(project, stack)
    from bezel_base.text.redaction import redact_forms

    file = project.stack_file(stack)
    if not file.resolve().is_relative_to(project.folder.resolve()):
        raise NoSuchResourceError("the stack's file is a link to a file outside of the project's folder")
    with file.open(encoding="utf-8", errors="replace") as opened:
        return redact_forms(opened.read(MAX_TEXT))


def _plan(project: "Project", stack: str) -> str:
    _check_stack(project, stack)
    from bezel.operations.context import Context
    from bezel.operations.plan.plan import PlanArguments, plan

    return plan(Context(project.folder, scope=project.scope), PlanArguments(stack=stack, all=True)).text()


def _result(project: "Project", name: str) -> str:
    from pydantic import ValidationError

    from bezel.operations.bench.report import ReportArguments, report
    from bezel.operations.context import Context

    try:
        arguments = ReportArguments(results=(name,))
    except ValidationError:
        raise NoSuchResourceError("the name of a file has 1 to 300 characters") from None
    return report(Context(project.folder, scope=project.scope), arguments).text()


def _document(project: "Project", name: str) -> str:
    if name not in (documents := _documents(project.folder)):
        raise NoSuchResourceError("there is no such document; the list of resources names them")
    with documents[name].open(encoding="utf-8", errors="replace") as document:
        return document.read(MAX_TEXT)


def _documents(folder: Path) -> dict[str, Path]:
    docs = (folder / "docs").resolve()
    if not docs.is_relative_to(folder.resolve()):
        return {}
    return {file.stem: file for file in docs.glob("*.md") if file.is_file() and file.resolve().parent == docs}


_READERS: dict[str, tuple[Callable[["Project", str], str], str]] = {
    STACK: (_file, _YAML),
    PLAN: (_plan, _TEXT),
    RESULT: (_result, _MARKDOWN),
    DOCS: (_document, _MARKDOWN),
}
