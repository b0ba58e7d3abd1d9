"""A stack file is read in one way: what two readers of YAML take differently is refused, and quoted it is text."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from bezel.planner.base.stack_file import StackFileError, read_stack_file


def read(written: str) -> tuple[object, list[str]]:
    content, problems = read_stack_file(f"config:\n  bezel:labels: {{a: {written}}}\n", "Pulumi.x.yaml")
    assert isinstance(content, dict)
    return content["config"]["bezel:labels"]["a"], [str(problem) for problem in problems]


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("text", "text"),
        ("'2030-01-01'", "2030-01-01"),
        ('"on"', "on"),
        ("0.32.0", "0.32.0"),
        ("y", "y"),
        ("12", 12),
        ("-3", -3),
        ("0", 0),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1.0e+1", 10.0),
        ("True", True),
        ("false", False),
        ("~", None),
        ("", None),
        ("!!str x", "x"),
        ("[1, x]", [1, "x"]),
    ],
)
def test_a_value_that_all_read_alike_is_read(written: str, value: object) -> None:
    assert read(written) == (value, [])


@pytest.mark.parametrize(
    ("written", "consequence"),
    [
        ("2030-01-01", "the engine reads a date"),
        ("2030-1-1", "the engine reads a date"),
        ("2030-01-01T10:00:00Z", "the engine reads a date"),
        ("1:30", "base 60"),
        ("12:30:45", "base 60"),
        ("on", "read true or false"),
        ("No", "read true or false"),
        ("1e1", "readers read a number"),
        ("1.5e3", "readers read a number"),
        ("010", "readers disagree on the number"),
        ("08", "readers disagree on the number"),
        ("0x1F", "readers disagree on the number"),
        ("0o17", "readers disagree on the number"),
        ("0b11", "readers disagree on the number"),
        ("1_000", "readers disagree on the number"),
        (".inf", "not finite"),
        (".NaN", "not finite"),
        ("!!binary aGk=", "no setting has the type"),
        ("!mine 5", "no setting has the type"),
        ("!!set {a}", "no setting has the type"),
    ],
)
def test_a_value_that_is_read_in_two_ways_is_refused_with_its_place(written: str, consequence: str) -> None:
    _, (problem,) = read(written)
    assert problem.startswith("Pulumi.x.yaml line 2: bezel:labels.a = ")
    assert consequence in problem
    assert "quote it: " in problem or "remove the tag" in problem


@pytest.mark.parametrize(("text", "line"), [("a: 1\nb: 2\na: 3\n", 3), ("on: 1\n", 1), ("1.5: x\n", 1), ("~: x\n", 1)])
def test_a_key_that_stands_twice_or_is_no_text_is_refused(text: str, line: int) -> None:
    _, (problem,) = read_stack_file(text, "f")
    assert f"f line {line}: " in str(problem)


def test_keys_are_text_as_the_engine_hands_them_on() -> None:
    assert read_stack_file("{1: a, true: b, True2: c}", "f") == ({"1": "a", "true": "b", "True2": "c"}, [])


def test_what_is_merged_into_a_map_yields_to_its_own_keys() -> None:
    text = "base: &b {x: 1, y: 2}\nother: {<<: *b, y: 3}\nboth: {<<: [{x: 5}, *b]}\n"
    content, problems = read_stack_file(text, "f")
    assert (content["other"], content["both"]) == ({"x": 1, "y": 3}, {"x": 5, "y": 2})
    assert problems == []


@pytest.mark.slow
@pytest.mark.parametrize("text", ["a: b: c", "a: {b", "a: &a [*a]", "? [1]\n: 2", "\ta: 1", "a: " + "[" * 5000])
def test_what_is_no_yaml_of_keys_and_values_is_named_with_its_file(text: str) -> None:
    with pytest.raises(StackFileError, match=r"Pulumi\.x\.yaml"):
        read_stack_file(text, "Pulumi.x.yaml")


def test_no_secret_is_shown_where_a_value_is_refused() -> None:
    _, (problem,) = read_stack_file("a: !x hf_abcdefghijklmnop\n", "f")
    assert "hf_" not in str(problem)


@pytest.mark.slow
@given(st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), max_size=20))
def test_every_text_arrives_as_it_is_once_it_is_quoted(text: str) -> None:
    written = yaml.safe_dump({"a": text}, default_style='"', allow_unicode=True)
    assert read_stack_file(written, "f") == ({"a": text}, [])


@pytest.mark.slow
@given(st.from_regex(r"[-+0-9._:eExobTZyYnNofs]{1,12}", fullmatch=True))
def test_what_is_not_refused_is_what_other_readers_take_it_for(written: str) -> None:
    content, problems = read_stack_file(f"a: {written}\n", "f") if _is_scalar(written) else (None, ["skipped"])
    if not problems:
        assert content == yaml.safe_load(f"a: {written}\n")


def _is_scalar(written: str) -> bool:
    try:
        return isinstance(yaml.compose(f"a: {written}\n").value[0][1], yaml.ScalarNode)
    except (yaml.YAMLError, AttributeError, IndexError):
        return False


def test_aliases_of_aliases_are_counted_and_refused_beyond_a_bound() -> None:
    lines = ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines += [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]" for level in range(1, 12)]
    with pytest.raises(StackFileError, match="more than 50,000 values, each alias counted"):
        read_stack_file("\n".join(lines), "Pulumi.dev.yaml")
    content, problems = read_stack_file("\n".join(lines[:3]), "Pulumi.dev.yaml")
    assert (len(content["a2"]), problems) == (10, [])
