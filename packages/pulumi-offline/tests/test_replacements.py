"""For each property of each row: whether its change takes a new resource, and how that is known.

Known from the resource's own path (what a URL names cannot be changed by a request to it), from the SDK's
documentation, from Google's discovery documents, or from a source named in `replacements.json`. Top-level properties
are held by the recordings as well (`stables` of every Diff, see bezel_pulumi_offline.fidelity).
"""

import fnmatch

import pytest

from bezel_pulumi_offline.lifecycle.fields import Mark
from bezel_pulumi_offline.resources import TYPES
from pulumi_offline_support.replacements import STATED, is_stated, known_by, settable

# The published SDK's docs of every resource are read, and loading that of Compute alone takes seconds.
pytestmark = pytest.mark.slow


@pytest.mark.parametrize("token", TYPES)
def test_what_replaces_is_known_to(token: str) -> None:
    ways = known_by(token)
    for path, item in settable(TYPES[token].fields):
        if item.marks & Mark.NEW:
            assert ways[path], f"{path} replaces, and nothing says so: replacements.json"
            assert not is_stated("updates", token, path)
        elif ways[path]:
            assert is_stated("updates", token, path), f"{path} does not replace, though it is known by {ways[path]}"


@pytest.mark.parametrize("part", ["replaces", "updates"])
def test_what_is_stated_is_there_and_needed(part: str) -> None:
    for entry in STATED[part]:
        for pattern in entry["paths"]:
            met = [
                (token, path)
                for token in TYPES
                if fnmatch.fnmatchcase(token, entry["of"])
                for path, item in settable(TYPES[token].fields)
                if fnmatch.fnmatchcase(path, pattern) and bool(item.marks & Mark.NEW) == (part == "replaces")
            ]
            assert met, f"{entry['of']} {pattern}"
            assert any("".join(known_by(token)[path]) == "stated" for token, path in met) or part == "updates"
        assert entry["why"]
        assert entry["evidence"]
