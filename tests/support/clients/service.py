"""A service with a simulated vLLM on a localcloud of its own, and the variables that point OpenAI's clients to it."""

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

from bezel_localcloud import control
from localcloud_support.client import Client
from simulated_vllm_support.process import MODEL
from tests.support.e2e import warm_localcloud

NAME = "tiny"
_MOUNT = "/mnt/models"


@contextlib.contextmanager
def service(folder: Path, serving_speed: int = 100) -> Iterator[dict[str, str]]:
    """The variables of a client: a home of its own, the service's URL, and an identity token as the key.

    Args:
        folder: Empty; the cloud's data and the home are made in it.
        serving_speed: How many times as fast as its accelerator the server generates.
    """
    directory, home = folder / "cloud", folder / "home"
    home.mkdir()
    client = Client(warm_localcloud.start(directory, "--speed", "10000"))
    try:
        client.prepare()
        for name, content in (("config.json", json.dumps(MODEL).encode()), ("model.safetensors", b"\0" * 400_000)):
            query = {"uploadType": "media", "name": f"{NAME}/{name}"}
            client.http.post("/upload/storage/v1/b/models/o", params=query, content=content).raise_for_status()
        template = client.template(
            f"{_MOUNT}/{NAME}",
            f"--served-model-name={NAME}",
            "--enable-auto-tool-choice",
            "--tool-call-parser=gemma4",
            env=[{"name": "LOCALCLOUD_SERVING_SPEED", "value": str(serving_speed)}],
            volumeMounts=[{"name": "weights", "mountPath": _MOUNT}],
            volumes=[{"name": "weights", "gcs": {"bucket": "models", "readOnly": True}}],
            maxInstanceRequestConcurrency=100,
        )
        assert "error" not in client.create(NAME, template)
        url = client.service(NAME)["uri"]
        yield {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "OPENAI_BASE_URL": f"{url}/v1",
            "OPENAI_API_KEY": client.identity(url),
        }
    finally:
        control.stop(directory)
