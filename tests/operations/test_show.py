"""The catalogue as an operation: every record with its date and source, as the table has it."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from bezel.operations.catalog.show import Section, ShowArguments, show
from bezel.operations.catalog.tables import SECTIONS
from bezel.operations.context import Context


def test_every_section_is_shown_with_dates_and_sources(tmp_path: Path) -> None:
    catalogue = show(Context(tmp_path, {}), ShowArguments())
    assert [each.section for each in catalogue.sections] == [*SECTIONS] == [*Section.__args__]  # type: ignore[attr-defined]
    assert all(row["as of, source"] for each in catalogue.sections for row in each.rows)
    assert all(f"{each.section}:" in catalogue.text() for each in catalogue.sections)


def test_one_section_is_shown_alone(tmp_path: Path) -> None:
    (section,) = show(Context(tmp_path, {}), ShowArguments(section="prices")).sections
    assert section.section == "prices"
    assert {"item", "region", "USD"} <= set(section.rows[0])
    with pytest.raises(ValidationError):
        ShowArguments.model_validate({"section": "../prices"})
