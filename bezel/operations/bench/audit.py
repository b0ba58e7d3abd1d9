"""Audit of benchmark results, also other people's: impossible figures, each with its arithmetic."""

from typing import Annotated, Literal

from pydantic import Field

from bezel.operations.arguments.model import Arguments, Reach
from bezel.operations.bench.files import FileName, existing
from bezel.operations.bench.texts import option_text
from bezel.operations.context import Context
from bezel.operations.redaction import clean_text
from bezel.operations.results import Result
from bezel_bench.audit.render import as_lines
from bezel_bench.audit.runner import Audit, audit_files, check_labels

_MOST_FILES, _MOST = 50, 200


class AuditArguments(Arguments):
    """Which files, and what they leave out."""

    files: Annotated[tuple[FileName, ...], Reach.INSIDE] = Field(
        min_length=1,
        max_length=_MOST_FILES,
        description=option_text("audit", "files", "below the project's folder"),
    )
    machine: Annotated[str, Reach.INSIDE] = Field("", max_length=100, description=option_text("audit", "--machine"))
    model: Annotated[str, Reach.INSIDE] = Field("", max_length=100, description=option_text("audit", "--model"))


class AuditFinding(Result):
    """An impossible or contradictory figure."""

    name: str
    severity: str
    items: tuple[str, ...] = Field(description="files and tables that are concerned")
    arithmetic: str = Field(description="why the figure is impossible")
    cells: tuple[str, ...] = Field(description="where it stands, the first 20 places")
    repair: str


class AuditReport(Result):
    """Findings in the files together."""

    files_read: tuple[str, ...]
    findings: tuple[AuditFinding, ...] = Field(description="the most serious first, at most 200")
    findings_left_out: int
    not_judged: tuple[str, ...] = Field(description="what could not be judged, because the data lack a value")
    unreadable: tuple[str, ...]
    shown: str = Field(exclude=True, repr=False)

    @property
    def exit_code(self) -> Literal[0, 2]:
        """2 where a file could not be read, as of the command."""
        return 2 if self.unreadable else 0

    def text(self) -> str:
        """The findings with their arithmetic."""
        return self.shown


def audit(context: Context, arguments: AuditArguments) -> AuditReport:
    """Audit files together.

    Raises:
        UserError: A label is not in the catalogue, or a file is not below the project's folder.
    """
    check_labels(arguments.machine, arguments.model)
    files = existing(context.folder, arguments.files, "FILE")
    return _report(audit_files(files, machine=arguments.machine, model=arguments.model))


def _report(audited: Audit) -> AuditReport:
    lines = (
        [*(line.text for line in as_lines(audited)), *audited.unreadable] if audited.sources else [*audited.unreadable]
    )
    return AuditReport(
        files_read=tuple(clean_text(source.item, 300) for source in audited.sources),
        findings=tuple(
            AuditFinding(
                name=finding.name,
                severity=finding.severity,
                items=tuple(clean_text(item, 300) for item in finding.items[:20]),
                arithmetic=clean_text(finding.arithmetic, 600),
                cells=tuple(clean_text(cell, 100) for cell in finding.cells[:20]),
                repair=finding.repair,
            )
            for finding in audited.findings[:_MOST]
        ),
        findings_left_out=max(0, len(audited.findings) - _MOST),
        not_judged=tuple(clean_text(f"{each.item}: {each.text}", 300) for each in audited.questions[:_MOST]),
        unreadable=tuple(clean_text(text, 600) for text in audited.unreadable),
        shown="\n".join(clean_text(line, 600) for line in lines) + "\n",
    )
