"""Report of `bezel ci judge`: whether what judges a deploy may judge it, and how it has changed."""

from dataclasses import dataclass

from bezel.gitops.judge.document import KEY, text_lines
from bezel.gitops.judge.gate import Judgement
from bezel_base.text.markdown import code


@dataclass(frozen=True)
class GateReport:
    """The comparison for one stack.

    Attributes:
        project: Name of the Pulumi project.
        stack: The stack's name.
        commit: The commit that would be deployed.
        judged: The comparison.
    """

    project: str
    stack: str
    commit: str
    judged: Judgement

    def as_json(self) -> dict[str, object]:
        """The content as JSON."""
        names = {"kind": KEY, "project": self.project, "stack": self.stack, "commit": self.commit}
        verdict = "allowed" if self.judged.allowed else "refused"
        return {**names, "verdict": verdict, KEY: self.judged.as_json()}

    def text(self) -> str:
        """The content for a terminal."""
        return "\n".join([self._headline(), *text_lines(self.as_json()), *self._repair()]) + "\n"

    def markdown(self) -> str:
        """The content for the run's summary."""
        lines = [f"- {code(line, 300)}" for line in (*text_lines(self.as_json()), *self._repair())]
        return "\n".join([f"### {self._headline()}", "", *lines]) + "\n"

    def _headline(self) -> str:
        return f"{self.stack}: {'may be judged' if self.judged.allowed else 'stopped'}"

    def _repair(self) -> list[str]:
        return [] if self.judged.allowed else [f"repair: {self.judged.repair(self.stack)}"]
