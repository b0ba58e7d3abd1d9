"""Variables and values of an installed vLLM, put into the catalogue's file of its release.

    .venv/bin/python tools/record_vllm.py PYTHON            PYTHON: the interpreter of the installed vLLM
    .venv/bin/python tools/record_vllm.py PYTHON --tpu ENVS ENVS: tpu-inference's envs.py, of the release in `--version`

The release's option list must be there already: what it says besides is kept as it stands.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from bezel.catalog import vllm_recorder  # noqa: E402
from bezel.catalog.records import DATA  # noqa: E402
from bezel.ops.catalog_recording import as_text  # noqa: E402

_SECONDS = 600


def main() -> None:
    """Record, and write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("python", help="interpreter of the installed vLLM")
    parser.add_argument("--tpu", help="tpu-inference's envs.py instead of vLLM itself")
    options = parser.parse_args()
    arguments = ["--envs", options.tpu] if options.tpu else []
    done = subprocess.run(
        [options.python, str(Path(vllm_recorder.__file__)), *arguments],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=_SECONDS,
        env=os.environ | {"PYTHONSAFEPATH": "1"},  # else modules beside the recorder stand in for vLLM's own
    )
    found: dict[str, Any] = json.loads(done.stdout)
    path = DATA / "tpu_inference.json" if options.tpu else DATA / "vllm" / f"{found['version']}.json"
    kept: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(as_text(kept | found), encoding="utf-8")


if __name__ == "__main__":
    main()
