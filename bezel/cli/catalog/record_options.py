"""`bezel catalog record-options`: records the options of an installed vLLM in the catalogue under its image's name.

Owns running the recorder in that vLLM's environment, and the writing of the file. Leaves to bezel.catalog what is
recorded (`recorder`) and what a recording must contain (`checks`).
"""

import dataclasses
import json
import os
import re
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bezel.atomic_write import write_whole
from bezel.catalog.checks.integrity import check_catalogue, read_catalogue
from bezel.catalog.vllm import recorder
from bezel.catalog.vllm.options import RECORDINGS, VllmOptions, read_options
from bezel.errors import UserError

SECONDS = 600.0
"""Time limit for the recorder: the first import of vLLM compiles its modules."""
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
    if shutil.which(python) is None:
        raise UserError(f"{python} is no program, so no vLLM could be asked. Name the interpreter of its environment.")
    if name is not None:
        _free(name, folder, replace=replace)
    found = _recorded(python)
    installed = str(found.pop("installed"))
    chosen = _name(name, installed)
    file = _free(chosen, folder, replace=replace)
    data = {
        **found,
        "version": chosen,
        "as_of": f"{datetime.now(UTC):%Y-%m}",
        "source": f"vllm {installed} as it was installed: its serve parser, registries, variables and configuration",
    }
    options = _checked(chosen, data)
    try:
        write_whole(file, as_text(data))
    except OSError as error:
        raise UserError(f"{file} cannot be written: {error}. Nothing was recorded.") from error
    sys.stdout.write(
        f"{len(options.options)} options and {len(options.variables)} variables of vLLM {installed} are recorded as "
        f'{chosen}.\nA stack file names them by `bezel:image: {{options: "{chosen}"}}`, beside its tag or digest.\n'
    )
    return 0


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
        raise UserError(
            f"vLLM {installed} is no release, so its recording needs a name of its own: --name with the tag of the "
            "image that holds it, e.g. nightly-2026-11-20. Nothing was recorded."
        )
    if name is not None and name != release and _RELEASE.fullmatch(name):
        raise UserError(
            f"--name {name} is another release than the installed {installed}: stacks of that release would be checked "
            "against wrong options. Leave --name out. Nothing was recorded."
        )
    return name or release


def _free(name: str, folder: Path, *, replace: bool) -> Path:
    """The file of a recording that may be written."""
    if not _NAME.fullmatch(name):
        raise UserError(
            f"{name!r} is no name of a recording: write the tag of the image, letters, digits, dots, hyphens and "
            "underscores. Nothing was recorded."
        )
    file = folder / f"{name}.json"
    if file.exists() and not replace:
        raise UserError(f"{name} is recorded already. Add --replace to write over it. Nothing was recorded.")
    return file


def _recorded(python: str) -> dict[str, Any]:
    """The output of the recorder, run in the environment of an interpreter."""
    try:
        done = subprocess.run(
            [python, str(Path(recorder.__file__))],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS,
            env=os.environ | {"PYTHONSAFEPATH": "1"},  # else modules beside the recorder shadow vLLM's own
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UserError(f"{python} could not tell what its vLLM takes: {error}. Nothing was recorded.") from None
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise UserError(
            f"{python} could not tell what its vLLM takes: {last}. Name the interpreter of an environment in which "
            "`import vllm` works. Nothing was recorded."
        )
    sys.stderr.writelines(f"{line}\n" for line in done.stderr.splitlines() if line.startswith("the values of "))
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def _checked(name: str, data: dict[str, Any]) -> VllmOptions:
    options = read_options(name, data)
    if errors := check_catalogue(dataclasses.replace(read_catalogue(), vllm={name: options})):
        raise UserError(*errors, title="The recording is incomplete, so nothing is written")
    return options
