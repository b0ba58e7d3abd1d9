"""Foreign text in Markdown has no effect of its own, by a parser of CommonMark and of GitHub's extensions."""

import re
from functools import cache
from html.parser import HTMLParser

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from bezel_base.text.markdown import code, code_element, escape_comments, flat, link, plain_or_code, prose, table_row
from bezel_base.text.redaction import PLACEHOLDER

PARSER = MarkdownIt("gfm-like", {"html": True, "linkify": True, "breaks": True})
# Forges make no link of a bare domain, as `0.AL`; `www.` and addresses are looked for below.
PARSER.linkify.tlds(["none"], False)
ZERO_WIDTH = "\u200b"
LONGEST = 400
PIECES = (
    "`", "``", "```", "~~~", "*", "**", "_", "__", "#", "# ", "## ", "- ", "+ ", "1. ", "2) ", "> ", ">", "|",
    "| a | b |", "|---|---|", "---", "===", "***", "[", "]", "(", ")", "![", "[x]", "[x](y)", "[^1]", "[^1]: note",
    "[a]: http://b", "<", "</", "<b>", "<script>", "<!--", "-->", "</details>", "<img src=x>",
    "<https://a.example>", "&amp;", "&lt;", "&#96;", "https://a.example/b", "www.a.example", "mailto:a@b.example",
    "a@b.example", "@user", "@org/team", "#12", "GH-3", "!7", "org/repo#1", "\\", "\\\\", "\\`", "\\|", "~",
    "~~x~~", "$x$", "$$", ":tada:", ":x:", "\n", "\n\n", "\r\n", "\t", "    ", "\u202e", "\u200b", "\x1b[2J",
    "\x00", "\ud800", "plain words", "é", "日本", "'", '"', ";", "%1", "&1", "{{x}}", "{% x %}",
)  # fmt: skip
TEXTS = st.one_of(st.lists(st.sampled_from(PIECES), max_size=8).map("".join), st.text(max_size=40))
# Where the product puts foreign text: the start of a line, a list, an emphasis, a table.
PLACES = (
    "{}",
    "- {}",
    "- refused by {}: x",
    "**Note:** {} after",
    "1. {}\n2. b",
    "| a | b |\n|---|---|\n| {} | c |",
    "# {}",
)


