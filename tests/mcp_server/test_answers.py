"""Answers of tools: one form each, short unless more is asked for, and what is left out is said."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bezel.engine.project.project import Project
from bezel.mcp_server.answers import BYTES_OF_A_TOKEN, MAX_STRUCTURED, MAX_TOKENS, Detail, failure, shorten, success
from bezel.mcp_server.two_steps import Offered
from bezel.operations.catalog.show import Section, ShowArguments, show
from bezel.operations.compare.compare import CompareArguments, compare
from bezel.operations.context import Context
from bezel.operations.cost.cost import CostArguments, cost
from bezel.operations.guides import guides
from bezel.operations.logs.logs import Logs
from bezel.operations.plan.plan import PlanArguments, plan
from bezel.operations.query.query import Answer
from bezel.operations.results import Result
from bezel.planner.base.problems import PlanError
from tests.support.mcp_server.answers import tokens_of

ROOT = Path(__file__).parents[2]
SHORT = MAX_TOKENS["short"]


class Lines(Result):
    """A result of lines."""

    lines: tuple[str, ...]

    def text(self) -> str:
        return "\n".join(self.lines) + "\n"


def text_of(result: Result, detail: Detail = "short", narrowing: tuple[str, ...] = ()) -> str:
    return success(result, detail, narrowing).content[0].text  # type: ignore[union-attr]


LONG = Lines(lines=tuple(f"line {number} of a text" for number in range(2_000)))


def test_short_answer_says_what_it_leaves_out_and_full_one_has_it() -> None:
    short = text_of(LONG, narrowing=("since", "limit"))
    assert short.startswith("line 0 ")
    assert short.endswith("line 1999 of a text\n")
    kept = [line for line in short.splitlines() if line.startswith("line ")]
    assert f"[{2_000 - len(kept)} of 2000 lines are left out here" in short
    assert "detail=full shows 20000 tokens. Narrow it by since or limit.]" in short
    assert text_of(LONG, "full") == LONG.text()


def test_a_single_long_line_is_shown_as_far_as_it_fits() -> None:
    shown = text_of(Lines(lines=("x" * 50_000,)))
    assert shown.count("x") > 7_000
    assert "[the end of a long line is left out here (12500 tokens in all)." in shown


def test_an_answer_that_fits_is_whole() -> None:
    assert text_of(Lines(lines=("one", "two"))) == "one\ntwo\n"


@settings(max_examples=30)
@given(
    st.lists(st.text(max_size=20), max_size=20),
    st.sampled_from([1, 500]),
    st.sampled_from([0.0, 0.1, 0.5, 1.0]),
)
def test_no_text_is_longer_than_its_detail_allows(lines: list[str], factor: int, share: float) -> None:
    text = "\n".join(line * factor for line in lines)
    for detail, tokens in MAX_TOKENS.items():
        shown = shorten(text, detail, share, ("since", "limit"))
        assert len(shown.encode()) <= tokens * BYTES_OF_A_TOKEN
        assert shown == text or "left out" in shown


def test_newest_lines_of_a_log_are_kept_and_the_begin_of_another_text() -> None:
    assert Logs.head_share < 0.5 == Lines.head_share


def test_a_plan_that_waits_for_agreement_is_shown_whole() -> None:
    offered = Offered(plan={}, token="t", expires_at=None, shown=LONG.text())
    assert text_of(offered) == LONG.text()
    assert text_of(LONG) != LONG.text()


def test_padding_of_columns_is_left_out_and_blanks_of_contents_stay() -> None:
    class Code(Lines):
        """Lines whose blanks belong to them."""

        is_padded = False

    lines = ("  name        value", "    indented")
    assert text_of(Lines(lines=lines)) == "  name  value\n    indented\n"
    assert text_of(Code(lines=lines)) == "  name        value\n    indented\n"
    assert not Answer.is_padded
    assert not Logs.is_padded


def test_whole_result_is_json_once_as_text_and_once_for_programs() -> None:
    result = success(LONG, "json")
    assert result.structured_content == LONG.model_dump(mode="json")
    assert tokens_of(result) > SHORT


def test_a_result_too_large_for_json_is_refused_with_what_makes_it_smaller() -> None:
    refused = success(Lines(lines=("x" * MAX_STRUCTURED,)), "json", ("limit",))
    assert refused.meta["bezel/error"]["code"] == "too_large"  # type: ignore[index]
    assert "narrow the call by limit" in refused.content[0].text  # type: ignore[union-attr]
    assert not success(Lines(lines=("x" * (MAX_STRUCTURED - 100),)), "json").is_error


def test_text_of_a_failure_is_bounded() -> None:
    short, full = failure("failed", "y" * 200_000, []), failure("failed", "y" * 200_000, [], detail="json")
    assert tokens_of(short) <= SHORT < tokens_of(full) <= MAX_TOKENS["full"]


@pytest.mark.slow  # every stack is planned
def test_answers_about_files_of_this_project_are_short_without_a_cut() -> None:
    """The plan and the cost of each stack, each section of the catalogue, and hardware for the largest model."""
    answers: list[Result] = []
    with Context(ROOT, {}, show=lambda _: None) as context:
        for stack in Project(ROOT).stacks():
            try:
                answers += [plan(context, PlanArguments(stack=stack)), cost(context, CostArguments(stack=stack))]
            except PlanError:  # its price is unknown
                continue
        answers += [show(context, ShowArguments(section=section)) for section in Section.__args__]  # type: ignore[attr-defined]
        answers.append(compare(context, CompareArguments(model="gemma-4-31b")))
    assert len(answers) > 30
    assert [each for each in answers if "left out here" in text_of(each)] == []


def test_an_answer_that_arguments_make_smaller_is_offered_in_other_lengths() -> None:
    assert [name for name, guide in guides().items() if guide.narrows and not guide.is_long] == []
    assert guides()["logs"].narrows
