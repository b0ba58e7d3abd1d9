"""The metadata attributes of a leased machine: the fixed startup script, and everything that it reads. Pure.

Nothing here is secret: a secret stands there by its name, and the machine fetches the value itself. The names of the
attributes are the script's (`node/startup.sh`). Leaves out what is done with them.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

SCRIPT = Path(__file__).parents[1] / "node" / "startup.sh"


def node_metadata(
    *,
    image: str,
    arguments: Sequence[str],
    environment: Mapping[str, str],
    secrets: Mapping[str, str],
    weights: str,
    model_folder: str,
    compile_cache: str,
    port: int,
    device: str,
    packages: str,
) -> dict[str, str]:
    """The attributes of one machine.

    Args:
        image: of the server, by digest.
        arguments: what follows `vllm serve`.
        environment: plain variables of the container.
        secrets: variable -> id in Secret Manager.
        weights: `gs://BUCKET/FOLDER`, "" where the server downloads them.
        model_folder: where the weights go on the machine, "" where they do not.
        compile_cache: `gs://BUCKET/FOLDER` for compiled graphs, "" to keep none.
        port: where the server listens.
        device: "tpu" or "gpu".
        packages: what is installed at boot: "docker" or "".
    """
    return {
        "startup-script": SCRIPT.read_text(encoding="utf-8"),
        "enable-guest-attributes": "TRUE",
        "bezel-image": image,
        "bezel-arguments": _json(list(arguments)),
        "bezel-environment": _json(dict(environment)),
        "bezel-secrets-by-name": _json(dict(secrets)),
        "bezel-weights": weights,
        "bezel-model-folder": model_folder,
        "bezel-compile-cache": compile_cache,
        "bezel-port": str(port),
        "bezel-device": device,
        "bezel-packages": packages,
    }


def _json(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
