"""Record the variables of tpu-inference, which vLLM does not know, in the catalogue's file.

    .venv/bin/python -m tools.vllm.recorders.tpu_variables ENVS VERSION

ENVS is `tpu_inference/envs.py` of the release VERSION; nothing else of the package is needed. Leaves vLLM's own
variables to `bezel catalog record-release`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from bezel.cli.catalog.record_options import as_text
from bezel_catalog.loader import DATA
from bezel_catalog.vllm import recorder

ROOT = Path(__file__).resolve().parents[3]

_SECONDS = 60


def main(envs: str, version: str) -> None:
    """Record, and write the file; the caller has to correct its date and source."""
    done = subprocess.run(
        [sys.executable, str(Path(recorder.__file__)), "--envs", envs],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=_SECONDS,
    )
    path = DATA / "tpu_inference.json"
    recorded: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(as_text(recorded | json.loads(done.stdout) | {"version": version}), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
