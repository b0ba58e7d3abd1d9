"""Metadata attributes of a leased machine: its startup script, and the values that the script reads. Pure.

Nothing here is secret: a secret is given by its name, and the machine fetches the value itself. The script
(`node/startup.sh`) defines the names of the attributes. Leaves out their use.
"""

import json
from collections.abc import Mapping, Sequence

from bezel_components.config.startup_script import kinds_of, startup_script


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
    end_notice: tuple[str, str, int] | None = None,
    collector: tuple[str, str] | None = None,
) -> dict[str, str]:
    """The attributes of one machine.

    Args:
        image: The server's image, by digest.
        arguments: Arguments after `vllm serve`.
        environment: Plain variables of the container.
        secrets: Variable -> id in Secret Manager.
        weights: `gs://BUCKET/FOLDER`, "" where the server downloads them.
        model_folder: Folder of the weights on the machine, "" where the server downloads them.
        compile_cache: `gs://BUCKET/FOLDER` for compiled graphs, "" to store none.
        port: Port of the server.
        device: "tpu" or "gpu".
        packages: Packages installed at boot: "docker" or "".
        end_notice: Lease, stack and run duration in seconds, where the machine tells in Cloud Logging that its lease is
            about to end; None where it tells nothing.
        collector: Image, by digest, and configuration of what writes the server's series; None for none.
    """
    attributes = {
        "startup-script": startup_script(
            kinds_of(device=device, packages=packages, notice=end_notice is not None, collector=collector is not None)
        ),
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
    if end_notice is not None:
        lease, stack, run_seconds = end_notice
        attributes["bezel-end-notice"] = _json({"lease": lease, "stack": stack, "run_seconds": run_seconds})
    if collector is not None:
        attributes["bezel-collector-image"], attributes["bezel-collector-configuration"] = collector
    return attributes


def _json(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
