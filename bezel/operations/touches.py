"""Classes of what operations touch, by which a server of some stacks offers them, and the refusal of the rest. Pure.

Owns the classes and their rule: what is not classified is not served. Which operation is of which class is part of the
registry; which of its arguments may be given is said by each argument (`bezel.operations.arguments.model.Reach`).
"""

from dataclasses import dataclass
from typing import Literal

from bezel_base.errors import Problem, WrongValueError

STACK = "stack"

Subject = Literal["stack", "records", "results", "project"]


@dataclass(frozen=True)
class Touches:
    """What an operation reads, shows and changes.

    Attributes:
        subject: `stack`: only what belongs to the stack that its argument `stack` names. `records`: what is the same
            for every stack, such as the catalogue. `results`: files of benchmark results below the project's folder,
            which belong to no stack. `project`: what belongs to other stacks too; no server of some stacks offers it.
        check: `MODULE:FUNCTION` below `bezel.operations`, called with the context and the arguments, that raises
            `BeyondStackError` where one of the arguments names what does not belong to the stack.
    """

    subject: Subject
    check: str = ""


class BeyondStackError(WrongValueError):
    """An argument names what does not belong to the stack, on a server of some stacks only."""

    def __init__(self, key: str, value: object, stack: str | None, repair: str) -> None:
        consequence = f"it does not belong to the stack {stack}, and this server serves that stack only."
        super().__init__(Problem(key, value, consequence, repair))
