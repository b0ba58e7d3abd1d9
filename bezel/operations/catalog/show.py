"""The catalogue's records: machines, models, prices, releases of vLLM and measurements, each with date and source."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from bezel.operations.arguments.model import Arguments, Reach, Word
from bezel.operations.catalog.tables import SECTIONS, table
from bezel.operations.context import Context
from bezel.operations.results import Result
from bezel_base.terminal.blocks import Block, Line
from bezel_catalog.models import using_models
from bezel_catalog.project_models import read_project_models

Section = Literal["accelerators", "tpus", "machines", "models", "prices", "vllm", "comparison", "measurements"]


class ShowArguments(Arguments):
    """Which part of the catalogue."""

    section: Annotated[Section | None, Reach.INSIDE, Word()] = Field(None, description="section to show (default: all)")


class Records(Result):
    """Records of a section."""

    section: str
    rows: tuple[dict[str, str | int], ...] = Field(description="the records; the keys are the columns of the table")


class Catalogue(Result):
    """Sections of the catalogue."""

    sections: tuple[Records, ...]

    def page(self) -> Iterator[Block]:
        """The sections as tables."""
        for number, each in enumerate(self.sections):
            yield from (Line(),) if number else ()
            yield from table(each.section, each.rows)


def show(context: Context, arguments: ShowArguments) -> Catalogue:
    """The catalogue's records, with the project's own models.

    Raises:
        UserError: The project's `catalog.toml` has problems.
    """
    names = [arguments.section] if arguments.section else [*SECTIONS]
    with using_models(read_project_models(context.folder)):
        return Catalogue(
            sections=tuple(
                Records(
                    section=name,
                    rows=tuple(
                        {key: value if isinstance(value, int) else str(value) for key, value in row.items()}
                        for row in SECTIONS[name]()
                    ),
                )
                for name in names
            )
        )
