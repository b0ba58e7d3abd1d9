"""Vertex AI v1: publisher models of Model Garden, as far as Google publishes Gemma 4 there.

A deployment option names the weights in its container's arguments, in a bucket that only Vertex AI reads; the same
folder is in a bucket that everyone reads. Names as users published them in calls and listings, 2026:
`publishers/google/models/gemma4@gemma-4-31b-it`, `gs://vertex-model-garden-restricted-us/gemma4/gemma-4-31B-it` and
`gs://vertex-model-garden-public-us/gemma4/gemma-4-31B-it`. Leaves out Google's buckets: a rehearsal makes one by
`localcloud serve --seed`.
"""

from bezel_catalog import models
from bezel_localcloud.core.json_types import Json
from bezel_localcloud.routing.router import Call
from bezel_localcloud.services.vertex_ai.registry_api import api, not_found

RESTRICTED = "gs://vertex-model-garden-restricted-us"
_FAMILY, _OWNER = "gemma4", "google/"
_IMAGE = "us-docker.pkg.dev/vertex-ai/vertex-vision-model-garden-dockers/pytorch-vllm-serve:gemma4"


@api.route("GET", "/aiplatform/v1/publishers/{publisher:id}/models/{model:id}")
def get(call: Call) -> Json:
    """One publisher model, by its version; without one the first."""
    publisher, name = call.param("publisher"), call.param("model")
    family, _, version = name.partition("@")
    folders = _folders()
    if publisher != "google" or family != _FAMILY or (version and version not in folders):
        raise not_found(f"publishers/{publisher}/models/{name}")
    version = version or next(iter(folders))
    arguments = ["python", "-m", "vllm.entrypoints.api_server", f"--model={RESTRICTED}/{_FAMILY}/{folders[version]}"]
    option = {
        "title": folders[version],
        "modelDisplayName": version,
        "containerSpec": {"imageUri": _IMAGE, "args": arguments},
    }
    return {
        "name": f"publishers/google/models/{_FAMILY}",
        "versionId": version,
        "openSourceCategory": "GOOGLE_OWNED_OSS_WITH_GOOGLE_CHECKPOINT",
        "launchStage": "GA",
        "supportedActions": {"multiDeployVertex": {"multiDeployVertex": [option]}},
    }


def _folders() -> dict[str, str]:
    """Version -> folder of Google's own checkpoints in 16 bits."""
    hub = [model.hub_id for model in models().values() if model.encoding == "bf16" and model.hub_id]
    names = sorted(name.removeprefix(_OWNER) for name in hub if name.startswith(_OWNER))
    return {name.lower(): name for name in names}
