"""A folder for what the workers of a run share."""

import os
from pathlib import Path

import pytest


def run_folder(factory: pytest.TempPathFactory) -> Path:
    """The temporary folder of the whole run, in which each worker of xdist has one of its own."""
    folder = factory.getbasetemp()
    return folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder
