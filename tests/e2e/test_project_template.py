"""`pulumi new` makes of templates/gemma what `bezel new` makes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from bezel.cli.new.template import DESCRIPTION, fill_in, template_files
from tools.docs.project_template import TEMPLATE

SECONDS = 120
ADDED = "pulumi:tags"
"""A key of Pulumi.yaml in which `pulumi new` notes the template."""


@pytest.mark.slow
def test_pulumi_makes_the_same_files_of_the_template(tmp_path: Path) -> None:
    variables = os.environ | {
        "PULUMI_BACKEND_URL": f"file://{tmp_path}",
        "PULUMI_HOME": str(tmp_path / "home"),
        "PULUMI_CONFIG_PASSPHRASE": "not a secret",
        "PULUMI_SKIP_UPDATE_CHECK": "1",
    }
    pulumi = Path(sys.executable).parent / "pulumi"
    command = [pulumi, "new", TEMPLATE, "--generate-only", "--yes", "--name", "chat", "--description", DESCRIPTION]
    ended = subprocess.run(
        [*command, "--dir", tmp_path / "chat"],
        env=variables,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
        cwd=tmp_path,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    files = [file for file in (tmp_path / "chat").rglob("*") if file.is_file()]
    made = {file.relative_to(tmp_path / "chat").as_posix(): file.read_text(encoding="utf-8") for file in files}
    wanted = {path: fill_in(text, "chat") for path, text in template_files().items()}
    project, same_project = (yaml.safe_load(texts.pop("Pulumi.yaml")) for texts in (made, wanted))
    assert made == wanted
    project["config"].pop(ADDED)
    assert project == same_project
    assert os.access(tmp_path / "chat" / "plugins" / "pulumi-python" / "pulumi-resource-pulumi-python", os.X_OK)
