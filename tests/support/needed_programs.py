"""Programs of other languages that tests start, as Go and npm: where one is missing a test skips, but not in CI."""

import os
import shutil

import pytest


def need_program(program: str, use: str) -> None:
    """Skip the test where a program is not on PATH.

    Args:
        program: Its name.
        use: What it does for the test, e.g. "builds the forge".

    Raises:
        AssertionError: It is missing in CI, where its workflow installs it.
    """
    if shutil.which(program):
        return
    text = f"{program} is not on PATH: it {use}"
    if os.environ.get("CI"):
        raise AssertionError(text)
    pytest.skip(text)
