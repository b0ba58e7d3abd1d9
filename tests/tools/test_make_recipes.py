"""What every recipe of the Makefile has in common."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(("name", "arrives"), [("PYTHONDONTWRITEBYTECODE", "no"), ("PYTHONWARNINGS", "yes")])
def test_compiled_modules_are_kept_whatever_the_image_says(name: str, arrives: str) -> None:
    outside = {key: value for key, value in os.environ.items() if "MAKE" not in key}
    recipe = f'shown: ; @test -n "$${name}" && echo yes || echo no'
    command = ["make", "--no-print-directory", "--eval", recipe, "shown"]
    run = subprocess.run(
        command, cwd=ROOT, env=outside | {name: "1"}, capture_output=True, text=True, timeout=60, check=True
    )
    assert run.stdout.strip() == arrives


@pytest.mark.slow
def test_tests_hear_an_interrupt_also_where_they_run_in_the_background() -> None:
    """As by `make test &` in a shell without job control."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        run = subprocess.run(
            [sys.executable, "-c", "import conftest, signal; print(signal.getsignal(signal.SIGINT) is signal.SIG_IGN)"],
            cwd=ROOT, capture_output=True, text=True, timeout=60, check=True,
        )  # fmt: skip
    finally:
        signal.signal(signal.SIGINT, before)
    assert run.stdout.strip() == "False"
