"""Names say what a thing is: functions are verbs or nouns, variables are what they hold, tests are a short sentence."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.source_nodes import nodes_of

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
RULES = tomllib.loads(Path(__file__).with_name("names.toml").read_text(encoding="utf-8"))
EXCEPTIONS: dict[str, str] = RULES["exceptions"]
FOLDERS = ("bezel", "bootstrap", "components", "packages", "policies", "services", "smoke", "stacks", "tests", "tools")
LONGEST_TEST_NAME = 70
MOST_EXCEPTIONS = 40
FUNCTION = re.compile(r"\bdef\s+(\w+)")
# What follows a name that a value is bound to; a word of a docstring that a colon or comma follows is a false alarm.
RIDDLE = re.compile(
    rf"\b_*(?:{'|'.join(RULES['riddles'])})_*\s*(?:=(?!=)|[:,)\]]|\bin\b|[-+*/|&%@^<>]+=|$)", re.MULTILINE
)
# A comment, or a literal with its prefix; a literal of the f kind may bind names.
LITERAL = re.compile(
    r"""#[^\n]*|(?<!\w)([bBrRuUfF]*)(?:(\"{3}|'{3})(?:\\.|[^\\])*?\2|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')""",
    re.DOTALL,
)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
CLASS = re.compile(r"^class (\w+)", re.MULTILINE)


def is_participle(name: str) -> bool:
    """Whether a name is one word, and that a participle: `_shown`, `checked`."""
    word = name.strip("_")
    if "_" in word or word in RULES["no_participles"]:
        return False
    return (word.endswith("ed") and len(word) > len("shed")) or word in RULES["irregular_participles"]


def may_slip(source: str) -> bool:
    """Whether a source may have a slip; to parse all of them takes seconds."""
    functions = FUNCTION.findall(source)
    return any(is_participle(name) or len(name) > LONGEST_TEST_NAME for name in functions) or bool(
        RIDDLE.search(source) and RIDDLE.search(without_literals(source))
    )


def without_literals(source: str) -> str:
    """Source without comments and literals, but those of the f kind."""
    return LITERAL.sub(lambda match: match[0] if "f" in (match[1] or "").lower() else "''", source)


def slips(source: str) -> Iterator[str]:
    """Each name of a source that has one of the forms."""
    for node in nodes_of(ast.parse(source)):
        if isinstance(node, ast.Name):
            if node.id.strip("_") in RULES["riddles"] and isinstance(node.ctx, ast.Store):
                yield node.id
        elif isinstance(node, ast.arg):
            if node.arg.strip("_") in RULES["riddles"]:
                yield node.arg
        elif isinstance(node, FUNCTIONS) and (
            is_participle(node.name) or (node.name.startswith("test_") and len(node.name) > LONGEST_TEST_NAME)
        ):
            yield node.name


def checked_modules() -> Iterator[tuple[str, str]]:
    """Path and source of each module outside the parts that are pending."""
    for path in [ROOT / "__main__.py", *(path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py")))]:
        name = path.relative_to(ROOT).as_posix()
        if not name.startswith(tuple(RULES["pending"])):
            yield name, path.read_text(encoding="utf-8")


def namespace(path: str) -> str:
    """The part of the product in which a class's name has one meaning: a distribution, or a folder of `bezel`."""
    parts = path.split("/")
    return "/".join(parts[:2]) if parts[0] in {"bezel", "packages"} else parts[0]


def is_excepted(path: str, name: str) -> bool:
    return name in EXCEPTIONS or f"{path}: {name}" in EXCEPTIONS


def test_names_of_functions_variables_and_tests_are_plain() -> None:
    slipped = {
        path: names
        for path, source in checked_modules()
        if may_slip(source) and (names := sorted({name for name in slips(source) if not is_excepted(path, name)}))
    }
    assert slipped == {}


def test_a_name_of_a_class_has_one_meaning_in_its_package() -> None:
    places = defaultdict(list)
    for path, source in checked_modules():
        if path.startswith("tests/") or "/tests/" in path:
            continue
        for name in CLASS.findall(source):
            places[namespace(path), name].append(path)
    repeated = {key: paths for key, paths in places.items() if len(paths) > 1 and key[1] not in EXCEPTIONS}
    assert repeated == {}


def test_exceptions_are_few_and_have_a_reason() -> None:
    assert len(EXCEPTIONS) <= MOST_EXCEPTIONS
    assert all(EXCEPTIONS.values())


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("def _shown(): ...", ["_shown"]),
        ("class Load:\n    async def refused(self): ...", ["refused"]),
        ("def need(): ...\ndef shown_price(): ...\ndef format_price(): ...", []),
        ("found = 1", ["found"]),
        ("for _own in (): ...", ["_own"]),
        ("def price(given): ...", ["given"]),
        ("print(found)", []),
        ('"""Names that are found: none."""', []),
        ("text = f'{[1 for found in ()]}'", ["found"]),
        (f"def test_{'a' * 66}(): ...", [f"test_{'a' * 66}"]),
        (f"def test_{'a' * 65}(): ...", []),
    ],
)
def test_each_form_of_a_name_is_noticed(source: str, names: list[str]) -> None:
    assert list(slips(source)) == names
    assert may_slip(source) or not names