class _Visible(HTMLParser):
    """Elements of a page and its text, apart that of code."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.text = ""
        self.words: list[str] = [""]
        self._in_code = 0

    def handle_starttag(self, tag: str, _attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self._in_code += tag == "code"
        if tag == "code":
            self.words.append("")

    def handle_endtag(self, tag: str) -> None:
        self._in_code -= tag == "code"

    def handle_data(self, data: str) -> None:
        self.text += data
        if not self._in_code:
            self.words[-1] += data


def render(markdown: str) -> _Visible:
    page = _Visible()
    page.feed(PARSER.render(markdown))
    page.close()
    return page


def without_code(tags: list[str]) -> list[str]:
    return [tag for tag in tags if tag != "code"]


@cache
def tame_page(place: str) -> _Visible:
    """Return what a place shows around a word that has no meaning in Markdown."""
    return render(place.format("tame"))


@settings(max_examples=100)
@pytest.mark.slow
@given(TEXTS, st.sampled_from(PLACES))
@example("`a``b`", "{}")
@example("1. x", "{}")
@example("a ##", "# {}")
@example("` #", "# {}")
def test_prose_adds_no_element_and_keeps_its_text(text: str, place: str) -> None:
    plain = flat(text, LONGEST)
    shown = render(place.format(prose(text, LONGEST) or "tame"))
    assert without_code(shown.tags) == tame_page(place).tags
    bare = shown.text.replace(ZERO_WIDTH, "")
    assert all(part in bare for part in re.split(r"[`\s]+", plain))


@settings(max_examples=100)
@pytest.mark.slow
@given(TEXTS, st.sampled_from(PLACES), st.sampled_from([code, code_element]))
def test_code_shows_its_text_character_for_character(text: str, place: str, write) -> None:
    shown = render(place.format(write(text, LONGEST)))
    assert without_code(shown.tags) == tame_page(place).tags
    assert shown.tags.count("code") == 1
    expected = flat(text, LONGEST).strip()
    if expected or write is code:
        assert tame_page(place).text.replace("tame", expected or "(empty)") == shown.text


LINKING = re.compile(r"(?<![\w`])@\w|#\d|\bGH-\d|!\d|://\w|\bwww\.\w|:[a-z_]+:|mailto:\w|\w@\w", re.IGNORECASE)


@pytest.mark.slow
@given(TEXTS)
@example(":tada:_https://a.example/b")
def test_words_hold_nothing_that_a_forge_makes_a_link_of(text: str) -> None:
    for phrase in render(f"- {prose(text, LONGEST)}").words:
        assert not LINKING.search(phrase), phrase


@pytest.mark.slow
@pytest.mark.parametrize("piece", PIECES)
def test_each_mark_of_markdown_is_only_text(piece: str) -> None:
    for text in (piece, f"a {piece} b", f"{piece}{piece}", f"x{piece}", f"{piece}x y", f"`{piece}` and {piece}"):
        for place in PLACES:
            for write in (prose, code, code_element):
                tags = render(place.format(write(text) or "tame")).tags
                assert without_code(tags) == tame_page(place).tags, (write.__name__, text, place)
        assert not any(LINKING.search(phrase) for phrase in render(f"- {prose(text)}").words), text


def test_code_stays_code_within_an_element_that_markdown_does_not_read() -> None:
    text = "<b>`x`</b> @user | #1 **x**"
    shown = render(f"<details><summary>{code_element(text)}</summary>\n\n</details>")
    assert text in shown.text
    assert shown.tags == ["details", "summary", "code"]


def test_a_command_is_copied_as_it_was_written() -> None:
    command = "bezel ci deploy 'a`b;c|d' --approve \"$x\" <&1"
    assert command in render(f"| a |\n|---|\n| {code(command)} |").text
    assert command in render(f"- {code(command)}").text


@pytest.mark.parametrize(
    ("address", "links"),
    [
        ("https://forge.example/o/r/actions/runs/1?x=1#y", True),
        ("http://127.0.0.1:3000/o/r/pulls/2", True),
        ("javascript:alert(1)", False),
        ("https://a.example/) [x](y", False),
        ("https://a.example/<b>", False),
        ("https://u:p@a.example/", False),
        ("", False),
    ],
)
def test_a_link_leads_to_a_plain_web_address_only(address: str, links: bool) -> None:
    assert render(link("log", address)).tags == (["p", "a"] if links else ["p"])


def test_no_function_shows_a_credential() -> None:
    for write in (prose, code, code_element):
        assert "glpat-AbCdEfGhIjKlMnOpQrSt" not in write("token glpat-AbCdEfGhIjKlMnOpQrSt is wrong", 18)
        assert "glpat" not in write("x" * 40 + " glpat-AbCdEfGhIjKlMnOpQrSt", 52)
    assert PLACEHOLDER in flat("DB_PASS=hunter2", 40)


def cells_of(line: str) -> list[str]:
    page = PARSER.render(f"| a | b |\n|---|---|\n{line}\n")
    return re.findall(r"<td>(.*?)</td>", page)


@pytest.mark.parametrize(
    ("cell", "shown"),
    [("a | b", "a | b"), ("a \\| b", "a | b"), ("a\nb\r\nc", "a b c"), ("`x|y`", "<code>x|y</code>"), (3, "3")],
)
def test_cell_ends_at_no_bar_or_line_of_its_own(cell: object, shown: str) -> None:
    assert cells_of(table_row((cell, "last"))) == [shown, "last"]


def test_cell_keeps_markdown_of_its_own() -> None:
    assert table_row(("**a**", prose("b|c"), code("d"), "")) == r"| **a** | b\|c | `d` |  |"


@pytest.mark.parametrize("text", ["<b>x</b>", "[a](http://b)", "www.a.example", "a | b", "`x`", "@user"])
def test_report_text_with_marks_is_code(text: str) -> None:
    page = render(plain_or_code(text))
    assert without_code(page.tags) == ["p"]
    assert page.text.strip() == text


def test_report_text_of_plain_words_is_unchanged() -> None:
    assert plain_or_code("TTFT p99, ms (8 users): 12.5 = 3 x 4") == "TTFT p99, ms (8 users): 12.5 = 3 x 4"


def test_comment_of_foreign_markdown_is_text() -> None:
    assert "&lt;!-- a --&gt;" in PARSER.render(escape_comments("<!-- a -->"))
    assert escape_comments("a <b> -->") == "a <b> -->"
