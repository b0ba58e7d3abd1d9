"""Documents of a preview and of a deployment: what changes, what it costs, what the policies say, as JSON and text.

`bezel ci comment` renders the JSON for a pull request. Leaves out how the values are determined (`preview`, `deploy`).
"""

from dataclasses import dataclass, field
from typing import Any, Literal

from bezel.engine.changes.figure_lines import latency_names, rates_of
from bezel.engine.changes.planned import Planned
from bezel.engine.changes.settings import SettingChange
from bezel.engine.events.values import Change, Violation
from bezel.resource_cost.price_line import price_line
from bezel.resource_cost.stack_cost import StackCost
from bezel_base.text.markdown import code, prose

Kind = Literal["preview", "deployment"]
Verdict = Literal["allowed", "refused", "failed", "deployed", "unchanged"]
OPS = ("create", "update", "replace", "delete")
PRICE_PACK = "price"
_LONGEST = 2000
"""Characters of a message that are shown."""
_SIGNS = {"create": "+", "update": "~", "replace": "+-", "delete": "-"}
_VERDICTS = {
    "allowed": "allowed",
    "refused": "refused",
    "failed": "failed",
    "deployed": "deployed",
    "unchanged": "no changes",
}


@dataclass
class ChangeReport:
    """Report of a preview or a deployment of a stack.

    Attributes:
        kind: Which of the two.
        stack: The stack's name.
        tree: Hash of the tree that was previewed.
        commit: Hash of the commit.
        state_digest: Digest of the state that the changes start from.
        changes_digest: Digest of the planned changes.
        verdict: The outcome.
        changes: The planned or completed changes.
        before: Price of the state's resources; None where it was not determined.
        after: Price after the changes.
        violations: What the policy packs report.
        fit: How the model fits into the memory, as the plan says.
        quota: Quotas and their use, as the program tells the run.
        quota_warnings: Those of them that say that a quota is too full, or not known.
        rollbacks: What the program says of a rollback that this deploy ends.
        problems: What failed, and what refuses.
        notes: What a reader should know besides.
        outputs: Names of the stack's outputs that change.
        settings: Keys of the stack's file that change, since its last deploy.
        uncommitted: Files of the checkout that differ from the commit's tree, whose verdict this is not.
        project: Name of the Pulumi project.
        url: Address of the service, or of the gateway in front of leases, after a deployment; None where it has none.
        planned: The changes in their common form; not part of the document.
        more: Further parts of the document, by their names.
        opening: Lines of the text that come first, such as what judges; not part of the document.
    """

    kind: Kind
    stack: str
    tree: str
    commit: str
    state_digest: str = ""
    changes_digest: str = ""
    verdict: Verdict = "failed"
    changes: tuple[Change, ...] = ()
    before: StackCost | None = None
    after: StackCost | None = None
    violations: tuple[Violation, ...] = ()
    fit: str | None = None
    quota: tuple[str, ...] = ()
    quota_warnings: tuple[str, ...] = ()
    rollbacks: tuple[str, ...] = ()
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    outputs: tuple[str, ...] = ()
    settings: tuple[SettingChange, ...] = ()
    uncommitted: tuple[str, ...] = ()
    project: str = ""
    url: str | None = None
    planned: tuple[Planned, ...] = ()
    more: dict[str, object] = field(default_factory=dict)
    opening: tuple[str, ...] = ()

    def as_json(self) -> dict[str, object]:
        """The document, as other commands of the pipeline read it."""
        return {
            "kind": self.kind,
            "project": self.project,
            "stack": self.stack,
            "tree": self.tree,
            "commit": self.commit,
            "state_digest": self.state_digest,
            "changes_digest": self.changes_digest,
            "verdict": self.verdict,
            "changes": {
                op: [_row(change) for change in self.cloud_changes(op)] for op in OPS if self.cloud_changes(op)
            },
            "price": {name: cost and cost.as_json() for name, cost in (("before", self.before), ("after", self.after))},
            "violations": [
                {
                    "pack": item.pack,
                    "policy": item.policy,
                    "level": "mandatory" if item.refuses else item.level,
                    "resource": item.resource,
                    "message": item.message,
                }
                for item in self.violations
            ],
            "fit": self.fit,
            "quota": list(self.quota),
            "problems": list(self.problems),
            "notes": list(self.notes),
            "outputs": list(self.outputs),
            "settings": [change.as_json() for change in self.settings],
            "uncommitted": list(self.uncommitted),
            **({"url": self.url} if self.kind == "deployment" else {}),
            **self.more,
        }

    def cloud_changes(self, op: str) -> list[Change]:
        """The changes of one kind in the cloud: no components, no default providers; an import is a new resource."""
        same = {"create": ("create", "import")}.get(op, (op,))
        listed = [change for change in self.changes if change.op in same]
        return [change for change in listed if change.custom and not change.is_default_provider]

    def verdicts(self) -> list[Violation]:
        """What the packs report, without the advice of the pack that only repeats the price."""
        return [item for item in self.violations if item.refuses or item.pack != PRICE_PACK]

    def text(self) -> str:
        """The report for a terminal."""
        # The price comes first: a list of changes is as long as it is.
        lines = [self._headline(), *self.opening, f"price: {price_line(self.before, self.after)}"]
        lines += [f"address: {_flat(self.url)}"] if self.url else []
        lines += ["", *(f"  setting {change.text()}" for change in self.settings)]
        for op in OPS:
            lines += [f"  {_SIGNS[op]:<2} {_line(change)}" for change in self.cloud_changes(op)]
        lines += [""] if self.changes or self.settings else []
        lines += [f"outputs: {', '.join(self.outputs)}"] if self.outputs else []
        lines += [f"fit: {self.fit}"] if self.fit else []
        lines += [f"quota: {line}" for line in self.quota]
        lines += [f"smoke: {smoke_line(self.more['smoke'])}"] if self.more.get("smoke") else []
        lines += [f"{_level(item)} {item.policy} ({item.resource}): {_flat(item.message)}" for item in self.verdicts()]
        lines += [f"problem: {text}" for text in self.problems]
        lines += [f"note: {text}" for text in self.notes]
        lines += ["", f"tree {self.tree}", f"changes {self.changes_digest}", f"state {self.state_digest}"]
        return "\n".join(lines) + "\n"

    def markdown(self) -> str:
        """The report for the summary of a forge's run."""
        rows = [f"- setting {code(change.text(), _LONGEST)}" for change in self.settings]
        rows += [f"- {op} {code(_line(change))}" for op in OPS for change in self.cloud_changes(op)]
        opening = [prose(line, _LONGEST) for line in self.opening]
        price = f"Price: {prose(price_line(self.before, self.after), _LONGEST)}"
        parts = [f"### {prose(self._headline())}", *opening, price]
        parts += [f"Address: {code(self.url)}"] if self.url else []
        parts += ["\n".join(rows)]
        parts += [f"Outputs: {', '.join(map(code, self.outputs))}"] if self.outputs else []
        parts += [f"Fit: {prose(self.fit, 300)}"] if self.fit else []
        parts += [f"Smoke: {prose(smoke_line(self.more['smoke']), _LONGEST)}"] if self.more.get("smoke") else []
        parts += [
            f"**{_level(item)}** {code(item.policy)} ({code(item.resource)}): {prose(item.message, _LONGEST)}"
            for item in self.verdicts()
        ]
        parts += [f"Problem: {prose(text, _LONGEST)}" for text in self.problems]
        parts += [f"Note: {prose(text, _LONGEST)}" for text in self.notes]
        return "\n\n".join([*filter(None, parts), f"Changes {code(self.changes_digest)}"]) + "\n"

    def _headline(self) -> str:
        counts = (
            ", ".join(f"{len(self.cloud_changes(op))} to {op}" for op in OPS if self.cloud_changes(op)) or "no changes"
        )
        if self.verdict == "deployed":
            counts = (
                ", ".join(f"{len(self.cloud_changes(op))} {_DONE[op]}" for op in OPS if self.cloud_changes(op))
                or "no changes"
            )
        if self.verdict == "failed" and not self.changes:
            counts = "changes unknown"
        verdict = _VERDICTS[self.verdict]
        if self.uncommitted:
            verdict = f"{verdict}, with uncommitted changes ({', '.join(self.uncommitted)})"
        return f"{self.stack}: {verdict}" if verdict == counts else f"{self.stack}: {verdict}; {counts}"


