"""Record what vLLM's libraries of structured outputs say of constraints: at validation and in the engine.

Run it with the Python of an environment that has vLLM 0.32.0, on a folder with a fast tokenizer; no GPU is used:

    VENV/bin/python tools/vllm/recorders/grammar_verdicts.py FOLDER > FILE

FILE is packages/simulated-vllm/tests/fixtures/vllm/grammars.json.gz. Each case of `grammar_cases` is validated
as the server does it (`SamplingParams`), by `auto` and by each backend, and compiled by the two that the engine of
`auto` uses. A process of its own does it: a case at which it ends has the row "ended", and a new one continues.
"""

from __future__ import annotations

import gzip
import json
import multiprocessing
import os
import re
import sys
from types import SimpleNamespace
from typing import Any

os.environ.setdefault("VLLM_LOGGING_LEVEL", "CRITICAL")

from grammar_cases import cases  # beside this file

BACKENDS = ("auto", "xgrammar", "guidance", "outlines", "lm-format-enforcer")
SECONDS = 60
START_SECONDS = 600
# A line of the library's log stands before its text: the hour and the file.
_PLACE = re.compile(r"\[\d\d:\d\d:\d\d\] \S+: ")


def main() -> None:
    """Print the record."""
    listed = cases()
    rows: list[dict[str, Any]] = []
    while len(rows) < len(listed):
        rows += _record(sys.argv[1], len(rows))
        print(f"{len(rows)} of {len(listed)}", file=sys.stderr)
    content = json.dumps({"vllm": _version(), "rows": rows}, separators=(",", ":"), sort_keys=True)
    sys.stdout.buffer.write(gzip.compress(content.encode(), mtime=0))


def _version() -> str:
    from importlib.metadata import version

    return " ".join(f"{name} {version(name)}" for name in ("vllm", "xgrammar", "llguidance", "outlines_core"))


def _record(folder: str, start: int) -> list[dict[str, Any]]:
    """Return the rows from a case on, up to one at which the process ended or went on without end."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_work, args=(folder, start, theirs))
    process.start()
    theirs.close()
    rows: list[dict[str, Any]] = []
    limit = START_SECONDS
    try:
        while ours.poll(limit):
            row = ours.recv()
            limit = SECONDS
            if row is not None:
                rows.append(row)
            if len(rows) % 50 == 49:
                print(f"{start + len(rows)}", file=sys.stderr)
    except EOFError:
        pass
    process.kill()
    process.join()
    listed = cases()
    if start + len(rows) < len(listed):
        kind, value = listed[start + len(rows)]
        rows.append({"kind": kind, "value": value, "ended": True})
    return rows


def _work(folder: str, start: int, pipe: Any) -> None:
    """Send None once the libraries are there, then a row for each case."""
    from vllm.tokenizers import get_tokenizer

    tokenizer = get_tokenizer(folder)
    engines = _engines(tokenizer)
    pipe.send(None)
    for kind, value in cases()[start:]:
        row: dict[str, Any] = {"kind": kind, "value": value}
        for backend in BACKENDS:
            row[backend] = _validate(kind, value, backend, tokenizer)
        row["compiled"] = {name: _compile(kind, value, engine) for name, engine in engines.items()}
        pipe.send(row)
    pipe.close()


def _engines(tokenizer: Any) -> dict[str, Any]:
    """Return the two libraries as the engine has them."""
    from vllm.v1.structured_output.backend_guidance import GuidanceBackend
    from vllm.v1.structured_output.backend_xgrammar import XgrammarBackend

    options = SimpleNamespace(disable_any_whitespace=False, disable_additional_properties=False)
    config: Any = SimpleNamespace(structured_outputs_config=options, model_config=None, speculative_config=None)
    return {
        "xgrammar": XgrammarBackend(config, tokenizer=tokenizer, vocab_size=len(tokenizer)),
        "guidance": GuidanceBackend(config, tokenizer=tokenizer, vocab_size=len(tokenizer)),
    }


def _validate(kind: str, value: Any, backend: str, tokenizer: Any) -> dict[str, str]:
    from vllm.config.structured_outputs import StructuredOutputsConfig
    from vllm.sampling_params import SamplingParams, StructuredOutputsParams

    model: Any = SimpleNamespace(is_diffusion=False)
    outputs = StructuredOutputsParams(**{kind: value})
    try:
        SamplingParams(structured_outputs=outputs)._validate_structured_outputs(  # noqa: SLF001 - as the server calls it
            model, StructuredOutputsConfig(backend=backend), tokenizer
        )
    except Exception as error:  # noqa: BLE001 - each is an answer to the client
        return {"error": _PLACE.sub("", str(error)), "class": type(error).__name__}
    return {"backend": str(outputs._backend)}  # noqa: SLF001 - what the server chose


def _compile(kind: str, value: Any, engine: Any) -> bool:
    from vllm.sampling_params import StructuredOutputsParams
    from vllm.v1.structured_output.request import get_structured_output_key

    try:
        engine.compile_grammar(*get_structured_output_key(StructuredOutputsParams(**{kind: value})))
    except Exception:  # noqa: BLE001 - each fails the request
        return False
    return True


if __name__ == "__main__":
    main()
