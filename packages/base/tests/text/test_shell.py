"""A quoted value stays one word of a real shell."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from base_support.shell import HOSTILE, one_line, words_of
from bezel_base.text.shell import shell_word, shell_word_for_make


@pytest.mark.parametrize("value", HOSTILE)
def test_a_value_stays_one_word_of_a_real_shell(value: str, tmp_path: Path) -> None:
    command = f"before --option={shell_word(value)} {shell_word(value)} after"
    assert words_of(command, tmp_path) == ["before", f"--option={one_line(value)}", one_line(value), "after"]
    assert "`" not in command
    assert "\n" not in command


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.text(st.sampled_from("ab '\"`$\\;&|<>(){}[]*?!#~%\t\n-="), max_size=12))
def test_any_value_stays_one_word(tmp_path_factory: pytest.TempPathFactory, value: str) -> None:
    folder = tmp_path_factory.mktemp("shell")
    assert words_of(f"a {shell_word(value)} b", folder) == ["a", value.replace("\n", " "), "b"]


@pytest.mark.parametrize(
    "value", ["l4-qat", "projects/p/roles/r", "gs://b/x", "principal://iam/x", "a@b.example", "1.5"]
)
def test_a_plain_value_stays_as_it_is(value: str) -> None:
    assert shell_word(value) == value
    assert shell_word_for_make(value) == value
