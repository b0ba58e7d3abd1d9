"""Conversion of an input into a stack file: the settings, the plan's objections, the price before and after. Pure.

`convert` is the one function that a command calls. Leaves reading the input to `sources`, and adopting the service to
`imports`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bezel.conversion.converted import Converted, Wishes, candidates, with_settings
from bezel.conversion.inputs.readers import read_text
from bezel.conversion.price_change import PriceChange, cost_limits, price_change
from bezel.conversion.settings.model_place import REVISION, model_place
from bezel.conversion.stack_text import stack_text
from bezel.planner import PlanError, make_plan
from bezel_base.errors import Problem, UserError
from bezel_catalog import models

if TYPE_CHECKING:
    from datetime import date

    from bezel.conversion.inputs.found_server import FoundServer, Remark
    from bezel.planner import AnyPlan

NO_PROJECT = "my-project"
"""Project that is planned for where neither the input nor the caller names one; no price depends on it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    """An input as a stack.

    Attributes:
        converted: The settings, and what is to be known about them.
        plan: None where the plan objects.
        objections: Problems of the plan: what has to be repaired in the stack file before a deploy.
        warnings: What the plan says and does not refuse.
        prices: What is paid today, and what the plan costs.
    """

    converted: Converted
    plan: AnyPlan | None
    objections: tuple[Problem, ...]
    warnings: tuple[str, ...]
    prices: PriceChange

    @property
    def stack(self) -> str:
        """Name of the stack."""
        return self.converted.stack

    @property
    def unknown_model(self) -> tuple[str, str]:
        """Place and revision of a model that the catalogue does not have; "" where none follows from the input."""
        settings = self.converted.settings
        if settings["model"] in models():
            return "", ""
        place = model_place(settings["model"], settings.get("weights", {}), self.converted.project)
        revision = settings.get("vllm", {}).get(REVISION)
        return place, revision if isinstance(revision, str) and not place.startswith("gs://") else ""

    def remarks(self, kind: str) -> list[Remark]:
        """The remarks of a kind: "not converted", "assumed" or "changes"."""
        return [each for each in self.converted.remarks if each.kind == kind]

    def stack_file(self, schema: str = "") -> str:
        """The text of `Pulumi.STACK.yaml`; `schema` is the path of the schema of stack files."""
        return stack_text(self.converted, schema=schema)

    def text(self) -> str:
        """What is to be known, for people."""
        parts = []
        for kind, title in (("not converted", "Not converted"), ("assumed", "Assumed"), ("changes", "Changes")):
            if remarks := self.remarks(kind):
                parts.append("\n".join([f"{title}:", *(f"  {each.line()}" for each in remarks)]))
        if self.objections:
            parts.append(str(UserError(*self.objections, title=f"The plan objects to {self.stack}")))
        parts.append("\n".join(["Price, before -> after:", *(f"  {line}" for line in self.prices.lines())]))
        return "\n\n".join(parts) + "\n"


def convert(text: str, name: str, wishes: Wishes | None = None, *, today: date | None = None) -> Conversion:
    """The stack that serves what a text describes.

    Args:
        text: A command, a compose file, or a Cloud Run service as JSON or YAML.
        name: Of the input, for messages.
        wishes: What the caller decides.
        today: Latest possible date of price rows; None without a clock.

    Raises:
        UserError: The text cannot be read, or does not run vLLM's server.
    """
    return convert_server(read_text(text, name), wishes or Wishes(), today=today)


def convert_server(server: FoundServer, wishes: Wishes, *, today: date | None = None) -> Conversion:
    """The stack that serves what was found; of several accelerators that on which the plan has the fewest objections.

    Raises:
        UserError: It does not run vLLM's server.
    """
    planned = []
    for candidate in candidates(server, wishes):
        planned.append(_conversion_of(with_settings(candidate, cost=cost_limits(candidate.settings)), today))
        if planned[-1].plan is not None:
            return planned[-1]
    return min(planned, key=lambda each: len(each.objections))


def _conversion_of(converted: Converted, today: date | None) -> Conversion:
    plan: AnyPlan | None = None
    objections: tuple[Problem, ...] = ()
    try:
        plan = make_plan(
            converted.settings, project=converted.project or NO_PROJECT, stack=converted.stack, today=today
        )
    except PlanError as error:
        objections = error.problems
    prices = price_change(converted.server, converted.settings, plan)
    warnings = plan.warnings if plan else ()
    return Conversion(converted=converted, plan=plan, objections=objections, warnings=warnings, prices=prices)
