"""Examples: a plan without a price is not judged, a wrong one fails, and the shipped ones are all valid."""

import shutil
from datetime import date
from pathlib import Path

import pytest

from bezel.engine.outcomes import Exit
from bezel.engine.project.pipeline_file import Pipeline, read_pipeline
from bezel.engine.project.project import Project
from bezel.gitops.examples import check_examples
from tests.support.gitops.working_copy import ROOT

TODAY = date(2026, 11, 27)
UNPRICED = "gce-l4x8"


@pytest.mark.slow
def test_each_shipped_example_passes_and_the_unpriced_one_is_not_judged() -> None:
    project = Project(ROOT)
    pipeline = read_pipeline(project)
    report = check_examples(project, pipeline, TODAY)
    assert report.exit_code == Exit.DONE
    states = {row.stack: row.state for row in report.examples}
    assert states == {
        stack: "not judged" if stack == UNPRICED else "planned" for stack in set(project.stacks()) - {*pipeline.stacks}
    }
    for text in (report.text(), report.markdown()):
        assert "limits and policies on cost are not judged" in text
        assert "g2-standard-96, us-central1, spot" in text


@pytest.mark.parametrize("stack", [UNPRICED, "l4-e2b"])
def test_a_wrong_example_fails_with_every_problem_with_or_without_a_price(tmp_path: Path, stack: str) -> None:
    shutil.copy(ROOT / "Pulumi.yaml", tmp_path)
    text = (ROOT / f"Pulumi.{stack}.yaml").read_text()
    (tmp_path / f"Pulumi.{stack}.yaml").write_text(text.replace("bezel:labels:", "bezel:lables:"))
    report = check_examples(Project(tmp_path), Pipeline({}), TODAY)
    assert report.exit_code == Exit.FAILED
    (row,) = report.examples
    assert row.state == "refused"
    assert "lables" in "".join(row.details)
    assert f"{stack}: refused" in report.text()


def test_a_named_stack_is_no_example() -> None:
    project = Project(ROOT)
    report = check_examples(project, Pipeline(dict.fromkeys(project.stacks(), "dev")), TODAY)
    assert (report.examples, report.exit_code) == ((), Exit.DONE)
    assert "no examples" in report.text() + report.markdown()


def test_a_text_of_a_stack_file_forges_no_markup(tmp_path: Path) -> None:
    shutil.copy(ROOT / "Pulumi.yaml", tmp_path)
    (tmp_path / "Pulumi.x.yaml").write_text('config:\n  bezel:model: "`a`\\n# Title @team"\n')
    text = check_examples(Project(tmp_path), Pipeline({}), TODAY).markdown()
    assert not any(line.startswith("# ") for line in text.splitlines())
    assert all(line.count("`") in (0, 2) for line in text.splitlines())
