"""No row is wider than the screen, no word is lost, and the order stays, whatever the blocks hold."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bezel_base.terminal.blocks import Block, Line, Marked, NamedValues, Role, Table, mark
from bezel_base.terminal.display_width import display_width
from bezel_base.terminal.layout import lay_out

WIDTHS = st.integers(40, 130)
WORDS = st.text(st.sampled_from("abcxyz019-./é日本"), min_size=1, max_size=12)
TEXTS = st.lists(WORDS, max_size=14).map(" ".join)
_SEQUENCES = re.compile(r"\x1b\[[0-9;]*m")


def words_of(*texts: object) -> list[str]:
    return sorted(word for text in texts for word in str(text).split())


def shown_words(lines: list[str], *added: str) -> list[str]:
    """The words of lines without brackets around a note and the marks of a sentence below a row."""
    parts = [part.strip("();:") for line in lines for part in line.split()]
    return sorted(part for part in parts if part and part not in added)


@settings(max_examples=50)
@given(TEXTS, WIDTHS, st.integers(0, 8))
@example("日本" * 6 + " " + "日本" * 8, 40, 4)
def test_a_line_has_all_its_words_in_their_order_within_the_width(text: str, width: int, indent: int) -> None:
    lines = lay_out([Line(" " * indent + text)], width)
    assert max(map(display_width, lines)) <= width
    assert " ".join(lines).split() == text.split()
    assert lay_out([Line(" " * indent + text)]) == [(" " * indent + text).rstrip()]


@settings(max_examples=50)
@given(st.lists(st.tuples(WORDS, TEXTS, TEXTS) | st.tuples(TEXTS, TEXTS), max_size=5), WIDTHS)
def test_fields_have_all_words_row_after_row_within_the_width(rows: list[tuple[str, ...]], width: int) -> None:
    named = [(f"n{number}x{row[0]}", *row[1:]) for number, row in enumerate(rows)]
    lines = lay_out([NamedValues(named)], width)
    assert max(map(display_width, lines), default=0) <= width
    assert shown_words(lines) == sorted(word.strip("();:") for row in named for word in words_of(*row))
    begins = [line.split()[0] for line in lines if re.match(r"  n\dx", line)]
    assert begins == [row[0].split()[0] for row in named]


@settings(max_examples=50)
@given(
    st.integers(1, 9).flatmap(
        lambda columns: st.lists(st.lists(TEXTS, min_size=columns, max_size=columns), max_size=4)
    ),
    WIDTHS,
)
def test_a_table_has_all_words_within_the_width(rows: list[list[str]], width: int) -> None:
    heads = [f"h{number}" for number in range(len(rows[0]) if rows else 3)]
    numbered = [[f"r{number}", *row[1:]] for number, row in enumerate(rows)]
    lines = lay_out([Table(heads, numbered)], width)
    assert max(map(display_width, lines)) <= width
    cells = [cell for row in numbered for cell in row if cell != "-"]
    assert [word for word in shown_words(lines, *heads) if word != "-"] == [
        word for word in sorted(word.strip("();:") for word in words_of(*cells)) if word not in ("", "-")
    ]
    assert [line.split()[0] for line in lines if re.match(r"r\d", line)] == [row[0] for row in numbered]


@settings(max_examples=50)
@given(TEXTS, st.text(max_size=30), WIDTHS)
def test_no_control_character_of_a_value_reaches_a_line(name: str, value: str, width: int) -> None:
    blocks: list[Block] = [Line(value), NamedValues([(name, value, value)]), Table(("a", "b"), [(name, value)])]
    text = "".join(lay_out(blocks, width))
    assert not re.search(r"[\x00-\x1f\x7f-\x9f\u202e\ud800-\udfff]", text)


@settings(max_examples=50)
@given(st.lists(st.tuples(WORDS, TEXTS), min_size=1, max_size=3), WIDTHS)
def test_colours_change_no_column(rows: list[tuple[str, str]], width: int) -> None:
    roles = [(Marked(name, Role.GOOD), Marked(text, Role.BAD)) for name, text in rows]
    blocks: list[Block] = [
        Line("warning: a b", None),
        Line("x y", Role.HEADING),
        NamedValues(roles),
        Table(("a", "b"), roles),
    ]
    coloured = lay_out(blocks, width, is_coloured=True)
    assert [_SEQUENCES.sub("", line).rstrip() for line in coloured] == lay_out(blocks, width)
    assert "\x1b[33mwarning\x1b[0m: a b" in coloured
    assert "\x1b" not in "".join(lay_out(blocks, width))


TABLE = Table(
    ("name", "state", "meaning"),
    [("a", mark("ok"), "one two three four five six seven"), ("bb", mark("no"), "-")],
    indent=1,
)


def test_a_sentence_of_a_table_continues_in_its_column() -> None:
    last = " bb    no     -"
    assert lay_out([TABLE]) == [" name  state  meaning", " a     ok     one two three four five six seven", last]
    narrow = [" name  state  meaning", " a     ok     one two three four five", "              six seven", last]
    assert lay_out([TABLE], 40) == narrow


def test_the_last_columns_move_below_the_row_where_they_do_not_fit() -> None:
    address = "https://example.com/a/long/path/that/is/copied"
    table = Table(("name", "of", "address"), [("a", "b", address), Line("others"), ("c", "-", "-")])
    assert lay_out([table], 40) == ["name  of", "a     b", "  address", f"    {address}", "others", "c     -"]
    machine = "m" * 24
    short = Table(("machine", "at a time", "price", "place of it"), [(machine, "12", "1.5", "us-east4")])
    narrow = ["machine                   at a time", f"{machine}  12", "  price: 1.5; place of it: us-east4"]
    assert lay_out([short], 40) == narrow
    wide = ["machine                   at a time  price  place of it", f"{machine}  12         1.5    us-east4"]
    assert lay_out([short], 60) == wide == lay_out([short])


def test_what_is_copied_stays_whole_and_only_it_is_wider_than_the_screen() -> None:
    command = "`bezel tpu delete --name " + "x" * 30 + "`"
    assert lay_out([Line(f"Repair: run {command}, then look")], 40) == ["Repair: run", f"  {command},", "  then look"]
    verbatim = "curl " + "a " * 30
    assert lay_out([Line(verbatim, is_verbatim=True)], 40) == [verbatim.rstrip()]
    assert lay_out([NamedValues([("model", "m"), ("weights", f"gs://{'w' * 30}")])], 40) == [
        "  model    m",
        "  weights",
        f"    gs://{'w' * 30}",
    ]


def test_a_field_without_a_value_is_left_out() -> None:
    assert lay_out([NamedValues([("a", None), ("bb", 1), ("c", "x", "why")])], 40) == ["  bb  1", "  c   x  (why)"]


@pytest.mark.parametrize(
    ("text", "role"),
    [
        ("ok", Role.GOOD),
        ("no callers in 24 h", Role.WARNING),
        ("12 SHORT", Role.BAD),
        ("PROBLEM", Role.BAD),
        ("not judged", Role.WARNING),
        ("l4-qat", None),
        ("", None),
    ],
)
def test_a_verdict_is_known_by_its_words(text: str, role: Role | None) -> None:
    assert mark(text) == Marked(text, role)
