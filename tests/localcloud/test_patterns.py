"""Patterns of callers run in RE2 and are counted; the project's own are shown not to backtrack without end."""

import ast
import importlib
import re
from collections import defaultdict
from fnmatch import fnmatchcase
from functools import cache
from itertools import chain
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from bezel_localcloud.access.permissions import roles
from bezel_localcloud.core.path_templates import _form
from bezel_localcloud.core.patterns import LONGEST, PatternError, glob, regular_expression, shell_pattern_fits
from bezel_localcloud.core.work import TooMuchWorkError, Work
from bezel_localcloud.http.methods import _others, _served_templates
from bezel_localcloud.routing.route_table import RouteTable
from localcloud_support.ambiguity import ambiguity
from localcloud_support.in_process import Project
from tests.support.source_nodes import nodes_of

ROOT = Path(__file__).parents[2]
FOLDERS = ("packages/localcloud/bezel_localcloud", "packages/simulated-vllm/bezel_simulated_vllm", "bezel/proxy")
ENGINES = {"re", "fnmatch", "glob", "regex", "re2"}
NAMED = re.compile(rf"\b({'|'.join(ENGINES)})\b")
SEARCHES = {"search", "findall", "finditer", "sub", "subn", "split"}
# (module, function) -> why its pattern, which is no constant, is not a caller's.
BUILT = {
    ("bezel_localcloud.core.path_templates", "_form"): "a segment of a path of Google's documents",
    ("bezel_localcloud.routing.bare_paths", "_pattern"): "a path of a route",
    ("bezel_localcloud.routing.raw_routes", "_expression"): "a path of a route",
    ("bezel_localcloud.routing.route_table", "_alternatives"): "paths of routes, one after the other",
    ("bezel_localcloud.services.balancer.targets", "target"): "a URL mask: two parts of 63 characters at most",
    ("bezel_simulated_vllm.configuration.relations.quantisation", "_targets"): "parsed and never matched",
}
# Patterns with more than a constant number of ways -> why that has a bound.
BOUNDED = {
    r"\{[^}]*\}": "a path of a route, of some hundred characters",
    r"\{(?P<name>\w+)[^}]*\}": "the same",
    r"[^@\s]+@[^@\s]+\.[^@\s]+": "320 characters at most, checked before",
    r"([0-9]{1,20})(?:\.([0-9]{1,20}))?(h|ms|m|s|us|ns)": "a duration of 200 characters at most, checked before",
}
# Modules that use another engine than `re` -> why.
OTHERS = {
    ("bezel_localcloud.core.patterns", "re2"): "the engine of callers' patterns",
    ("bezel_localcloud.access.permissions", "fnmatch"): "permissions of predefined roles, this project's own data",
}


@cache
def modules():
    """(name of a module, its tree) of every module that imports an engine."""
    pairs = []
    for folder in FOLDERS:
        root = ROOT if folder.startswith("bezel/") else (ROOT / folder).parent
        for file in sorted((ROOT / folder).rglob("*.py")):
            text = file.read_text()
            if not NAMED.search(text):
                continue
            tree = ast.parse(text)
            if engines_of(tree):
                pairs.append((".".join(file.relative_to(root).with_suffix("").parts), tree))
    return pairs


def engines_of(tree):
    imports = [node for node in nodes_of(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    names = [alias.name for node in imports if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module for node in imports if isinstance(node, ast.ImportFrom)]
    return ENGINES & set(names)


def calls_of(tree):
    """(function that holds it or "", call) of every call of `re`."""
    nodes = nodes_of(tree)
    within = set()
    for outer in nodes:
        if isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef):
            inner = nodes_of(outer)
            yield from ((outer.name, node) for node in inner if is_call(node))
            within.update(map(id, inner))
    yield from (("", node) for node in nodes if is_call(node) and id(node) not in within)


def is_call(node):
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "re"
        and node.func.attr not in {"escape", "error"}
    )


