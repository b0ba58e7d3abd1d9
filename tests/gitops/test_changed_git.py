"""The base of a change: from the option, the event, the default branch; a history that ends too early is an error."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from bezel.gitops.changed.git_trees import base_of, changes_between, write_tree
from bezel.gitops.changed.rules import FileChange
from bezel_base.errors import UserError
from tests.support.gitops.working_copy import WorkingCopy

if TYPE_CHECKING:
    from pathlib import Path

ODD = 'odd "näme\twith\nall.md'


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> WorkingCopy:
    """A clone whose branch left `main` two commits ago; `main` went further."""
    folder = tmp_path_factory.mktemp("template")
    WorkingCopy(folder, "").git("init", "--quiet", "--bare", str(folder / "hub.git"))
    made = WorkingCopy.of(folder / "copy", str(folder / "hub.git"), ["LICENSE"])
    made.git("remote", "add", "origin", made.remote)
    made.push("main")
    made.git("fetch", "--quiet", "origin")
    made.git("checkout", "--quiet", "-b", "other")
    made.write("elsewhere.md", "main's own")
    made.commit("On main")
    made.push("main")
    made.git("fetch", "--quiet", "origin")
    made.git("checkout", "--quiet", "-b", "work", "HEAD~1")
    made.write(ODD, "x")
    made.commit("One")
    made.git("mv", "LICENSE", "LICENCE")
    made.commit("Two")
    return made


@pytest.fixture
def copy(template: WorkingCopy, tmp_path: Path) -> WorkingCopy:
    """The same for one test alone; no test pushes to its remote."""
    shutil.copytree(template.folder, tmp_path / "copy", symlinks=True)
    return WorkingCopy(tmp_path / "copy", template.remote)


def event(tmp_path: Path, content: object) -> dict[str, str]:
    file = tmp_path / "event.json"
    file.write_text(json.dumps(content))
    return {"GITHUB_EVENT_PATH": str(file)}


@pytest.mark.slow
def test_the_default_is_where_head_left_the_default_branch(copy: WorkingCopy) -> None:
    base = base_of(copy.folder, "", {})
    assert base == copy.git("rev-parse", "HEAD~2")
    changes = changes_between(copy.folder, base, "HEAD")
    assert {*changes} == {FileChange("A", ODD), FileChange("D", "LICENSE"), FileChange("A", "LICENCE")}


@pytest.mark.slow
def test_an_event_has_its_own_base(copy: WorkingCopy, tmp_path: Path) -> None:
    main = copy.git("rev-parse", "origin/main")
    pull = event(tmp_path, {"pull_request": {"number": 1, "base": {"sha": main}}})
    assert base_of(copy.folder, "", pull) == copy.git("rev-parse", "HEAD~2")
    before = copy.git("rev-parse", "HEAD~1")
    assert base_of(copy.folder, "", event(tmp_path, {"before": before})) == before
    new_branch = event(tmp_path, {"before": "0" * 40})
    assert base_of(copy.folder, "", new_branch) == copy.git("rev-parse", "HEAD~2")
    assert base_of(copy.folder, "HEAD~1", pull) == before, "the option comes first"


@pytest.mark.slow
@pytest.mark.parametrize("content", [{"before": "1" * 40}, {"pull_request": {"base": {"sha": "1" * 40}}}])
def test_a_base_that_the_clone_lacks_names_the_depth(copy: WorkingCopy, tmp_path: Path, content: object) -> None:
    with pytest.raises(UserError, match="fetch-depth: 0"):
        base_of(copy.folder, "", event(tmp_path, content))


@pytest.mark.slow
def test_an_unknown_revision_and_one_like_an_option_are_refused(copy: WorkingCopy) -> None:
    for revision in ("nosuch", "--all", "HEAD~99"):
        with pytest.raises(UserError, match="no such commit"):
            base_of(copy.folder, revision, {})


@pytest.mark.slow
def test_a_shallow_clone_is_refused_unless_the_base_is_there(copy: WorkingCopy, tmp_path: Path) -> None:
    shallow = tmp_path / "shallow"
    copy.git("clone", "--quiet", "--depth=2", f"file://{copy.folder}", str(shallow))
    with pytest.raises(UserError, match="fetch-depth: 0"):
        base_of(shallow, "", {})
    assert base_of(shallow, "HEAD~1", {}) == copy.git("rev-parse", "HEAD~1")


@pytest.mark.slow
def test_a_clone_without_a_remote_needs_a_base(copy: WorkingCopy) -> None:
    copy.git("remote", "remove", "origin")
    with pytest.raises(UserError, match="--base REV"):
        base_of(copy.folder, "", {})


@pytest.mark.slow
def test_a_tree_is_written_as_committed_and_the_index_stays(copy: WorkingCopy, tmp_path: Path) -> None:
    copy.write("LICENCE", "not committed")
    copy.git("add", "LICENCE")
    status = copy.git("status", "--porcelain")
    written = write_tree(copy.folder, "HEAD", tmp_path / "tree")
    assert sorted(file.name for file in written.iterdir()) == sorted(["LICENCE", ODD])
    assert (written / "LICENCE").read_text() != "not committed"
    assert copy.git("status", "--porcelain") == status


@pytest.mark.slow
def test_a_project_in_a_folder_below_has_its_own_paths(copy: WorkingCopy, tmp_path: Path) -> None:
    copy.write("project/Pulumi.dev.yaml", "config: {}")
    copy.write("shared.txt", "x")
    head = copy.commit("Three")
    folder = copy.folder / "project"
    assert {*changes_between(folder, "HEAD~1", head)} == {
        FileChange("A", "Pulumi.dev.yaml"),
        FileChange("A", "/shared.txt"),
    }
    assert (write_tree(folder, head, tmp_path / "tree") / "Pulumi.dev.yaml").exists()
