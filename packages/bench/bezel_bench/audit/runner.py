"""Runner of the audit: read every file, then apply every check to all of them together.

A file that cannot be read does not keep the others from being audited.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bezel_base.errors import Problem, UserError
from bezel_bench.audit.checks.figures import chunks, directions, gaps, lengths, means, outputs, sums, totals
from bezel_bench.audit.checks.hardware import kv_precision, roofline, speculation
from bezel_bench.audit.checks.labels import copies, labelling
from bezel_bench.audit.checks.load import caps, drain, missing, queues, sending, timeouts
from bezel_bench.audit.checks.relation import relations_of
from bezel_bench.audit.findings import SEVERITIES, SUMS, AuditFinding, Open
from bezel_bench.audit.labels import machine_in, shape_in
from bezel_bench.audit.machines import EXAMPLE
from bezel_bench.audit.models import EXAMPLE as MODEL_EXAMPLE
from bezel_bench.audit.models import stated_model
from bezel_bench.audit.readers.detect import read
from bezel_bench.audit.table import AuditTable, ResultSource

# In the order of the findings' numbers.
_CHECKS = (
    means,
    copies,
    roofline,
    drain,
    timeouts,
    lengths,
    queues,
    caps,
    outputs,
    speculation,
    sums,
    chunks,
    directions,
    labelling,
    kv_precision,
    missing,
    totals,
    sending,
)


@dataclass(frozen=True, slots=True)
class Audit:
    """The result of an audit.

    Attributes:
        sources: The files that were read.
        findings: Sorted by severity, then by kind.
        questions: Checks that were not possible.
        unreadable: One text for each file that could not be read.
    """

    sources: tuple[ResultSource, ...]
    findings: tuple[AuditFinding, ...]
    questions: tuple[Open, ...]
    unreadable: tuple[str, ...]


def audit_files(paths: Sequence[Path], *, machine: str = "", model: str = "") -> Audit:
    """Audit files together; one that is named twice is read once.

    Args:
        paths: the files.
        machine: the machine of files that do not state theirs.
        model: the served model of such files.
    """
    sources, unreadable = [], []
    for path, item in _name_files(paths):
        try:
            sources.append(read(path, item, machine=machine, model=model))
        except UserError as error:
            unreadable.append(str(error))
    return audit(sources, unreadable)


def audit(sources: Sequence[ResultSource], unreadable: Sequence[str] = ()) -> Audit:
    """Apply every check to everything that was read."""
    table = AuditTable(tuple(sources))
    results = [result for check in _CHECKS for result in check.find(table)]
    findings = [result for result in results if isinstance(result, AuditFinding)]
    findings.sort(key=lambda finding: (SEVERITIES.index(finding.severity), finding.kind, finding.items))
    questions = [result for result in results if isinstance(result, Open)]
    questions += [Open((SUMS,), source.item, doubt) for source in sources for doubt in source.doubts]
    return Audit(table.sources, tuple(findings), tuple(questions), tuple(unreadable))


def check_labels(machine: str, model: str) -> None:
    """Refuse the options of a command that name nothing.

    Raises:
        UserError: A machine or a model is neither in the catalogue nor described.
    """
    for option, label, entry, how in (
        ("--machine", machine, machine_in(machine), f"memory, bandwidth and FLOP/s, as in {EXAMPLE!r}"),
        (
            "--model",
            model,
            stated_model(model) or shape_in(model),
            f"parameters, active parameters, weights and KV cache a token, as in {MODEL_EXAMPLE!r}",
        ),
    ):
        if label and not entry:
            repair = f"choose a name of `bezel catalog show`, or describe it by {how}."
            raise UserError(Problem(option, label, "it is not in the catalogue, so nothing was audited.", repair))


def judged_relations(source: ResultSource) -> tuple[str, ...]:
    """Return the relations between figures of one load that a file was held to."""
    return relations_of(source, (*totals.RELATIONS, *gaps.RELATIONS))


def _name_files(paths: Sequence[Path]) -> list[tuple[Path, str]]:
    """Return each file once, with its name, or its path where two files have one name."""
    files = {path.resolve(): path for path in paths}
    names = [path.name for path in files.values()]
    return [(path, path.name if names.count(path.name) == 1 else str(path)) for path in files.values()]
