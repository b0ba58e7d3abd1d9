"""Projects of what serves today are previewed on localcloud within the limits of their own environments."""

from pathlib import Path

import pytest

from tests.e2e.test_adoption import new_project
from tests.support.conversion.six_inputs import SIX
from tests.support.e2e import warm_python
from tests.support.e2e.rehearsal import BOTH_PACKS, Rehearsal

RTX = (
    "gcloud run deploy large --image=vllm/vllm-openai:v0.32.0 --region=us-central1 --gpu=1 --cpu=20 --memory=80Gi"
    " --gpu-type=nvidia-rtx-pro-6000 --no-gpu-zonal-redundancy --min=0 --max=1 --args=--model=google/gemma-4-12B-it"
)
NAMES = ("live_service", "vllm_serve", "compose", "gcloud_run_deploy")
INPUTS = {"rtx": RTX, **{name: SIX[name] for name in NAMES}}


@pytest.mark.wide
@pytest.mark.timeout(400)
def test_converted_stacks_are_previewed_within_their_limits(rehearsal: Rehearsal, tmp_path: Path) -> None:
    started = rehearsal.local("start")
    assert started.code == 0, started.text
    outside = Rehearsal(tmp_path, rehearsal.cloud, warm=False)
    limits = {}
    for name, text in INPUTS.items():
        (tmp_path / "deploy.sh").write_text(text)
        made = new_project(outside, name, "--from", "deploy.sh")
        assert made.code == 0, made.text
        project = Rehearsal(tmp_path / name, rehearsal.cloud)
        warm_python.environment(project.folder / ".venv")  # in place of `make setup`, which needs an index
        (file,) = project.folder.glob("Pulumi.*.yaml")
        planned = project.local("preview", file.name.split(".")[1], "--", *BOTH_PACKS)
        assert planned.code == 0, planned.text
        limits[name] = "prod" if "policies/hardware_cost.prod.json" in planned.text else "dev"
    assert limits == {
        "rtx": "prod",
        "live_service": "prod",
        "vllm_serve": "prod",
        "compose": "dev",
        "gcloud_run_deploy": "prod",
    }
