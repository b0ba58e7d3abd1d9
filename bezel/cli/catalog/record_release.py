"""`bezel catalog record-release`: records an installed vLLM in one run, and says what its release changes.

`bezel catalog record-options` is another name of the command.

Owns the order of the run, the report, and the writing of the files. Leaves the options to `record_options`, the server
to `started_server`, the request models to bezel_catalog's recorder, and the comparison to `release_changes`.
"""

from __future__ import annotations

import gzip
import json
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from bezel.cli.catalog.record_options import (
    check_python,
    free_file,
    record_data,
    record_options,
    run_recorder,
    write_options,
)
from bezel.cli.catalog.started_server import ask_server
from bezel.cli.catalog.touched_stacks import touched_lines
from bezel_base.atomic_write import write_whole
from bezel_base.errors import Problem, UserError
from bezel_catalog.vllm import request_recorder
from bezel_catalog.vllm.options import RECORDINGS, read_options
from bezel_catalog.vllm.release_changes import Changes, option_changes, order_of, server_changes
from bezel_catalog.vllm.servers import DOCUMENT, METRICS, MODELS, metrics_of, read_server

if TYPE_CHECKING:
    import argparse

    from bezel.cli.catalog.started_server import Published
    from bezel_catalog.vllm.servers import RecordedServer


def run(options: argparse.Namespace) -> int:
    """Record into the catalogue; return the exit code."""
    if options.options_only:
        return record_options(options.python, name=options.name, replace=options.replace)
    return record_release(options.python, name=options.name, replace=options.replace)


def record_release(python: str, *, name: str | None, replace: bool, folder: Path = RECORDINGS) -> int:
    """Record options, variables and server of a vLLM, print what changed, return the exit code.

    Args:
        python: Interpreter of the environment that vLLM is installed in.
        name: Name of the recording; by default the release that the server itself tells.
        replace: Whether a recording of that name may be overwritten.
        folder: Folder of the recordings.

    Raises:
        UserError: Nothing was recorded; the text says why.
    """
    check_python(python, name, folder, replace=replace)
    data, installed = record_data(python)
    chosen, file = free_file(name, installed, folder, replace=replace)
    published = ask_server(python)
    if published.version != installed.partition("+")[0]:
        consequence = f"its server calls itself {published.version}, so neither release would be recorded truly."
        repair = "install one vLLM in that environment."
        raise UserError(Problem("PYTHON", python, f"vLLM {installed} is installed, and {consequence}", repair))
    with tempfile.TemporaryDirectory(prefix="bezel-record-") as place:
        models = Path(place, MODELS)
        arguments = [request_recorder.__file__, str(models)]
        run_recorder(python, arguments, "record the request models", "`vllm serve` starts")
        contents = _contents(published, models.read_bytes())
        for target, content in contents.items():
            Path(place, target).write_bytes(content)
        server = read_server(chosen, Path(place))
    earlier = _earlier(chosen, folder)
    options = write_options(chosen, installed, data, file)
    for target, content in contents.items():
        _write(folder / "servers" / chosen / target, content)
    sys.stdout.write("\n".join(_report(chosen, server, len(options.options), len(options.variables))) + "\n")
    if earlier:
        later = read_options(chosen, json.loads(file.read_text(encoding="utf-8")))
        before = read_options(earlier, json.loads((folder / f"{earlier}.json").read_text(encoding="utf-8")))
        old_server = read_server(earlier, folder / "servers" / earlier)
        changes = [*option_changes(before, later), *server_changes(old_server, server)]
        sys.stdout.write("\n".join([*_change_lines(earlier, changes), *touched_lines(changes)]) + "\n")
    return 0


def _contents(published: Published, models: bytes) -> dict[str, bytes]:
    metrics = json.dumps(metrics_of(published.metrics), indent=1, ensure_ascii=False) + "\n"
    return {
        DOCUMENT: gzip.compress(published.document, mtime=0),
        MODELS: models,
        METRICS: metrics.encode(),
    }


def _write(file: Path, content: bytes) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, content)
    except OSError as error:
        consequence = f"it cannot be written: {error}."
        raise UserError(Problem(str(file), None, consequence, "make the folder writable, and run it again.")) from error


def _earlier(chosen: str, folder: Path) -> str | None:
    """The last recorded release before this one whose server is recorded too; None if there is none."""
    whole = [
        path.stem
        for path in folder.glob("*.json")
        if all((folder / "servers" / path.stem / name).exists() for name in (DOCUMENT, MODELS, METRICS))
    ]
    earlier = [name for name in whole if name != chosen and order_of(name) < order_of(chosen)]
    return max(earlier, key=order_of, default=None)


def _report(chosen: str, server: RecordedServer, options: int, variables: int) -> list[str]:
    counts = {
        "options": options,
        "variables": variables,
        "endpoints": len(server.document["paths"]),
        "request models": len(server.models),
        "metrics": len(server.families),
        "architectures": len(server.architectures),
    }
    return [
        f"Recorded vLLM {chosen}: {', '.join(f'{count} {what}' for what, count in counts.items())}.",
        f'A stack file uses them with `bezel:image: {{options: "{chosen}"}}`, beside its tag or digest.',
    ]


def _change_lines(earlier: str, changes: list[Changes]) -> list[str]:
    lines = [f"  {line}" for change in changes for line in change.lines()]
    return [f"Since {earlier}:", *lines] if lines else [f"Nothing differs from {earlier}."]
