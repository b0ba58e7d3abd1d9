"""The mutation script removes exactly one thing at a time, and what it makes can be run."""

import ast
import json
from pathlib import Path

import pytest

from tools.mutation.areas import AREAS, Area
from tools.mutation.mutants import mutants

ROOT = Path(__file__).parent.parent.parent

ROW = {"x:Type": {"api": "X", "fields": {"name": "text required", "gcs": {"@": "block", "bucket": "text"}}}}


def names(source: str, kind: str) -> list[str]:
    return [mutant.name for mutant in mutants("x.py", source, (kind,))]


def test_every_row_of_a_table_is_removed_once_and_nothing_else() -> None:
    made = mutants("rows.json", json.dumps(ROW), ("rows",))
    assert [mutant.name for mutant in made] == ["x:Type.name", "x:Type.gcs", "x:Type.gcs.bucket"]
    assert json.loads(made[2].source) == {
        "x:Type": {"api": "X", "fields": {"name": "text required", "gcs": {"@": "block"}}}
    }


def test_a_group_of_rows_loses_each_of_them_once() -> None:
    made = mutants("groups.json", json.dumps({"labels": {"labels": "table", "@groups": "more"}}), ("rows",))
    assert [mutant.name for mutant in made] == ["labels.labels", "labels.@groups"]


def test_a_refusal_is_removed_and_a_generator_stays_one() -> None:
    source = "def f(x):\n    if x:\n        yield 'field', 'wrong'\n    raise ValueError(x)\n    raise\n"
    made = mutants("x.py", source, ("refusals",))
    assert [mutant.name for mutant in made] == ["f: yield ('field', 'wrong')", "f: raise ValueError(x)"]
    scope: dict[str, object] = {}
    exec(made[0].source.replace("raise ValueError(x)", "return").replace("raise\n", ""), scope)  # noqa: S102
    assert list(scope["f"](1)) == []  # type: ignore[operator]


def test_statements_conditions_and_keys_are_each_taken_once() -> None:
    source = '"""Text."""\nA = 1\ndef f(x):\n    "Says."\n    y = {"a": 1, "b": x}\n    return y if x else None\n'
    assert names(source, "statements") == ["f: y = {'a': 1, 'b': x}", "f: key a", "f: key b", "f: not (x)"]


def test_what_only_types_need_is_left_alone() -> None:
    assert names("if TYPE_CHECKING:\n    import x\ndef f(a: dict) -> list:\n    pass\n", "statements") == []


def test_an_entry_of_a_list_in_json_is_removed_by_its_name() -> None:
    (one, two) = mutants("m.json", json.dumps({"v": 1, "families": [{"name": "a"}, {"name": "b"}]}), ("entries",))
    assert one.name == "families: a"
    assert json.loads(two.source) == {"v": 1, "families": [{"name": "a"}]}


def test_two_of_the_same_name_are_distinguished() -> None:
    assert names("def f():\n    g()\n    g()\n", "statements") == ["f: g()", "f: g() (2)"]


@pytest.mark.slow
def test_every_area_finds_something_that_still_is_python() -> None:
    for area in AREAS.values():
        files = [file for pattern in area.files for file in ROOT.glob(pattern)]
        assert files, area.about
        file = min(files, key=lambda path: path.stat().st_size)
        made = [mutant for mutant in mutants(file.name, file.read_text(), area.kinds) if file.suffix == ".py"]
        for mutant in made[:3]:
            ast.parse(mutant.source)


def test_only_what_an_area_names_is_excused() -> None:
    area = Area("x", (), (), (), harmless=(("a.py: f: *", "it only logs"),))
    assert area.excuse("a.py: f: g()") == "it only logs"
    assert area.excuse("b.py: f: g()") is None
