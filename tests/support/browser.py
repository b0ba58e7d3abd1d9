"""Chromium of `make setup-dev` for tests that look at pages; where it is missing they skip, but not in CI."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import sync_playwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser

CHROMIUM = Path(sys.executable).parent / "chromium"
# All pages of one site are drawn by one process: to start one for each costs more than to draw it.
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--process-per-site",
         "--disable-background-networking", "--disable-component-update", "--disable-sync")  # fmt: skip


@contextmanager
def running_browser() -> Iterator[Browser]:
    """One browser, which sends nothing of its own.

    Raises:
        AssertionError: It is missing in CI.
    """
    answer = subprocess.run([CHROMIUM, "--version"], capture_output=True, text=True, timeout=60, check=False)
    if answer.returncode:
        assert not os.environ.get("CI"), answer.stderr
        pytest.skip(answer.stderr.strip() or f"{CHROMIUM} does not start")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=str(CHROMIUM), args=list(FLAGS))
        yield started
        started.close()
