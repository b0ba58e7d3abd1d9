"""A command of a program in this process: a process of its own loads for a tenth of a second of CPU time.

For tests of what a command does; that it starts, ends by signals and meets a reader that has gone is for processes.
"""

import contextlib
import io
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from unittest.mock import patch

Main = Callable[[Sequence[str]], int]


def run_here(
    main: Main, arguments: Sequence[str], folder: Path, environ: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run a program's `main` in a folder with these variables alone; what a process would have ended with.

    The screen has the width of this process's, for which the tests' own setting is COLUMNS.
    """
    out, errors = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    screen = {name: os.environ[name] for name in ("COLUMNS",) if name in os.environ}
    with (
        patch.dict(os.environ, {**screen, **environ}, clear=True),
        contextlib.chdir(folder),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(errors),
    ):
        try:
            code = main(arguments)
        except SystemExit as ended:  # after a help
            code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    texts = (stream.buffer.getvalue().decode() for stream in (out, errors))  # type: ignore[attr-defined]
    return subprocess.CompletedProcess([*arguments], code, *texts)
