"""Copy of weights into a bucket in each region: one command, from the hub once, each bucket with the whole model."""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from bezel.operations.context import Context
from bezel.operations.model_files.model_files import ModelFilesArguments
from bezel.operations.model_files.model_files import model_files as model_files_of
from bezel.operations.weights.weights_copy import CopyArguments, apply_copy, plan_copy
from bezel_localcloud import control
from bezel_simulated_vllm.synthetic_weights import model_files
from tests.support.e2e import warm_localcloud
from tests.support.weights.copies import Shelf

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
NEAR, FAR = (f"bezel-local-models-{region}" for region in ("us-east4", "europe-west4"))
FOLDER = "gemma-4-12B-it-qat-w4a16-ct"


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shelf]:
    """A localcloud with the buckets of two regions."""
    directory = tmp_path / "cloud"
    endpoint = warm_localcloud.start(directory, "--speed", "10000")
    for name, value in control.environment(endpoint).items():
        monkeypatch.setenv(name, value)
    shelf = Shelf(endpoint, NEAR, tmp_path, None)  # type: ignore[arg-type]  # the hub is localcloud's
    monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", shelf.token)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    shelf.make(NEAR, "US-EAST4")
    shelf.make(FAR, "EUROPE-WEST4")
    yield shelf
    control.stop(directory)


def test_copy_fills_the_bucket_of_each_region(shelf: Shelf, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "Pulumi.yaml").write_text((ROOT / "Pulumi.yaml").read_text())
    regions = "bezel:regions: [us-east4, europe-west4]\n  bezel:weights: {regional_buckets: true}"
    text = (ROOT / "Pulumi.l4-qat.yaml").read_text().replace("bezel:region: us-east4", regions)
    text = text.replace("max_hourly_usd: 1.10", "max_hourly_usd: 3")
    (project / "Pulumi.l4-qat.yaml").write_text(text)
    shown: list[str] = []
    with Context(project, dict(os.environ), show=shown.append) as context:
        arguments = CopyArguments(stack="l4-qat")
        planned = plan_copy(context, arguments)
        assert [change.name for change in planned.changes] == [f"gs://{NEAR}/{FOLDER}", f"gs://{FAR}/{FOLDER}"]
        outcome = apply_copy(context, planned)
        assert (outcome.verdict, outcome.problems) == ("done", ())
        assert [line.partition(": ")[0] for line in outcome.details] == [
            f"gs://{NEAR}/{FOLDER}",
            f"gs://{FAR}/{FOLDER}",
        ]
        files = model_files(f"google/{FOLDER}")
        for bucket in (NEAR, FAR):
            assert replace(shelf, name=bucket).stored_objects(FOLDER) == files
        assert f"gs://{NEAR}/{FOLDER} -> gs://{FAR}/{FOLDER}" in shown
        assert plan_copy(context, arguments).is_empty
        shelf.put(f"{FOLDER}/config.json", b"mine", FAR)
        again = plan_copy(context, arguments)
        assert (again.confirm_name, len(again.destroyed)) == ("l4-qat", 1)
        assert apply_copy(context, again).verdict == "done"
        assert replace(shelf, name=FAR).stored_objects(FOLDER) == files
        listed = model_files_of(context, ModelFilesArguments(stack="l4-qat")).folders
        assert [(each.address, each.is_complete) for each in listed] == [
            (f"gs://{FAR}/{FOLDER}", True),
            (f"gs://{NEAR}/{FOLDER}", True),
        ]
