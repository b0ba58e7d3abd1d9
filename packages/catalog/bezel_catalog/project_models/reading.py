"""Reading of a project's `catalog.toml`: its models by id, or every problem of the file at once."""

from __future__ import annotations

import functools
import tomllib
from collections import Counter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from bezel_base.errors import Problem
from bezel_catalog.loader import DataFileError, make
from bezel_catalog.models import catalogue_models

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from bezel_catalog.models import Model
    from bezel_catalog.project_models.row import ModelRow

FILE = "catalog.toml"
_TABLE = "model"


def read_project_models(folder: Path) -> Mapping[str, Model]:
    """The models of a project, by id; none where it has no file of them.

    Args:
        folder: The project's folder.

    Raises:
        DataFileError: The file cannot be read, or a row is not that of a model; holds every problem.
    """
    try:
        text = (folder / FILE).read_text(encoding="utf-8")
    except FileNotFoundError:
        return MappingProxyType({})
    except (OSError, UnicodeDecodeError) as error:
        consequence = f"it cannot be read ({error}), so the project's models are not known."
        raise DataFileError(Problem(FILE, None, consequence, "make it a readable file in UTF-8.")) from None
    return _models(text)


@functools.lru_cache(maxsize=8)
def _models(text: str) -> Mapping[str, Model]:
    from bezel_catalog.project_models.row import model_of  # late: most projects have no row

    rows = read_rows(text)
    problems: list[Problem | str] = []
    checkpoints = {}
    for name, row in rows.items():
        try:
            checkpoints[name] = model_of(row, f"{FILE}: {name}")
        except DataFileError as error:
            problems += error.problems
    for name in sorted({*checkpoints} & {*catalogue_models()}):
        consequence = "the catalogue has a model of this name, so it is not clear which one a stack means."
        problems.append(Problem(FILE, name, consequence, "rename the row, and the model in the stack files."))
    for hub_id, count in Counter(each.hub_id for each in checkpoints.values() if each.hub_id).items():
        if count > 1:
            problems.append(Problem(f"{FILE}: hub_id", hub_id, f"{count} rows have it.", "keep one."))
    if problems:
        raise DataFileError(*problems)
    return MappingProxyType(checkpoints)


def read_rows(text: str) -> dict[str, ModelRow]:
    """The rows of a file's text by id.

    Raises:
        DataFileError: It is not TOML of the file's form.
    """
    from bezel_catalog.project_models.row import ModelRow

    try:
        content = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise DataFileError(Problem(FILE, None, f"it is not valid TOML: {error}.", "correct the file.")) from None
    if unknown := sorted({*content} - {_TABLE}):
        consequence = "the file holds tables of this name only: [model.ID]."
        raise DataFileError(Problem(FILE, unknown[0], consequence, "remove it."))
    tables: Any = content.get(_TABLE, {})
    if not isinstance(tables, dict) or not all(isinstance(row, dict) for row in tables.values()):
        raise DataFileError(Problem(FILE, None, "a model is a table.", "write [model.ID] and its fields below."))
    return {name: make(ModelRow, f"{FILE}: {name}", row, id=name) for name, row in tables.items()}
