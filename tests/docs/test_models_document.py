"""docs/models.md: its commands run in order against a hub of this machine, and the row is the one that it shows."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.support.docs.markdown import ROOT
from tests.support.model_sources.tiny import llama
from tests.support.weights.fake_hub import serving

pytestmark = pytest.mark.slow

PAGE = (ROOT / "docs" / "models.md").read_text()
BEZEL = Path(sys.executable).with_name("bezel")


def blocks(language: str) -> list[str]:
    """Blocks of the page in a language."""
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_page_adds_a_model_and_plans_a_stack_with_it(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: bezel\nruntime: python\n")
    (stack,) = blocks("yaml")
    (tmp_path / "Pulumi.dev.yaml").write_text(stack)
    (shown,) = blocks("toml")
    with serving() as hub:
        hub.models["acme/Tiny-Llama"] = llama()
        environ = {
            "PATH": "/usr/bin:/bin",
            "HF_ENDPOINT": hub.base,
            "XDG_STATE_HOME": str(tmp_path),
            "HOME": str(tmp_path),
        }
        outputs = [_run(command, tmp_path, environ) for command in blocks("sh")]
    row = tomllib.loads((tmp_path / "catalog.toml").read_text())["model"]["tiny-llama"]
    assert tomllib.loads(shown)["model"]["tiny-llama"].items() <= row.items()
    assert "tiny-llama" in outputs[-1]
    assert "(stack file)" in outputs[-1]


def _run(command: str, folder: Path, environ: dict[str, str]) -> str:
    parts = command.split()
    assert parts[0] == "bezel"
    ended = subprocess.run(
        [str(BEZEL), *parts[1:]], cwd=folder, env=environ, capture_output=True, text=True, timeout=120, check=True
    )
    return ended.stdout
