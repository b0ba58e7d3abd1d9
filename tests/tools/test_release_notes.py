"""A release carries the changelog's section of its own version, or is refused."""

from __future__ import annotations

import pytest

from tools.release.notes import notes

CHANGELOG = "# Changelog\n\n## Unreleased\n\n- later\n\n## 0.2.0 (2026-12-01)\n\n- two\n\n## 0.1.0\n\n- one\n"


@pytest.mark.parametrize(("version", "text"), [("0.2.0", "- two\n"), ("0.1.0", "- one\n")])
def test_the_notes_are_the_sections_own(version: str, text: str) -> None:
    assert notes(f"v{version}", version, CHANGELOG) == text


@pytest.mark.parametrize(
    ("tag", "version", "message"),
    [
        ("v0.1.0", "0.2.0", r"the tag is v0\.1\.0, pyproject\.toml says 0\.2\.0"),
        ("0.2.0", "0.2.0", "the tag is 0"),
        ("v0.3.0", "0.3.0", "CHANGELOG.md says nothing"),
        ("v0.2", "0.2", "CHANGELOG.md says nothing"),
    ],
)
def test_a_release_of_two_versions_or_of_none_is_refused(tag: str, version: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        notes(tag, version, CHANGELOG)
