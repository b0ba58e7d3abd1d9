"""The tree of a checkout, and whether its files are those of the tree."""

import subprocess

import pytest

from bezel.engine.project.checkout import checkout_of
from bezel_base.errors import UserError


@pytest.fixture
def repository(tmp_path):
    def git(*arguments):
        command = [
            "git",
            "-c",
            "user.name=A",
            "-c",
            "user.email=a@example.com",
            "-c",
            "commit.gpgsign=false",
            *arguments,
        ]
        return subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True).stdout.strip()

    git("init", "-q")
    (tmp_path / "a").write_text("1")
    (tmp_path / ".gitignore").write_text("ignored\n")
    git("add", "-A")
    git("commit", "-qm", "one")
    return tmp_path, git


def test_the_same_files_have_the_same_tree_in_another_commit(repository):
    folder, git = repository
    first = checkout_of(folder)
    git("commit", "-q", "--allow-empty", "-m", "two")
    second = checkout_of(folder)
    assert first.tree == second.tree
    assert first.commit != second.commit
    assert second.is_clean


@pytest.mark.parametrize("name", ["a", "new", "a b é"])
def test_a_changed_or_new_file_is_named_and_an_ignored_one_is_not(repository, name):
    folder, _ = repository
    (folder / "ignored").write_text("x")
    assert checkout_of(folder).is_clean
    (folder / name).write_text("2")
    assert checkout_of(folder).changed == (name,)


def test_a_folder_without_a_commit_is_an_error_that_says_so(tmp_path):
    with pytest.raises(UserError, match="a checkout with at least one commit"):
        checkout_of(tmp_path)
