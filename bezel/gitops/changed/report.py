"""Report of `bezel ci changed`: the stacks with their reasons, and the matrix for a workflow."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from bezel.gitops.changed.rules import Concerned, Reason
from bezel_base.text.markdown import code, prose

_SHOWN = 3  # reasons of a stack in text and Markdown; JSON has all


@dataclass(frozen=True)
class ChangedReport:
    """The stacks that the commits between two revisions concern.

    Attributes:
        base: The commit before.
        head: The commit after.
        concerned: The stacks with their reasons.
        environments: The environment of each stack that the pipeline deploys, as `bezel.toml` has it; its protection
            at the forge holds for the deploy.
    """

    base: str
    head: str
    concerned: Concerned
    environments: Mapping[str, str] = field(default_factory=dict)

    @property
    def stacks(self) -> list[str]:
        """Names of the stacks."""
        return list(self.concerned.reasons)

    @property
    def matrix(self) -> dict[str, list[dict[str, str]]]:
        """The matrix of a workflow's job: one job a stack."""
        named = self.environments
        return {"include": [{"stack": stack, "environment": named.get(stack, "")} for stack in self.stacks]}

    def as_json(self) -> dict[str, object]:
        """The content as JSON."""
        reasons = self.concerned.reasons
        return {
            "kind": "changed",
            "base": self.base,
            "head": self.head,
            "every": list(map(str, self.concerned.every)),
            "stacks": [{"stack": stack, "reasons": list(map(str, reasons[stack]))} for stack in self.stacks],
            "deleted": list(self.concerned.deleted),
            "examples": [
                {"stack": stack, "reasons": list(map(str, why))} for stack, why in self.concerned.examples.items()
            ],
            "released": list(self.concerned.released),
            "matrix": self.matrix,
        }

    def outputs(self) -> str:
        """Lines for the file GITHUB_OUTPUT: what later jobs of a workflow read."""
        values: dict[str, object] = {
            "matrix": self.matrix,
            "stacks": self.stacks,
            "deleted": list(self.concerned.deleted),
            "examples": list(self.concerned.examples),
        }
        count = {"count": len(self.stacks)}
        return "".join(f"{name}={json.dumps(value)}\n" for name, value in (values | count).items())

    def text(self) -> str:
        """The content for a terminal."""
        lines = [f"{stack}: {'; '.join(map(str, self._shown_reasons(stack)))}" for stack in self.stacks]
        lines += [f"{stack}: {text}" for stack, text in self._unchanged_stacks()]
        lines = lines or ["no stack is concerned"]
        if self.concerned.examples:
            lines.append(_EXAMPLES + ", ".join(self.concerned.examples))
        return "\n".join(lines) + "\n"

    def markdown(self) -> str:
        """The content for the run's summary."""
        lines = [
            f"- {code(stack)}: {'; '.join(_code(reason) for reason in self._shown_reasons(stack))}"
            for stack in self.stacks
        ]
        lines += [f"- {code(stack)}: {text}" for stack, text in self._unchanged_stacks()]
        lines = lines or ["None."]
        if self.concerned.examples:
            lines += ["", _EXAMPLES + ", ".join(map(code, self.concerned.examples))]
        return "\n".join(["### Stacks that this change concerns", "", *lines]) + "\n"

    def _unchanged_stacks(self) -> list[tuple[str, str]]:
        """Stacks whose resources this change leaves as they are."""
        rows = [(stack, _DELETED) for stack in self.concerned.deleted]
        return [*rows, *((stack, _RELEASED) for stack in self.concerned.released)]

    def _shown_reasons(self, stack: str) -> list[Reason]:
        every = self.concerned.every
        reasons = list(every[:1] if every else self.concerned.reasons[stack])
        rest = len(self.concerned.reasons[stack]) - len(reasons[:_SHOWN])
        return [*reasons[:_SHOWN], *([Reason(f"{rest} more")] if rest else [])]


_RELEASED = "bezel.toml names it no longer, so its resources, if it has any, stay as they are"
_EXAMPLES = "examples, neither previewed nor deployed, as bezel.toml does not name them: "
_DELETED = "its file is deleted, so its resources stay: destroy them with the file of the commit before"


def _code(reason: Reason) -> str:
    return f"{code(reason.path)}: {prose(reason.why)}" if reason.path else prose(reason.why)
