"""Changes in two steps over the protocol: a changing tool answers with a plan and a token, the tool `confirm` takes it.

Owns the plans of one server that wait, which is those of one client. Leaves out tokens (bezel.operations.changes) and
how a call runs (`calls`).
"""

import secrets
from functools import cached_property
from typing import TYPE_CHECKING, Any

from mcp_types import Tool, ToolAnnotations
from pydantic import Field

from bezel.mcp_server.listing import listed_schema
from bezel.operations.arguments.model import Arguments
from bezel.operations.operation import Operation
from bezel.operations.registry import operation
from bezel.operations.results import Result

if TYPE_CHECKING:
    from bezel.operations.changes.confirmations import Confirmations
    from bezel.operations.changes.plan import Plan
    from bezel.operations.context import Context

CONFIRM = "confirm"


class ConfirmArguments(Arguments):
    """Which plan is confirmed."""

    token: str = Field(max_length=200, description="token of the plan, as the changing tool gave it")
    operation: str = Field(max_length=100, description="the tool that planned it")
    target: str = Field(max_length=200, description="what the plan changes: its `target`")
    name: str = Field(
        default="", max_length=200, description="the plan's `confirm_name`, if it has one: what is destroyed, again"
    )


class TwoSteps:
    """Plans of one client that wait for its confirmation."""

    def __init__(self) -> None:
        self._caller = secrets.token_hex(16)

    @cached_property
    def _confirmations(self) -> "Confirmations":
        from bezel.operations.changes.confirmations import Confirmations  # imported with the first plan

        return Confirmations()

    def plan(self, changing: Operation, context: "Context", arguments: Arguments) -> "Offered":
        """Plan a change.

        Raises:
            UserError: It cannot be planned.
        """
        plan: Plan = changing.load()(context, arguments)  # type: ignore[assignment]
        return self.offer(plan)

    def offer(self, plan: "Plan") -> "Offered":
        """A plan with the token that confirms it; without one where it is refused, or changes nothing."""
        if plan.refusals or plan.is_empty:
            return Offered(plan=plan.model_dump(mode="json"), token=None, expires_at=None, shown=plan.text())
        offer = self._confirmations.offer(plan, self._caller)
        again = "" if plan.confirm_name is None else f", name={plan.confirm_name!r}"
        ask = (
            "Nothing has been changed. Show this plan to the user. If the user agrees, call confirm with this token, "
            f"operation={plan.operation!r}, target={plan.target!r}{again}."
        )
        return Offered(
            plan=plan.model_dump(mode="json"),
            token=offer.token,
            expires_at=offer.expires_at.isoformat(),
            shown=f"{plan.text()}\n{ask}\ntoken: {offer.token}\n",
        )

    @staticmethod
    def outcome() -> type[Result]:
        """The model of what `confirm` returns."""
        from bezel.operations.changes.plan import Outcome  # imported with the first plan, as above

        return Outcome

    def confirm(self, context: "Context", arguments: ConfirmArguments) -> Result:
        """Carry out the plan of a token.

        Raises:
            UserError: No such plan waits, something has changed since, or it failed.
        """
        plan = self._confirmations.take(
            arguments.token,
            self._caller,
            name=arguments.name,
            operation=arguments.operation,
            target=arguments.target,
        )
        return operation(plan.operation).load_apply()(context, plan)


class Offered(Result):
    """A plan that waits for its confirmation. Its text is shown whole: no one agrees to a part of it."""

    may_be_shortened = False
    plan: dict[str, Any] = Field(description="the plan")
    token: str | None = Field(description="what `confirm` needs; null where the plan is refused or changes nothing")
    expires_at: str | None = Field(description="end of the token's life, RFC 3339; null without a token")
    shown: str = Field(exclude=True, repr=False)

    def text(self) -> str:
        """The plan for a person, and how it is confirmed."""
        return self.shown


def confirm_tool() -> Tool:
    """The tool that carries out a plan."""
    return Tool(
        name=CONFIRM,
        title="Carry out a plan",
        description="carry out a plan that a changing tool made, if nothing has changed since. Use it only after the "
        "user has agreed to that plan. Costs: what the plan says; minutes, with progress. Next: status.",
        input_schema=listed_schema(ConfirmArguments.model_json_schema(), is_long=False),
        annotations=ToolAnnotations(
            read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=True
        ),
    )
