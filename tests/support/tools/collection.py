"""A plugin of pytest that reports each collected test's marks, and the selections that leave out its module unread."""

import json
from fnmatch import fnmatchcase
from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Name the report, and the selections (`-m`) to try."""
    parser.addoption("--collection-report", type=Path)
    parser.addoption("--collection-selections", type=json.loads)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Write the report."""
    config = session.config
    ignored: dict[Path, list[str]] = {}
    for path in {item.path for item in session.items}:
        ignored[path] = []
        for selection in config.option.collection_selections:
            config.option.markexpr = selection
            if config.hook.pytest_ignore_collect(collection_path=path, config=config):
                ignored[path].append(selection)
    config.option.markexpr = ""
    tests = [
        {"id": item.nodeid, "marks": [mark.name for mark in item.iter_markers()], "ignored by": ignored[item.path]}
        for item in session.items
    ]
    report = {"tests": tests, "patterns without a case": _patterns_without_a_case(session.items)}
    config.option.collection_report.write_text(json.dumps(report))


def _patterns_without_a_case(items: list[pytest.Item]) -> list[tuple[str, str]]:
    """Return what `wide_except` or `wide_cases` names and no case of its test is called."""
    cases: dict[tuple[str, str], bool] = {}
    for item in items:
        marks = [*item.iter_markers("wide_except"), *item.iter_markers("wide_cases")]
        for pattern in (pattern for mark in marks for pattern in mark.args):
            key = (item.nodeid.partition("[")[0], pattern)
            cases[key] = cases.get(key, False) or fnmatchcase(item.callspec.id, pattern)  # type: ignore[attr-defined]
    return [key for key, used_items in cases.items() if not used_items]
