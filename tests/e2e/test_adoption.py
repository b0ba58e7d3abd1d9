"""A live service becomes a stack file, and the stack adopts it under the real engine: updated, never replaced."""

import os
import subprocess
from typing import Any

import httpx
import pytest

from bezel.conversion.conversion import Conversion
from bezel.conversion.converted import Wishes
from bezel.conversion.sources import convert_source
from bezel.operations.adoption.adoption import write_adoption
from bezel.operations.context import Context
from bezel_base.errors import UserError
from tests.support.e2e.rehearsal import BUCKET, MODEL, SECONDS, Rehearsal

PLACE = "projects/bezel-local/locations/us-east4"
NAME = f"{PLACE}/services/chat"
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


def context_of(rehearsal: Rehearsal) -> Context:
    return Context(rehearsal.folder, os.environ | rehearsal.variables(), show=lambda _line: None)


def conversion_of(context: Context, source: str) -> Conversion:
    wishes = Wishes(project="bezel-local", region="us-east4")
    endpoint = context.address("CLOUD_RUN_V2")
    return convert_source(
        source, folder=context.folder, wishes=wishes, google=lambda: context.google, endpoint=endpoint
    )


def pulumi(rehearsal: Rehearsal, command: str) -> str:
    run = subprocess.run(
        command.split(),
        cwd=rehearsal.folder,
        env=os.environ | rehearsal.variables(),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


@pytest.mark.wide
@pytest.mark.timeout(600)  # two previews, an import and a deploy, on a busy machine too
def test_a_live_service_is_adopted_without_a_replacement(rehearsal: Rehearsal) -> None:
    started = rehearsal.local("preview", "l4-qat")  # starts the cloud, and puts the weights into the bucket
    assert started.code == 0, started.text
    with rehearsal.api() as api:
        uid = make_by_hand(api)
    with context_of(rehearsal) as context:
        with pytest.raises(UserError, match="Cloud Run has no such service"):
            conversion_of(context, "other")
        made = conversion_of(context, "chat")
        assert made.plan is not None, made.objections
        assert made.prices.before == made.prices.after
        assert made.converted.settings["service_name"] == "chat"
        (rehearsal.folder / "Pulumi.chat.yaml").write_text(made.stack_file("docs/stack.schema.json"))
        rehearsal.set("smoke", {"requests": 1, "concurrency": 1, "prompt_tokens": 32, "output_tokens": 2}, "chat")
        adoption = write_adoption(context, made)
        assert adoption is not None
        assert adoption.ids == (NAME,)
        create, imports = adoption.commands
        pulumi(rehearsal, create)
        assert "Service service-service imported" in pulumi(rehearsal, imports)

        changed = rehearsal.local("up", "chat")
        assert changed.code == 0, changed.text
        assert "Service service-service updated" in changed.text
        assert "replace" not in changed.text
        with rehearsal.api() as api:
            live = api.get(f"/run/v2/{NAME}").json()
        assert live["uid"] == uid
        assert live["template"]["serviceAccount"] == "bezel-chat@bezel-local.iam.gserviceaccount.com"
        with pytest.raises(UserError, match="it has been adopted"):
            write_adoption(context, made)