_DONE = {"create": "created", "update": "updated", "replace": "replaced", "delete": "deleted"}


def smoke_line(smoke: Any) -> str:
    """The smoke check as a line: its verdict, its checks, and the figures of the short benchmark, if it measured.

    Args:
        smoke: `smoke` of a deployment's document.
    """
    verdict = {True: "passed", False: "failed"}.get(smoke["ok"], "not judged")
    parts = [f"{verdict} ({', '.join(sorted(smoke['checks']))})" if smoke["checks"] else verdict]
    parts += [smoke["detail"]] if smoke["detail"] else []
    figures = smoke["figures"]
    named = ((name, figures.get(name)) for name in latency_names(figures))
    parts += [f"{name} p50 {row['p50']}" for name, row in named if isinstance(row, dict) and row.get("p50") is not None]
    parts += rates_of(figures)
    return "; ".join(parts) + (" (simulated)" if smoke["simulated"] else "")


def _row(change: Change) -> dict[str, object]:
    return {"name": change.name, "type": change.type, "properties": list(change.properties)}


def _line(change: Change) -> str:
    properties = f": {', '.join(change.properties)}" if change.properties else ""
    return f"{change.name} ({change.type}){properties}"


def _level(item: Violation) -> str:
    return "refused by" if item.refuses else "advice of"


def _flat(text: str) -> str:
    return " ".join(text.split())
