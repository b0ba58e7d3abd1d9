"""What ships passes its own pipeline: the steps that the workflow runs for a pull request that touches shared code."""

import json
import re
import shutil
from pathlib import Path

import pytest
import yaml

from bezel.engine.project.pipeline_file import FILE, pipeline_of, read_pipeline
from bezel.engine.project.project import Project
from bezel.gitops.changed import command
from tests.support.e2e.rehearsal import Rehearsal as Checkout
from tests.support.gitops.working_copy import ROOT, WorkingCopy, tracked_files

pytestmark = pytest.mark.slow
PROGRAM = re.compile(
    r"(bezel|bootstrap|components|packages|policies|services|smoke|stacks)/|__main__\.py$|Pulumi\.[\w.-]+$|(pyproject|bezel)\.toml$"
)
PIPELINE = read_pipeline(Project(ROOT))
UNPRICED = "gce-l4x8"


@pytest.fixture
def copy(tmp_path: Path) -> WorkingCopy:
    """A working copy whose last commit touches shared code."""
    made = WorkingCopy.of(tmp_path / "copy", "", [name for name in tracked_files() if PROGRAM.match(name)])
    made.write(
        "packages/base/bezel_base/errors.py",
        (made.folder / "packages/base/bezel_base/errors.py").read_text() + "\n# changed\n",
    )
    made.commit("Change shared code")
    return made


@pytest.mark.wide
def test_a_change_of_shared_code_takes_the_named_stacks(copy: WorkingCopy) -> None:
    report = command.changed_stacks(copy.folder, "HEAD~1", {})
    assert report.matrix == {
        "include": [{"stack": stack, "environment": name} for stack, name in sorted(PIPELINE.stacks.items())]
    }
    assert set(report.concerned.examples) == set(PIPELINE.examples(Project(ROOT)))
    copy.write(FILE, (copy.folder / FILE).read_text().replace("[stacks]", '[stacks]\nrtx6000-fp8 = "prod"'))
    copy.commit("Name a stack")
    named = command.changed_stacks(copy.folder, "HEAD~1", {})
    assert {"stack": "rtx6000-fp8", "environment": "prod"} in named.matrix["include"]
    copy.git("rm", "--quiet", FILE)
    copy.commit("Remove the file")
    assert set(command.changed_stacks(copy.folder, "HEAD~1", {}).stacks) == set(Project(ROOT).stacks()), (
        "every one counts"
    )


@pytest.mark.wide
def test_the_named_stacks_pass_their_rehearsal_and_an_unpriced_one_fails(tmp_path: Path) -> None:
    checkout = Checkout.new(tmp_path / "program", tmp_path / "cloud")
    shutil.copy(ROOT / FILE, checkout.folder)
    (tmp_path / "tmp").mkdir()
    steps = yaml.safe_load((ROOT / ".github/workflows/preview.yml").read_text())["jobs"]
    assert steps["rehearse"]["steps"][-1]["run"] == '.venv/bin/bezel ci rehearse "$STACK" --base "$BASE"'
    assert steps["examples"]["steps"][-1]["run"] == ".venv/bin/bezel ci examples"
    temporary = {"TMPDIR": str(tmp_path / "tmp")}
    for stack in PIPELINE.stacks:
        run = checkout.bezel("ci", "rehearse", stack, "--speed", "2000", **temporary)
        assert run.code == 0, run.text
    assert checkout.bezel("ci", "examples", **temporary).code == 0
    named = (ROOT / FILE).read_text().replace("[stacks]", f'[stacks]\n{UNPRICED} = "prod"')
    (checkout.folder / FILE).write_text(named)
    assert UNPRICED in pipeline_of(Project(checkout.folder)).stacks
    out = tmp_path / "report.json"
    run = checkout.bezel("ci", "rehearse", UNPRICED, "--out", str(out), **temporary)
    assert run.code != 0, run.text
    assert json.loads(out.read_text())["verdict"] in {"failed", "refused"}
    assert "the price there is unknown" in run.text
    assert list((tmp_path / "tmp").iterdir()) == []
