"""A live service becomes a project of its own, which adopts it under the real engine: updated, never replaced.

Typed are the commands that `bezel new --from` and `bezel adopt` print.
"""

import importlib.metadata
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.e2e import warm_python
from tests.support.e2e.rehearsal import BUCKET, MODEL, SECONDS, Rehearsal, Run

PLACE = "projects/bezel-local/locations/us-east4"
NAME = f"{PLACE}/services/chat"
PACKS = " ".join(
    f"--policy-pack=policies/{name} --policy-pack-config=policies/{name}.dev.json"
    for name in ("hardware_cost", "security")
)
ACCOUNT = "own-server@bezel-local.iam.gserviceaccount.com"


def service() -> dict[str, Any]:
    """A service as somebody made it by hand: another account, its own name, a bucket mounted elsewhere."""
    container = {
        "image": "docker.io/vllm/vllm-openai:v0.32.0",
        "args": [f"--model=/models/{MODEL}", "--served-model-name=gemma", "--port=8080", "--max-model-len=8192"],
        "ports": [{"containerPort": 8080}],
        "env": [{"name": "HF_HUB_OFFLINE", "value": "1"}, {"name": "VLLM_ENABLE_CUDA_COMPATIBILITY", "value": "1"}],
        "resources": {"limits": {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "1"}},
        "startupProbe": {"httpGet": {"path": "/health", "port": 8080}, "periodSeconds": 10, "failureThreshold": 180},
        "volumeMounts": [{"name": "m", "mountPath": "/models"}],
    }
    return {
        "template": {
            "containers": [container],
            "volumes": [{"name": "m", "gcs": {"bucket": BUCKET, "readOnly": True, "mountOptions": ["uid=1001"]}}],
            "nodeSelector": {"accelerator": "nvidia-l4"},
            "gpuZonalRedundancyDisabled": True,
            "scaling": {"maxInstanceCount": 1},
            "maxInstanceRequestConcurrency": 8,
            "timeout": "3600s",
            "serviceAccount": ACCOUNT,
        },
        "labels": {"team": "chat"},
    }


def make_by_hand(api: httpx.Client) -> str:
    """Make account, grants and service; return the service's uid."""
    for name in ("run", "iam", "storage"):
        assert api.post(f"/serviceusage/v1/projects/bezel-local/services/{name}.googleapis.com:enable").is_success
    assert api.post("/iam/v1/projects/bezel-local/serviceAccounts", json={"accountId": "own-server"}).is_success
    policy = api.get(f"/storage/v1/b/{BUCKET}/iam").json()
    policy["bindings"] = [
        *policy.get("bindings", []),
        {"role": "roles/storage.objectViewer", "members": [f"serviceAccount:{ACCOUNT}"]},
    ]
    assert api.put(f"/storage/v1/b/{BUCKET}/iam", json=policy).is_success
    assert api.post(f"/run/v2/{PLACE}/services", params={"serviceId": "chat"}, json=service()).is_success
    return str(api.get(f"/run/v2/{NAME}").json()["uid"])


def printed_commands(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.startswith("  ") and not line.startswith("  projects/")]


def signs_of_the_service(output: str) -> set[str]:
    """What the engine does with the service: `=` imports, `~` updates it in place."""
    return set(re.findall(r"^ (\S+) +gcp:cloudrunv2:Service ", output, re.MULTILINE))


def pulumi(team: Rehearsal, command: str) -> str:
    arguments = [*command.split(), *(["--yes"] if command.startswith("pulumi up") else [])]
    variables = os.environ | warm_python.variables(team.folder) | team.variables()
    run = subprocess.run(
        arguments, cwd=team.folder, env=variables, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


def new_project(outside: Rehearsal, *arguments: str) -> Run:
    wheels = outside.folder / "wheels"
    wheels.mkdir(exist_ok=True)
    (wheels / f"bezel-{importlib.metadata.version('bezel')}-py3-none-any.whl").touch()
    return outside.bezel("new", *arguments, "--yes", "--packages", "wheels", **outside.variables())


@pytest.mark.wide
@pytest.mark.timeout(600)  # two previews, an import and a deploy, on a busy machine too
def test_a_live_service_is_adopted_without_a_replacement(rehearsal: Rehearsal, tmp_path: Path) -> None:
    started = rehearsal.local("preview", "l4-qat")  # starts the cloud, and puts the weights into the bucket
    assert started.code == 0, started.text
    with rehearsal.api() as api:
        uid = make_by_hand(api)
    outside = Rehearsal(tmp_path, rehearsal.cloud, warm=False)
    refused = new_project(outside, "team", "--from", "other", "--region", "us-east4")
    assert refused.code == 2
    assert "Cloud Run has no such service" in refused.text
    assert not (tmp_path / "team").exists()
    made = new_project(outside, "team", "--from", "chat", "--region", "us-east4")
    assert made.code == 0, made.text
    assert printed_commands(made.text)[-3:] == ["cd team", "make setup", ".venv/bin/bezel adopt chat"]

    team = Rehearsal(tmp_path / "team", rehearsal.cloud)
    warm_python.environment(team.folder / ".venv")  # in place of `make setup`, which needs an index
    team.set("smoke", {"requests": 1, "concurrency": 1, "prompt_tokens": 32, "output_tokens": 2}, "chat")
    adoption = team.bezel("adopt", "chat", **team.variables())
    assert adoption.code == 0, adoption.text
    assert f"  {NAME}\n" in adoption.text
    init, imports, preview, up = printed_commands(adoption.text)[-4:]
    pulumi(team, init)
    imported = pulumi(team, imports)
    assert signs_of_the_service(imported) == {"="}, imported
    planned = pulumi(team, f"{preview} {PACKS}")
    assert signs_of_the_service(planned) == {"~"}, planned
    changed = pulumi(team, up)
    assert signs_of_the_service(changed) == {"~"}, changed
    assert "replace" not in planned + changed
    with rehearsal.api() as api:
        live = api.get(f"/run/v2/{NAME}").json()
    assert live["uid"] == uid
    assert live["template"]["serviceAccount"] == "bezel-chat@bezel-local.iam.gserviceaccount.com"
    again = team.bezel("adopt", "chat", **team.variables())
    assert again.code == 1
    assert "it has been adopted" in again.text
    pulumi(team, "pulumi destroy --stack chat --yes")
    with rehearsal.api() as api:
        assert api.get(f"/run/v2/{NAME}").status_code == 404
