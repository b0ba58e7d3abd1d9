"""Exit codes: what a command's code can end with is what its row says, neither more nor less."""

from collections.abc import Iterator, Mapping
from typing import Any, Literal

import pytest

from bezel.cli.command_table import command_table, root_parser
from bezel.engine.outcomes import Exit
from bezel.mcp_server.calls import CODES
from bezel.operations.operation import Operation
from bezel.operations.registry import OPERATIONS
from bezel_base.command_line.exit_codes import COMMON, exit_codes_of, format_exit_codes
from tests.support.cli.exit_codes import annotated_codes, function_at, raised_codes

IS_CAUGHT = {
    "ci expire": {Exit.LOCKED: "a stack whose lock is held is reported, and the others are looked at"},
    "mcp": {Exit.REFUSED: "a refusal is the result of a call"},
}
"""Command -> the codes of errors that it reaches and handles, each with what becomes of it."""
PASSES_ON = {"ci lock"}
"""Commands that end with the code of another command, whatever it is."""


def commands(spec: Mapping[str, Any], run: str = "", above: tuple[str, ...] = ()) -> Iterator[tuple[str, str, Any]]:
    """The words of each command that runs something, the place of its function, and its row."""
    for word, command in spec.get("commands", {}).items():
        path, place = (*above, word), command.get("call") or command.get("run", run)
        if not command.get("commands") or command.get("alone"):
            yield " ".join(path), place, command
        yield from commands(command, place, path)


ROWS = {name: (place, row) for name, place, row in commands(command_table().spec)}
OTHERS = {name: row for name, row in ROWS.items() if "operation" not in row[1] or row[0].startswith("bezel_bench")}


def result_codes(operation: Operation) -> frozenset[int]:
    """The codes that the models of an operation's results have."""
    models = [operation.result(), *([operation.outcome()] if operation.apply else [])]
    return frozenset(code for model in models for code in annotated_codes(model.exit_code.fget))


def reached_codes(operation: Operation) -> frozenset[int]:
    """The codes of the errors that an operation can raise."""
    places = filter(None, (operation.function, operation.apply))
    return frozenset(code for place in places for code in raised_codes(f"bezel.operations.{place}"))


def differing_codes(row_codes: Mapping[int, str], results: frozenset[int], errors: frozenset[int]) -> frozenset[int]:
    """The codes that a row says and the code lacks, or the other way around.

    Args:
        row_codes: Own codes of the row, with what each means.
        results: Codes of results.
        errors: Codes of errors.
    """
    # A row says what a result means by a code, also by one that every command has; of an error it need not.
    to_explain = results - {Exit.DONE} - {code for code in COMMON if code > 128}  # those above are of signals
    possible = to_explain | errors
    missing = {code for code in possible - row_codes.keys() if code not in COMMON or code in to_explain}
    return frozenset(missing | row_codes.keys() - possible - {Exit.DONE})


# The command of an operation of the benchmark runs a function of its own, as the other commands do.
READING = [each for each in OPERATIONS if each.kind == "reading" and not each.command.startswith("bench ")]


@pytest.mark.slow
@pytest.mark.parametrize("each", READING, ids=lambda each: each.name)
def test_codes_of_a_reading_operation_are_those_of_its_row(each: Operation) -> None:
    assert differing_codes(each.exit_codes, result_codes(each), reached_codes(each)) == frozenset()


@pytest.mark.slow
@pytest.mark.parametrize("each", [each for each in OPERATIONS if each.kind == "changing"], ids=lambda each: each.name)
def test_codes_of_a_changing_operation_are_those_of_its_row(each: Operation) -> None:
    # What every change may end with is "failed", whether by an error or by its outcome.
    assert result_codes(each) == {Exit.DONE, Exit.FAILED, Exit.REFUSED, 130}
    codes = result_codes(each) - {Exit.FAILED}
    assert differing_codes(each.exit_codes, codes, reached_codes(each)) == frozenset()


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(OTHERS))
def test_codes_of_another_command_are_those_of_its_row(name: str) -> None:
    place, row = OTHERS[name]
    row_codes = {int(code): meaning for code, meaning in row.get("exit_codes", {}).items()}
    results = annotated_codes(function_at(place))
    errors = raised_codes(place) - IS_CAUGHT.get(name, {}).keys()
    assert differing_codes(row_codes, results, errors) - ({Exit.FAILED} if name in PASSES_ON else set()) == frozenset()


@pytest.mark.parametrize(
    ("row_codes", "results", "errors", "differing"),
    [
        ({1: "a stack does not serve"}, {0, 1}, {1, 2}, set()),
        ({}, {0, 1}, set(), {1}),
        ({}, {0}, {1, 2}, set()),
        ({}, {0}, {5}, {5}),
        ({3: "refused"}, {0, 3}, {5}, {5}),
        ({3: "refused", 5: "locked"}, {0, 3}, set(), {5}),
        ({4: "drift"}, {0}, {1}, {4}),
    ],
)
def test_missing_and_unused_code_of_a_row_is_found(
    row_codes: dict[int, str], results: set[int], errors: set[int], differing: set[int]
) -> None:
    assert differing_codes(row_codes, frozenset(results), frozenset(errors)) == differing


@pytest.mark.slow
def test_reached_errors_are_those_of_referenced_functions() -> None:
    assert Exit.LOCKED in raised_codes("bezel.operations.deploy.deploy:apply_deploy")
    assert Exit.LOCKED not in raised_codes("bezel.operations.status.status:status")
    assert 130 in raised_codes("bezel.operations.tpu.list_leases:list_leases")


def test_annotation_that_is_any_number_has_no_codes() -> None:
    def any_count() -> int:
        return 3

    def verdict_code() -> Literal[0, 3]:
        return 3

    assert annotated_codes(any_count) == frozenset()
    assert annotated_codes(verdict_code) == {0, 3}


@pytest.mark.slow
def test_failure_of_a_tool_has_a_code_for_each_code_of_an_error() -> None:
    reached = {code for each in OPERATIONS for code in reached_codes(each)}
    outcomes = {code for each in OPERATIONS if each.apply for code in annotated_codes(each.outcome().exit_code.fget)}
    assert (reached | outcomes) - {Exit.DONE} == CODES.keys()


@pytest.mark.parametrize("name", ["status", "bench compare", "ci deploy", "deploy"])
def test_help_shows_the_exit_codes_of_the_row(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        root_parser().parse_args([*name.split(), "--help"])
    shown = " ".join(capsys.readouterr().out.split())
    assert shown.endswith(format_exit_codes(ROWS[name][1]["exit_codes"]))


def test_help_of_a_command_without_codes_of_its_own_shows_none(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        root_parser().parse_args(["plan", "--help"])
    assert "Exit codes" not in capsys.readouterr().out


def test_own_meaning_replaces_the_common_one() -> None:
    assert exit_codes_of({}) == COMMON
    assert exit_codes_of({"5": "locked", "1": "failed, or it is down"}) == {
        **COMMON, 1: "failed, or it is down", 5: "locked",
    }  # fmt: skip
