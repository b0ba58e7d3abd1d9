"""The worked example of docs/adding-to-the-catalogue.md, block by block on a copy of the package: data files only."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.docs.markdown import ROOT, after

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

PAGE = ROOT / "docs" / "adding-to-the-catalogue.md"
RUN = "import sys; from bezel.cli.main import main; sys.exit(main(sys.argv[1:]))"


class Copy:
    """A copy of the packages and the project, beside those that are installed."""

    def __init__(self, folder: Path):
        self.folder = folder
        for part in ("bezel", "packages"):
            shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "Pulumi.yaml", folder)

    def append(self, file: str) -> None:
        with (self.folder / file).open("a", encoding="utf-8") as out:
            out.write(("" if file.endswith(".csv") else "\n") + after(PAGE, f"appended to {file}"))

    def python(self, code: str, *arguments: str) -> tuple[int, str]:
        command = [sys.executable, "-c", code, *arguments]
        path = os.pathsep.join(map(str, [self.folder, *(self.folder / "packages").iterdir()]))
        environment = {**os.environ, "PYTHONPATH": path, "GOOGLE_PROJECT": "bezel-local"}
        ran = subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, text=True, check=False, timeout=60
        )
        return ran.returncode, ran.stdout + ran.stderr

    def code(self) -> str:
        """A sum over every Python file."""
        files = sorted(self.folder.rglob("*.py"))
        return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    return Copy(tmp_path_factory.mktemp("clone"))


def test_the_page_adds_an_accelerator_and_a_model_by_data_files_alone(copy):
    before = copy.code()
    copy.append("packages/catalog/bezel_catalog/data/accelerators.toml")
    assert copy.python(RUN, "catalog", "check") == (1, after(PAGE, "output of the check without a price"))

    copy.append("packages/catalog/bezel_catalog/data/prices.csv")
    assert copy.python(RUN, "catalog", "check") == (0, after(PAGE, "output of the check"))

    copy.append("packages/catalog/bezel_catalog/data/models.toml")
    assert copy.python(RUN, "catalog", "check")[0] == 0

    (copy.folder / "Pulumi.l40s-26b.yaml").write_text(after(PAGE, "written to Pulumi.l40s-26b.yaml"))
    code, plan = copy.python(RUN, "plan", "l40s-26b", "--all")
    assert code == 0, plan
    lines = [" ".join(line.split()) for line in plan.splitlines()]
    for line in after(PAGE, "lines of the plan").splitlines():
        assert line in lines, plan

    copy.append("packages/localcloud/bezel_localcloud/data/cloud_run.toml")
    copy.append("packages/simulated-vllm/bezel_simulated_vllm/configuration/hardware.toml")
    twin = (
        "from bezel_simulated_vllm.synthetic_weights import model_files\n"
        "from bezel_localcloud.services.cloud_run.spec import limits\n"
        "from bezel_simulated_vllm.configuration.hardware import accelerators\n"
        "print(accelerators()['nvidia-l40s'].memory_gib, limits()['accelerators']['nvidia-l40s']['min_cpu'])\n"
        "print(*[name for name in model_files('gemma-4-26b-a4b-it-awq') if name.endswith('.safetensors')])"
    )
    shards = " ".join(f"model-{number:05d}-of-00004.safetensors" for number in range(1, 5))
    assert copy.python(twin) == (0, f"44.4 8\n{shards}\n")
    assert copy.code() == before


@pytest.mark.parametrize(
    ("file", "good", "bad", "phrase"),
    [
        ("accelerators.toml", "min_cpu = 4\n", "min_cpus = 4\n", "nvidia-l4: min_cpus = 4\n   no field has this name."),
        ("tpus.toml", "[v6e-4]\n", "[v6e-4\n", "tpus.toml\n   it is not valid TOML: "),
        ("models.toml", 'architecture = "gemma-4-31b"', 'architecture = "gemma-4-32b"', "architecture = gemma-4-32b\n"),
        ("comparison.toml", '"13.3504"', '"about 13"', "usd_per_hour = about 13\n   expected a number"),
    ],
)
def test_a_slip_in_a_row_is_reported_with_its_file_and_field(copy, file, good, bad, phrase):
    path = copy.folder / "packages" / "catalog" / "bezel_catalog" / "data" / file
    before = path.read_text()
    assert good in before
    path.write_text(before.replace(good, bad, 1))
    try:
        code, text = copy.python(RUN, "catalog", "check")
    finally:
        path.write_text(before)
    assert code == 1
    assert phrase in text
    assert "Traceback" not in text
