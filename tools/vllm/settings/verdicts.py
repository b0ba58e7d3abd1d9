"""Verdicts of a real vLLM's own argument classes on settings, in one process and with no engine started.

    PYTHON tools/vllm/settings/verdicts.py MODEL < settings.json > verdicts.json

Runs with the Python of that vLLM and imports nothing of ours. Standard input: a list of `{"words": arguments after
`vllm serve MODEL`, "variables": of the container}`; output: for each None where it is accepted, else the refusal.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import re
import sys
from typing import Any

_QUIET = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "OMP_NUM_THREADS": "1"}


def verdict(model: str, arguments: list[str], variables: dict[str, str]) -> str | None:
    """The verdict of the parser, the configuration classes and the readers of variables."""
    before, stderr = dict(os.environ), io.StringIO()
    os.environ.update(variables)
    try:
        with contextlib.redirect_stderr(stderr):
            space = _parser().parse_args([model, *arguments])
        space.model = space.model_tag
        importlib.import_module(_arguments()).validate_parsed_serve_args(space)
        # Before the configuration, which sets some variables itself.
        for read in importlib.import_module("vllm.envs").environment_variables.values():
            read()
        importlib.import_module("vllm.engine.arg_utils").AsyncEngineArgs.from_cli_args(space).create_engine_config()
        # Names of levels are looked up when the log is set up, before anything else.
        importlib.import_module("logging").getLogger("tried").setLevel(
            os.environ.get("VLLM_LOGGING_LEVEL", "INFO").upper()
        )
    except SystemExit:
        return " ".join(stderr.getvalue().rpartition("error:")[2].split())[:400]
    except Exception as error:  # noqa: BLE001 - whatever it is ends the server
        return f"{type(error).__name__}: {' '.join(str(error).split())}"[:400]
    finally:
        os.environ.clear()
        os.environ.update(before)
    return None


def _parser() -> Any:
    """A new parser: the configuration changes the defaults of the parser that it is made from."""
    utilities = importlib.import_module("vllm.utils.argparse_utils")
    return importlib.import_module(_arguments()).make_arg_parser(utilities.FlexibleArgumentParser(prog="vllm serve"))


def _arguments() -> str:
    for name in ("vllm.entrypoints.common.cli_args", "vllm.entrypoints.launchers.cli_args"):
        with contextlib.suppress(ModuleNotFoundError):
            return importlib.import_module(name).__name__
    raise SystemExit("the parser of `vllm serve` is in none of the known modules")


def main() -> None:
    """Judge the settings on standard input."""
    os.environ.update(_QUIET)
    stdout = os.dup(1)
    os.dup2(2, 1)  # vLLM logs to stdout
    settings = json.load(sys.stdin)
    stderr = [verdict(sys.argv[1], one["words"], one["variables"]) for one in settings]
    # An object's address in memory differs from run to run.
    verdicts = [text and re.sub(r"0x[0-9a-f]+", "0x", text) for text in stderr]
    with os.fdopen(stdout, "w") as out:
        json.dump(verdicts, out)


if __name__ == "__main__":
    main()
