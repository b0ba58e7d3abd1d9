"""Files of prompts as outside libraries write them, Parquet too, and a data set's parts from a hub."""

import os

import pytest

from tests.support.clients import environment, programs

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.clients]


def test_files_of_other_libraries_are_read_as_they_wrote_them(tmp_path):
    program = programs.PROGRAMS / "data_sets.py"
    packages = [environment.ROOT / "packages" / name for name in ("base", "bench")]
    variables = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "HF_HUB_OFFLINE": "1"}
    programs.assert_served(programs.run([environment.python("guidellm"), program, *packages, tmp_path], variables))
