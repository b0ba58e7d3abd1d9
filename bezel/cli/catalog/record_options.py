"""`bezel catalog record-release --options-only`: records the options of an installed vLLM under its image's name.

The first step of `record-release`, alone for a machine on which no server of that vLLM starts. Owns running the
recorder in that vLLM's environment, and the writing of the file. Leaves to bezel_catalog what is recorded (`recorder`)
and what a recording must contain (`checks`).
"""

import dataclasses
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bezel_base.command_line.exits import write_output
from bezel_base.console import note
from bezel_base.errors import NOT_SET, Problem, UserError
from bezel_catalog.checks.integrity import check_catalogue, read_catalogue
from bezel_catalog.vllm import recorder
from bezel_catalog.vllm.options import RECORDINGS, VllmOptions, read_options

SECONDS = 1200.0
"""Time limit for the recorder: the first import of vLLM compiles its modules, and the schemas take a while too."""
_RELEASE = re.compile(r"\d+\.\d+\.\d+(?:\.?(?:rc|post)\d+)?")
# Valid as an image's tag and as a file name.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


def record_options(python: str, *, name: str | None, replace: bool, folder: Path = RECORDINGS) -> int:
    """Record the options of a vLLM, print how a stack file names them, return the exit code.

    Args:
        python: Interpreter of the environment that vLLM is installed in.
        name: Name of the recording; by default vLLM's version, where it is a release.
        replace: Whether a recording of that name may be overwritten.
        folder: Folder of the recordings.

    Raises:
        UserError: Nothing was recorded; the text says why.
    """
    check_python(python, name, folder, replace=replace)
    data, installed = record_data(python)
    chosen, file = free_file(name, installed, folder, replace=replace)
    options = write_options(chosen, installed, data, file)
    sys.stdout.write(
        f"Recorded {len(options.options)} options and {len(options.variables)} variables of vLLM {installed} as "
        f'{chosen}.\nA stack file uses them with `bezel:image: {{options: "{chosen}"}}`, beside its tag or digest.\n'
    )
    return 0


def check_python(python: str, name: str | None, folder: Path, *, replace: bool) -> None:
    """Check what can be checked before a vLLM is imported.

    Raises:
        UserError: There is no such interpreter, or no recording of that name may be written.
    """
    if shutil.which(python) is None:
        repair = "choose the interpreter of an environment in which `import vllm` works."
        raise UserError(Problem("PYTHON", python, "there is no such program.", repair))
    if name is not None:
        _free(name, folder, replace=replace)


def free_file(name: str | None, installed: str, folder: Path, *, replace: bool) -> tuple[str, Path]:
    """Return the recording's name, and its file, which may be written.

    Raises:
        UserError: The name is not that of the installed vLLM, or the file exists and may not be overwritten.
    """
    chosen = _name(name, installed)
    return chosen, _free(chosen, folder, replace=replace)


def write_options(chosen: str, installed: str, recorded: dict[str, Any], file: Path) -> VllmOptions:
    """Write a recording that contains what one must, and return its options.

    Raises:
        UserError: It is incomplete, or the file cannot be written.
    """
    data = {
        **recorded,
        "version": chosen,
        "as_of": f"{datetime.now(UTC):%Y-%m}",
        "source": f"vllm {installed} as it was installed: its serve parser, registries, variables and configuration",
    }
    options = _check_options(chosen, data)
    write_output("--name", file, as_text(data))
    return options


def as_text(data: dict[str, Any]) -> str:
    """Text of the file: each row of a list or map on a line of its own, so that a change is one line of a diff."""
    parts = [f" {json.dumps(key)}: {_rows(value)}" for key, value in data.items()]
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _rows(value: object) -> str:
    if isinstance(value, list) and value:
        return "[\n" + ",\n".join(f"  {json.dumps(row)}" for row in value) + "\n ]"
    if isinstance(value, dict) and value:
        return "{\n" + ",\n".join(f"  {json.dumps(key)}: {json.dumps(row)}" for key, row in value.items()) + "\n }"
    return json.dumps(value, ensure_ascii=False)


def _name(name: str | None, installed: str) -> str:
    """The recording's name: the image's tag, or vLLM's release."""
    release = installed.partition("+")[0]
    if name is None and not _RELEASE.fullmatch(release):
        consequence = f"vLLM {installed} is not a release, so its recording needs a name of its own."
        repair = "add the tag of the image that contains it, e.g. nightly-2026-11-20."
        raise UserError(Problem("--name", NOT_SET, consequence, repair))
    if name is not None and name != release and _RELEASE.fullmatch(name):
        consequence = (
            f"vLLM {installed} is installed, so stacks of that release would be checked against wrong options."
        )
        raise UserError(Problem("--name", name, consequence, "omit --name."))
    return name or release


def _free(name: str, folder: Path, *, replace: bool) -> Path:
    """The file of a recording that may be written."""
    if not _NAME.fullmatch(name):
        consequence = "a name has letters, digits, dots, hyphens and underscores."
        raise UserError(Problem("--name", name, consequence, "write the tag of the image."))
    file = folder / f"{name}.json"
    if file.exists() and not replace:
        raise UserError(Problem("--name", name, "it is recorded already.", "add --replace to overwrite it."))
    return file


def record_data(python: str) -> tuple[dict[str, Any], str]:
    """Return the output of the recorder, run in the environment of an interpreter, and the version of its vLLM.

    Raises:
        UserError: The recorder failed.
    """
    output = run_recorder(python, [recorder.__file__], "list the options", "`import vllm` works")
    recorded: dict[str, Any] = json.loads(output)
    for name, reason in recorded.pop(recorder.UNKNOWN_VALUES).items():
        note(f"the values of {name} are not recorded: {reason}")
    return recorded, str(recorded.pop("installed"))


def run_recorder(python: str, arguments: Sequence[str], task: str, needs: str) -> str:
    """Run a script in the environment of an interpreter, and return its output.

    Args:
        python: The interpreter.
        arguments: The script, and its arguments.
        task: What it does with its vLLM, for an error.
        needs: What has to work in the environment, for an error.

    Raises:
        UserError: It failed.
    """
    try:
        result = subprocess.run(
            [python, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            check=False,
            timeout=SECONDS,
            env=os.environ | {"PYTHONSAFEPATH": "1"},  # else modules beside the script shadow vLLM's own
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UserError(f"{python} could not {task} of its vLLM: {error}.") from None
    if result.returncode:
        last = (result.stderr.strip().splitlines() or ["no output"])[-1]
        repair = f"choose the interpreter of an environment in which {needs}."
        raise UserError(Problem("PYTHON", python, f"it could not {task} of its vLLM: {last}.", repair))
    return result.stdout


def _check_options(name: str, data: dict[str, Any]) -> VllmOptions:
    options = read_options(name, data)
    if errors := check_catalogue(dataclasses.replace(read_catalogue(), vllm={name: options})):
        raise UserError(*errors, title="The recording is incomplete, so it is not written")
    return options
