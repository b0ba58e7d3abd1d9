"""No row that a person reads is wider than the screen, but for what is copied whole: every command is tried."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bezel.cli.command_table import root_parser
from bezel.operations.catalog.show import ShowArguments, show
from bezel.operations.compare.compare import CompareArguments, compare
from bezel.operations.context import Context
from bezel.operations.cost.cost import CostArguments, cost
from bezel.operations.explain.explain import ExplainArguments, explain
from bezel.operations.plan.plan import PlanArguments, plan
from bezel.operations.registry import OPERATIONS
from bezel.planner import PlanError
from bezel.planner.assemble.compare import families
from bezel_base.terminal.blocks import Block, Line
from bezel_base.terminal.display_width import display_width, pieces
from bezel_base.terminal.layout import lay_out
from tests.support.terminal.made_up_results import MadeUp

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from bezel.operations.results import Result

ROOT = Path(__file__).parents[2]
WIDTHS = (80, 100, 120)
SEEDS = 7
MOST_ROWS = 30
"""Rows of a short plan of 80 columns."""
# Made of records that stand together; the commands below show them with the catalogue's own.
WITH_REAL_VALUES = {"plan", "compare", "catalog_show", "doctor"}
# Operations whose text has rows that are copied whole, and what they are.
VERBATIM = {
    "config": "documents of YAML and commands",
    "endpoint": "commands",
    "logs": "lines of a log",
    "tpu_describe": "lines of a console",
    "secret_show": "a command",
    "bench_report": "tables as Markdown",
    **dict.fromkeys(("metrics", "report"), "a course over time, as wide as the screen"),
    "query": "the model's answer",
    **dict.fromkeys(
        ("tpu_create", "tpu_delete", "catalog_add_model", "deploy", "scale", "restart", "rollback", "container"),
        "the difference of a stack file",
    ),
    **dict.fromkeys(
        ("destroy", "weights_copy", "quota_request", "stack_edit", "recover"), "the difference of a stack file"
    ),
    **dict.fromkeys(("keys_create", "keys_rotate", "keys_revoke"), "the difference of a stack file, and a key"),
}


def find_wide_rows(rows: Iterable[str], width: int, verbatim: Iterable[str] = ()) -> list[str]:
    """Rows that are wider, and are neither one piece nor copied whole."""
    copied = {*verbatim}
    return [row for row in rows if display_width(row) > width and len(pieces(row)) > 1 and row not in copied]


def wide_rows(blocks: Iterable[Block]) -> list[str]:
    """Such rows of blocks in any of the widths."""
    page = list(blocks)
    verbatim = lay_out([block for block in page if isinstance(block, Line) and block.is_verbatim])
    return [row for width in WIDTHS for row in find_wide_rows(lay_out(page, width), width, verbatim)]


def results(name: str) -> Iterator[Result]:
    """Made-up results of an operation, and outcomes of one that changes something."""
    (called,) = (each for each in OPERATIONS if each.name == name)
    models = [called.result(), *([called.outcome()] if called.kind == "changing" else [])]
    return (MadeUp(seed).result(model) for model in models for seed in range(SEEDS))


@pytest.mark.slow
def test_no_result_of_any_operation_has_a_row_wider_than_the_screen() -> None:
    pages = {
        each.name: [[*result.page()] for result in results(each.name)]
        for each in OPERATIONS
        if each.name not in WITH_REAL_VALUES
    }
    wide = {name: [row for page in made for row in wide_rows(page)] for name, made in pages.items()}
    assert {name: rows for name, rows in wide.items() if rows} == {}
    verbatim = {
        name
        for name, made in pages.items()
        if any(isinstance(block, Line) and block.is_verbatim for page in made for block in page)
    }
    assert verbatim == VERBATIM.keys()


def test_a_row_that_is_wider_is_found_unless_it_is_copied_whole() -> None:
    row, address, command = "one two " * 10 + "three", "https://" + "x" * 90, f"`{'x ' * 50}`"
    assert find_wide_rows([row, address, command, row[:80]], 80) == [row]
    assert find_wide_rows([row, f"{row} four"], 80, verbatim=[row]) == [f"{row} four"]


@pytest.mark.parametrize("stack", sorted(file.name.split(".")[1] for file in ROOT.glob("Pulumi.*.yaml")))
def test_each_stack_of_the_repository_fits_a_short_plan_first(stack: str) -> None:
    context = Context(ROOT, {})
    try:
        short = [*plan(context, PlanArguments(stack=stack)).page()]
    except PlanError:
        assert stack == "gce-l4x8"  # the catalogue has no price of it
        return
    whole = [*plan(context, PlanArguments(stack=stack, all=True)).page()]
    amounts = [*cost(context, CostArguments(stack=stack)).page()]
    assert [row for page in (short, whole, amounts) for row in wide_rows(page)] == []
    assert len(lay_out(short, 80)) <= MOST_ROWS < len(lay_out(whole, 80))
    assert "(computed)" in "\n".join(lay_out(whole))
    assert "(computed)" not in "\n".join(lay_out(short))


@pytest.mark.slow
def test_the_catalogue_comparisons_and_explanations_fit() -> None:
    context = Context(ROOT, {})
    pages = [show(context, ShowArguments()).page(), explain(context, ExplainArguments(subject="max-num-seqs")).page()]
    pages += [explain(context, ExplainArguments(subject=name)).page() for name in ("nvidia-l4", "v6e-4", "HF_TOKEN")]
    pages += [compare(context, CompareArguments(model=family)).page() for family in families()]
    assert [row for page in pages for row in wide_rows(page)] == []


def parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """A parser and those of all its subcommands."""
    parser.fill()  # type: ignore[attr-defined] - the project's own parser
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for each in dict.fromkeys(action.choices.values()):
                yield from parsers(each)


@pytest.mark.slow
def test_no_help_has_a_row_wider_than_the_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    pages = [parser.format_help() for parser in parsers(root_parser())]
    assert len(pages) > 60
    rows = [row for page in pages for row in page.splitlines() if len(row) > 80]
    assert [row for row in rows if len(re.findall(r"\S+", row)) > 1] == []
