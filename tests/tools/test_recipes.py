"""What every recipe of the Makefile has in common."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(("name", "arrives"), [("PYTHONDONTWRITEBYTECODE", "no"), ("PYTHONWARNINGS", "yes")])
def test_compiled_modules_are_kept_whatever_the_image_says(name: str, arrives: str) -> None:
    outside = {key: value for key, value in os.environ.items() if "MAKE" not in key}
    recipe = f'shown: ; @test -n "$${name}" && echo yes || echo no'
    command = ["make", "--no-print-directory", "--eval", recipe, "shown"]
    run = subprocess.run(
        command, cwd=ROOT, env=outside | {name: "1"}, capture_output=True, text=True, timeout=30, check=True
    )
    assert run.stdout.strip() == arrives
