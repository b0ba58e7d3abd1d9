"""`bezel init` checks the checkout's pipeline first, names its stacks, and writes a missing file."""

import shutil
from pathlib import Path

import pytest

from bezel.engine.project.pipeline_file import FILE, Pipeline, PipelineError, pipeline_of, read_pipeline
from bezel.engine.project.project import Project
from bezel.foundation.settings import checked_settings
from bezel.gitops.project_setup import forge_settings
from bezel.gitops.project_setup.pipeline import checked_pipeline, checkout_around, write_pipeline
from bezel_base.errors import UserError
from tests.bootstrap.test_setup_text import FOLDER, OUTPUTS
from tests.support.bootstrap.project import PROJECT, SETTINGS

ROOT = Path(__file__).parents[2]
BOTH = ("dev", "prod")


@pytest.fixture
def checkout(tmp_path: Path) -> Project:
    """The program's stack files and packs, without a pipeline's file."""
    shutil.copytree(ROOT / "policies", tmp_path / "policies")
    for file in ROOT.glob("Pulumi*.yaml"):
        shutil.copy(file, tmp_path)
    return Project(tmp_path)


def test_a_checkout_is_known_by_its_packs(checkout: Project, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    assert checkout_around(tmp_path / "docs") == checkout
    assert checkout_around(ROOT / "bootstrap" / "bezel_bootstrap") is None, "a program of its own, without packs"
    shutil.rmtree(tmp_path / "policies" / "security")
    assert checkout_around(tmp_path) is None


@pytest.mark.slow
def test_a_missing_file_is_written_with_what_held_without_it(checkout: Project) -> None:
    before = checked_pipeline(checkout, BOTH)
    assert not before.is_declared
    written = write_pipeline(checkout, before)
    after = read_pipeline(checkout)
    assert (written.name, dict(after.stacks), after.protected) == (FILE, dict(before.stacks), ("prod",))
    assert set(after.stacks) == set(checkout.stacks())
    assert after.packs["hardware_cost"] == {name: f"policies/hardware_cost.{name}.json" for name in BOTH}


def test_a_wrong_file_or_an_environment_of_no_job_stops_the_set_up(checkout: Project) -> None:
    shutil.copy(ROOT / FILE, checkout.folder)
    assert checked_pipeline(checkout, ["dev"]) == pipeline_of(checkout)
    with pytest.raises(UserError, match=r"bezel\.toml: dev = l4-qat") as refused:
        checked_pipeline(checkout, ["prod"])
    assert "--environment" in str(refused.value)
    (checkout.folder / "Pulumi.l4-qat.yaml").unlink()
    with pytest.raises(PipelineError, match=r"there is no Pulumi\.l4-qat\.yaml"):
        checked_pipeline(checkout, BOTH)


@pytest.mark.parametrize("forge", [{}, {"forge": "gitea", "issuer": "https://forge.example/oidc"}])
def test_the_text_names_the_pipelines_stacks_and_what_is_approved(forge: dict[str, str]) -> None:
    def text(pipeline: Pipeline | None) -> str:
        settings = checked_settings(SETTINGS | forge, PROJECT)
        return forge_settings.text(OUTPUTS, settings, FOLDER, has_key=True, pipeline=pipeline)

    printed = text(Pipeline({"small": "dev", "large": "prod"}, ("dev", "prod")))
    assert "pulumi stack init small " in printed
    assert "pulumi stack init large " in printed
    assert "dev and prod" in printed
    assert "dev and prod" not in text(None)
    assert "pulumi stack init STACK " in text(None)
