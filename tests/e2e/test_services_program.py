"""A program of five lines serves a model, one resource more a second one; a wrong value ends it without a traceback."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.support.docs.markdown import blocks
from tests.support.e2e.program import Program
from tests.support.e2e.rehearsal import BUCKET, MODEL, ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.e2e.rehearsal import Rehearsal

SECOND = """
VllmService(
    "draft",
    model="gemma-4-12b-it-qat-w4a16",
    accelerator="nvidia-l4",
    region="us-east4",
    smoke={"requests": 2, "concurrency": 1, "output_tokens": 4, "prompt_tokens": 32},
)
"""


def check_operations(shop: Program, rehearsal: Rehearsal) -> None:
    """What needs the state or an address works in the program's folder; what plans a stack file is refused."""
    here = replace(rehearsal, folder=shop.folder, warm=False)
    variables = rehearsal.variables()
    for command in (["status", "dev"], ["endpoint", "dev"], ["models", "dev"], ["query", "dev", "Hello"]):
        done = here.bezel(*command, **variables)
        assert done.code == 0, done.text
    status = here.bezel("status", "dev", "--json", **variables)
    (stack,) = json.loads(status.text)["stacks"]
    assert (stack["verdict"], stack["model"], stack["simulated"]) == ("ready", "gemma-4-12b-it-qat-w4a16", True)
    planned = here.bezel("plan", "dev", **variables)
    assert planned.code != 0
    assert "the program of this folder declares its services itself" in planned.text


@pytest.mark.timeout(400)
def test_program_of_five_lines_serves_a_model(rehearsal: Rehearsal, tmp_path: Path) -> None:
    (text,) = blocks(ROOT / "services/README.md", "python")
    assert len([line for line in text.splitlines() if line]) <= 5
    rehearsal.start_cloud()
    shop = Program.make(tmp_path / "shop", rehearsal, text)
    shop.put_model(BUCKET, MODEL, f"google/{MODEL}")

    made = shop.engine("up", "--yes", "--skip-preview")
    assert made.code == 0, made.text
    (service,) = rehearsal.exists()["services"]
    assert service.endswith("/services/bezel-chat-dev")
    unchanged = shop.engine("preview", "--expect-no-changes")
    assert unchanged.code == 0, unchanged.text
    check_operations(shop, rehearsal)

    shop.write(text + SECOND)
    added = shop.engine("up", "--yes", "--skip-preview")
    assert added.code == 0, added.text
    assert len(rehearsal.exists()["services"]) == 2
    assert not re.search(r"^ [-~+]+ .*\bchat-\S+ (updated|replaced|deleted|created)", added.text, re.MULTILINE), (
        added.text
    )

    shop.write(text.replace("nvidia-l4", "nvidia-l5"))
    refused = shop.engine("preview")
    assert refused.code != 0
    assert "VllmService chat cannot be planned: 1 problem." in refused.text
    assert "accelerator = nvidia-l5" in refused.text
    assert "Repair: choose one of " in refused.text
    assert "Traceback" not in refused.text
    assert "bezel:" not in refused.text.partition("cannot be planned")[2]

    shop.write(text)
    gone = shop.engine("destroy", "--yes", "--skip-preview")
    assert gone.code == 0, gone.text
    assert "services" not in rehearsal.exists()
