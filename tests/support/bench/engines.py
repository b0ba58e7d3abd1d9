"""The engine in pure Python and the compiled one, as processes that read the same answers."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.docs.markdown import ROOT
from tests.support.needed_programs import need_program

BUILD_SECONDS = 900


def compiled_folder() -> Path:
    """The folder of the compiled engine, built if need be; skips the test where no C compiler is, but not in CI."""
    need_program("cc", "compiles the load engine")
    command = [sys.executable, str(ROOT / "tools" / "toolchain" / "compiled_engine.py")]
    made = subprocess.run(command, capture_output=True, text=True, timeout=BUILD_SECONDS, check=False)
    assert made.returncode == 0, made.stderr
    return Path(made.stdout.strip())


class Engine:
    """One process that reads answers.

    Attributes:
        name: What it calls its engine; "" for the pure one without a build.
    """

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._ask, self._answer = process.stdin, process.stdout
        self.name = self._answer.readline().strip()

    def read(self, answer: Mapping[str, Any]) -> Any:
        """The samples of an answer."""
        self._ask.write(json.dumps(answer) + "\n")
        self._ask.flush()
        return json.loads(self._answer.readline())


@contextmanager
def engine(folder: Path | None = None) -> Iterator[Engine]:
    """Start the engine: with a folder of compiled modules, or pure."""
    environment = os.environ | {"PYTHONPATH": str(folder or "")}
    command = [sys.executable, str(Path(__file__).parent / "compared_engine.py")]
    with subprocess.Popen(
        command, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        try:
            yield Engine(process)
        finally:
            assert process.stdin is not None
            process.stdin.close()