def constants():
    """(module, pattern, flags, whether it is searched for) of every constant pattern."""
    for name, tree in modules():
        used = defaultdict(set)
        for node in nodes_of(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                used[node.value.id].add(node.attr)
        for constant, value in vars(importlib.import_module(name)).items():
            if isinstance(value, re.Pattern):
                yield name, value.pattern, value.flags, bool(used[constant] & SEARCHES)
        for _, call in calls_of(tree):
            if isinstance(call.args[0], ast.Constant):
                yield name, call.args[0].value, 0, call.func.attr in SEARCHES


@pytest.mark.slow
def test_no_constant_pattern_has_ways_without_bound():
    checked, wrong = 0, []
    for name, pattern, flags, anywhere in constants():
        checked += 1
        if pattern not in BOUNDED and (ways := ambiguity(pattern, flags, anywhere=anywhere)) != "constant":
            wrong.append(f"{name}: {pattern!r} has {ways} many ways to match")
    assert wrong == []
    assert checked > 150


@pytest.mark.slow
def test_only_the_listed_patterns_are_built_in_a_function():
    built_patterns = {
        (name, function)
        for name, tree in modules()
        for function, call in calls_of(tree)
        if function and not isinstance(call.args[0], ast.Constant)
    }
    assert built_patterns == set(BUILT)


@pytest.mark.slow
def test_only_the_listed_modules_use_another_engine():
    assert {(name, engine) for name, tree in modules() for engine in engines_of(tree) - {"re"}} == set(OTHERS)


@pytest.mark.slow
def test_no_path_of_a_route_has_ways_without_bound(tmp_path):
    project = Project(tmp_path / "cloud")
    application = project.application
    while not isinstance(application, RouteTable):  # within what bounds, guards and faults requests
        application = application._app
    groups = [*application._decoded.values(), *application._raw.values()]
    patterns = {pattern for group in groups for pattern in group.patterns}
    segments = {
        segment
        for templates in (_served_templates(), _others())
        for by_places in templates._shapes.values()
        for by_texts in by_places.values()
        for row in chain.from_iterable(by_texts.values())
        for _, segment in row.parameters
    }
    routes = len(patterns)
    patterns |= {_form(segment, strict).pattern for strict in (False, True) for segment in segments}
    project.close()
    assert [pattern for pattern in patterns if ways(shape(pattern)) == "exponential"] == []
    assert (routes > 300, len(segments) > 150) == (True, True)


def shape(pattern):
    """A path's pattern with short words: only the parameters can be matched in several ways."""
    return re.sub(r"\(\?P<\w+>", "(?:", re.sub(r"[A-Za-z0-9]{3,}(?![^(]*>)", "w", pattern))


@cache
def ways(pattern):
    return ambiguity(pattern)


@pytest.mark.parametrize(
    "pattern", sorted({pattern for each in roles().values() for pattern in each if "*" in pattern})
)
def test_a_role_names_permissions_with_one_star(pattern):
    assert pattern.count("*") == 1


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (r"(x+x+)+y", "exponential"),
        (r"^(a+)+$", "exponential"),
        (r"(\w+\s?)*", "exponential"),
        (r"[0-9]+[a-z0-9]*/", "polynomial"),
        (r"\d+\.?\d*", "polynomial"),
        (r"[a-z]([-a-z0-9]*[a-z0-9])?", "constant"),
        (r'"(?:[^"\\]|\\.)*"', "constant"),
    ],
)
def test_ways_to_match_are_counted(pattern, expected):
    assert ambiguity(pattern) == expected


@pytest.mark.parametrize(
    ("pattern", "expected"), [(r"\s+AND", "polynomial"), (r"[a-z]+", "constant"), (r"[a-z]+$", "polynomial")]
)
def test_a_search_begins_at_each_place(pattern, expected):
    assert ambiguity(pattern, anywhere=True) == expected


@pytest.mark.parametrize("pattern", [r"^(a+)+$", r"(a|aa)+$", r"(.*)*x", r"^(\w+\s?)*$", r"(a?){30}a{30}$"])
def test_a_pattern_that_backtracks_is_searched_for_in_few_steps(pattern):
    work = Work(20_000)
    assert not regular_expression(pattern, work).found_in("a" * 10_000 + "!", work)
    assert work.spent < 20_000


@pytest.mark.parametrize(
    "pattern", ["(?=a)", r"(a)\1", "(?<!a)b", "(", "a{1001}", "[z-a]", "a" * (LONGEST + 1), "é" * LONGEST]
)
def test_what_is_not_re2_is_no_pattern(pattern):
    with pytest.raises(PatternError):
        regular_expression(pattern, Work(10**9))


@pytest.mark.parametrize("pattern", ["[a-q][^u-z]{500}x", r"\pL" * 600, "a?" * 1000 + "a" * 1000])
def test_a_large_pattern_is_refused_before_the_work(pattern):
    work = Work(50_000)
    with pytest.raises(TooMuchWorkError):
        regular_expression(pattern, work).found_in("a" * 65_536, work)
    assert work.spent <= 50_000


@pytest.mark.slow
@given(st.text("ab*?[]!-c", max_size=8), st.text("ab!-]c[", max_size=8))
def test_a_shell_pattern_takes_what_the_shell_takes(pattern, text):
    assume(all(first <= last for first, last in re.findall("(?=(.)-(.))", pattern)))  # a range that falls is no pattern
    assert shell_pattern_fits(pattern, text) == fnmatchcase(text, pattern)


@pytest.mark.parametrize(
    ("pattern", "text", "fits"),
    [
        ("a/*", "a/b", True),
        ("a/*", "a/b/c", False),
        ("a/**", "a/b/c", True),
        ("a?c", "abc", True),
        ("a?c", "a/c", False),
        ("[!a]", "b", True),
        ("[^a]", "a", False),
        ("{x,y{1,2}}z", "y2z", True),
        ("{x,y}z", "z", False),
        (r"\*", "*", True),
        (r"\*", "a", False),
        ("**", "a\nb", True),
        ("a.b", "axb", False),
    ],
)
def test_a_glob_takes_names_as_cloud_storage_does(pattern, text, fits):
    work = Work(1_000_000)
    assert glob(pattern, work).fits(text, work) is fits


@pytest.mark.parametrize("pattern", ["[a", "{a", "{a,{b}", "[z-a]", "[" * 3000, "{" * 3000])
def test_a_malformed_glob_is_none(pattern):
    with pytest.raises(PatternError):
        glob(pattern, Work(1_000_000))
