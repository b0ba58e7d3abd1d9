"""Texts of the product and the documents are plain engineering English: the forms of voice.toml stay out of them."""

from __future__ import annotations

import ast
import io
import re
import tokenize
import tomllib
from pathlib import Path

import pytest

from tests.support.source_nodes import nodes_of

ROOT = Path(__file__).parents[2]
VOICE = tomllib.loads(Path(__file__).with_name("voice.toml").read_text(encoding="utf-8"))
MODULES = [
    ROOT / "__main__.py",
    *(
        path
        for folder in (
            "bezel",
            "bootstrap",
            "components",
            "packages",
            "policies",
            "services",
            "smoke",
            "stacks",
            "tools",
        )
        for path in sorted((ROOT / folder).rglob("*.py"))
    ),
]
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md")), *sorted(ROOT.glob("Pulumi*.yaml"))]


# Any form, wherever it stands. Each begins with a word: to try it only there takes a third of the time.
PHRASE, ANY = (
    re.compile(rf"\b(?:{'|'.join(form['pattern'] for kind in kinds for form in VOICE[kind])})", re.IGNORECASE)
    for kinds in (("phrase",), ("phrase", "text"))
)
# What a source may write within a form: an escape, and the end of a literal that the next one continues.
ESCAPE = re.compile(r"\\.", re.DOTALL)
JOINT = re.compile(r"""["']\s*[fFrRuU]{0,2}["']""")
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def may_slip(source: str) -> bool:
    """Whether a source has a form anywhere, or a first line that needs a look; to parse all of them takes seconds."""
    first = re.match(r'"""(\w+)', source)
    if first is None or any(re.fullmatch(form["pattern"], first[1]) for form in VOICE["opening"]):
        return True
    return bool(ANY.search(source) or ANY.search(ESCAPE.sub(" ", JOINT.sub("", source))))


def docstrings(nodes: list[ast.AST]) -> list[ast.Constant]:
    first_statements = [node.body[0] for node in nodes if isinstance(node, DOCUMENTED) and node.body]
    return [
        first.value
        for first in first_statements
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    ]


def comments(source: str) -> list[str]:
    """Comments of a source in which a hash is followed by a form, whatever the hash is; else nothing is to be seen."""
    if not PHRASE.search("\n".join(line[line.index("#") :] for line in source.splitlines() if "#" in line)):
        return []
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return [token.string for token in tokens if token.type == tokenize.COMMENT]


def texts(nodes: list[ast.AST], in_docstrings: set[ast.Constant]) -> str:
    """Literals of more than one word, docstrings left out: what a user may read at run time."""
    literals = [node.value for node in nodes if isinstance(node, ast.Constant) and node not in in_docstrings]
    return "\n".join(text for text in literals if isinstance(text, str) and " " in text.strip())


def slips(text: str, *kinds: str) -> list[str]:
    """Each place where a text has a form that the list keeps out, with the reason."""
    return [
        f"{match[0]!r} in {text[max(0, match.start() - 40) : match.end() + 30]!r}: {form['reason']}"
        for kind in kinds
        for form in VOICE[kind]
        for match in re.finditer(form["pattern"], text, re.IGNORECASE)
    ]


def slips_of_module(source: str) -> list[str]:
    if not may_slip(source):
        return []
    tree = ast.parse(source)
    nodes = nodes_of(tree)
    documents = docstrings(nodes)
    prose = "\n".join([*(str(document.value) for document in documents), *comments(source)])
    opening = (ast.get_docstring(tree) or "").partition(" ")[0]
    form_slips = [
        f"{opening!r} opens the module's docstring: {form['reason']}"
        for form in VOICE["opening"]
        if re.fullmatch(form["pattern"], opening)
    ]
    return form_slips + slips(prose, "phrase") + slips(texts(nodes, set(documents)), "phrase", "text")


def test_every_module_is_written_in_plain_words() -> None:
    slips_by_path = {str(path.relative_to(ROOT)): slips_of_module(path.read_text(encoding="utf-8")) for path in MODULES}
    assert {path: texts_of_path for path, texts_of_path in slips_by_path.items() if texts_of_path} == {}


def test_every_document_is_written_in_plain_words() -> None:
    slips_by_path = {
        str(path.relative_to(ROOT)): slips(path.read_text(encoding="utf-8"), "phrase", "text") for path in DOCUMENTS
    }
    assert {path: texts_of_path for path, texts_of_path in slips_by_path.items() if texts_of_path} == {}


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ('"""What becomes of changes."""', 1),
        ('"""Changes whose end is unknown."""', 0),
        ('"""Whatever."""', 0),
        ('"""Locks."""\n# as the caller is told\n', 1),
        ('"""Locks."""\ntold = "told"\n', 0),
        ('"""Locks."""\nTEXT = "x is no number"\n', 1),
        ('"""A lock is no number."""\n', 0),
        ('def f():\n    """Durations as they are spoken."""\n', 1),
        ('"""Locks."""\nTEXT = "first line\\ntold"\n', 1),
        ('"""Locks."""\nTEXT = ("a lock is no "\n        f"number {1}")\n', 1),
    ],
)
def test_a_form_of_the_list_is_found_in_prose_and_texts_and_nowhere_else(source: str, count: int) -> None:
    assert len(slips_of_module(source)) == count


def test_each_form_has_its_reason() -> None:
    assert all(form["reason"] and re.compile(form["pattern"]) for forms in VOICE.values() for form in forms)


def test_each_form_begins_with_a_word() -> None:
    """Otherwise the first look at a source would pass it over."""
    forms = [form["pattern"] for kind in ("phrase", "text") for form in VOICE[kind]]
    alternatives = [each for pattern in forms for each in re.split(r"\|(?![^(]*\))", pattern)]
    assert [each for each in alternatives if not re.match(r"(?:\(\?<![^)]*\))?\\b", each)] == []
