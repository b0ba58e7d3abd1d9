"""A Pulumi program in a folder of its own lives on localcloud with nothing set up but `bezel local serve`."""

from __future__ import annotations

import signal
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.support.cli.served import BEZEL, Served

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow
PROGRAM = """import pulumi
from pulumi_gcp.storage import Bucket

bucket = Bucket("files", name="own-files", location="US-EAST4")
pulumi.export("url", bucket.url)
"""
LIFE = """
eval "$({bezel} local env {options})" || exit 1
pulumi stack init dev && pulumi up --yes && pulumi stack output url && pulumi destroy --yes && pulumi stack rm --yes dev
"""
PATH = "/usr/local/bin:/usr/bin:/bin"


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Served]:
    """A localcloud, and the folder of a program of five lines beside it."""
    program = tmp_path / "own"
    program.mkdir()
    (program / "Pulumi.yaml").write_text("name: own\nruntime: python\n")
    (program / "__main__.py").write_text(PROGRAM)
    started = Served(tmp_path, "--dir", "cloud", PATH=PATH)
    yield started
    started.end(signal.SIGTERM)


def live_in(folder: Path, cloud: Served, *options: str) -> subprocess.CompletedProcess[str]:
    """Run the life of a stack by hand in a shell of the same user."""
    script = LIFE.format(bezel=BEZEL, options=" ".join(options))
    return subprocess.run(
        ["/bin/sh", "-c", script],
        cwd=folder,
        env=cloud.variables,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_a_program_deploys_in_any_folder_and_leaves_no_file_there(cloud: Served) -> None:
    folder = cloud.home / "own"
    lived = live_in(folder, cloud, "--dir", str(cloud.home / "cloud"))
    assert lived.returncode == 0, lived.stdout + lived.stderr
    assert "\ngs://own-files\n" in lived.stdout
    assert sorted(path.name for path in folder.iterdir()) == ["Pulumi.yaml", "__main__.py"]
    assert (cloud.home / "cloud" / "passphrase").stat().st_mode & 0o777 == 0o600


def test_variables_are_refused_where_nothing_is_served_and_nothing_is_made(cloud: Served) -> None:
    folder = cloud.home / "own"
    lived = live_in(folder, cloud)
    assert "localcloud is not running there" in lived.stderr
    assert "Created stack" not in lived.stdout
    assert sorted(path.name for path in folder.iterdir()) == ["Pulumi.yaml", "__main__.py"]
