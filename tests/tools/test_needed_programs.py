"""A test whose program is missing skips on a developer's machine, and fails in CI."""

from __future__ import annotations

import pytest

from tests.support.clients import environment
from tests.support.gitops.programs import program
from tests.support.needed_programs import need_program
from tests.support.plugin.program import go_program

CALLERS = {
    "forge": lambda: program("gitea"),
    "package": lambda: go_program("pulumi-sdk-generator"),
    "npm": lambda: environment.npm("pulumi"),
    "go client": lambda: environment.go_tool("crane"),
}


@pytest.mark.parametrize("caller", sorted(CALLERS))
@pytest.mark.parametrize(
    ("ci", "ending"), [("", pytest.skip.Exception), ("true", AssertionError)], ids=["developer", "ci"]
)
def test_a_missing_program_skips_and_fails_in_ci(
    monkeypatch: pytest.MonkeyPatch, caller: str, ci: str, ending: type[BaseException]
) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setenv("CI", ci)
    with pytest.raises(ending, match="is not on PATH"):
        CALLERS[caller]()


def test_a_program_on_path_neither_skips_nor_fails() -> None:
    need_program("git", "is here")
