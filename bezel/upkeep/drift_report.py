"""Report of the drift of several stacks: for a terminal, for the forge, as JSON."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Literal

from bezel.engine.outcomes import Exit
from bezel.upkeep.drift import PropertyDrift, ResourceDrift, StackDrift
from bezel_base.errors import format_value
from bezel_base.text.markdown import code
from bezel_base.text.shell import shell_word

_VERDICTS = {
    "clean": "no drift",
    "drifted": "cloud and program differ",
    "unknown": "unknown: the cloud could not be read in full, or the program failed",
    "not deployed": "not deployed",
}
_KINDS = {"access": "changes who has access", "cost": "costs money", "rollback": "a rollback"}


@dataclass(frozen=True)
class DriftReport:
    """The drift of some stacks."""

    stacks: tuple[StackDrift, ...]

    @property
    def exit_code(self) -> Literal[Exit.DONE, Exit.FAILED, Exit.DRIFTED]:
        """FAILED if any stack is unknown, else DRIFTED if any differs."""
        verdicts = {stack.verdict for stack in self.stacks}
        return Exit.FAILED if "unknown" in verdicts else Exit.DRIFTED if "drifted" in verdicts else Exit.DONE

    def as_json(self) -> dict[str, object]:
        """The content as JSON."""
        return {"kind": "drift", "stacks": [asdict(stack) for stack in self.stacks]}

    def text(self) -> str:
        """The content for a terminal."""
        lines = [] if self.stacks else ["no stack is deployed"]
        for stack in self.stacks:
            lines.append(f"{stack.stack}: {_VERDICTS[stack.verdict]}")
            for resource in stack.resources:
                lines.append(f"  {_head(resource, stack.stack, str)}")
                lines += [f"    {_values(item, format_value)}" for item in resource.properties]
            for change in stack.outside:
                lines += [f"  {change.line()}", f"    Repair: {change.repair}"]
            lines += [f"  {item.line()}" for item in stack.not_judged]
            lines += [f"  {problem}" for problem in stack.problems]
        return "".join(f"{line}\n" for line in lines)

    def markdown(self) -> str:
        """The content for the forge."""
        if not self.stacks:
            return "**Drift**: no stack is deployed.\n"
        clean = [code(stack.stack) for stack in self.stacks if stack.verdict in {"clean", "not deployed"}]
        lines = [f"**Drift**: {len(self.stacks) - len(clean)} of {len(self.stacks)} stacks need a look."]
        lines += ["", f"No drift: {', '.join(clean)}."] if clean else []
        for stack in self.stacks:
            if stack.verdict in {"clean", "not deployed"}:
                continue
            lines += ["", f"{code(stack.stack)}: {_VERDICTS[stack.verdict]}.", ""]
            for resource in stack.resources:
                lines.append(f"- {_head(resource, stack.stack, code)}")
                lines += [f"  - {_values(item, code)}" for item in resource.properties]
            for change in stack.outside:
                what = f"{code(change.resource)}: {code(change.setting)}: cloud {code(change.cloud)}"
                what += f", program {code(change.program)}: {_KINDS[change.kind]}"
                lines += [f"- {what}", f"  - Repair: {code(change.repair.strip('`.'))}"]
            lines += [f"- {code(item.line())}" for item in stack.not_judged]
            lines += [f"- {code(problem)}" for problem in stack.problems]
        if any(stack.resources for stack in self.stacks):
            lines += ["", "To keep what was changed outside, put it into the program."]
        return "\n".join(lines) + "\n"


def _head(resource: ResourceDrift, stack: str, quoted: Callable[[object], str]) -> str:
    cause = "changed outside of the program" if resource.is_outside else "changed in the program and not deployed"
    if resource.follows:
        cause = "depends on a resource that differs"
    if resource.rolled_back:
        cause = "differs by the rollback below"
    if resource.is_outside and resource.op in {"create", "delete"}:
        cause = "deleted outside of the program"
    by = f", last by {quoted(resource.changed_by)}" if resource.changed_by else ""
    at = f" at {quoted(resource.changed_at)}" if resource.changed_at else ""
    kind = resource.type.rpartition(":")[2]  # Service of gcp:cloudrunv2/service:Service
    # The state has a resource as it was before an outside change: a deploy that reads the state alone changes nothing.
    reads_cloud = resource.is_outside and not resource.rolled_back
    mending = f"`pulumi up --refresh --stack {shell_word(stack)}`" if reads_cloud else "a deploy"
    return f"{quoted(resource.name)} ({kind}): {cause}{by}{at}; {mending} would {resource.op} it"


def _values(item: PropertyDrift, quoted: Callable[[object], str]) -> str:
    cloud, program = ("not set" if value is None else quoted(value) for value in (item.cloud, item.program))
    return f"{quoted(item.path)}: cloud {cloud}, program {program}"
