"""The program as the engine runs it: it ends well, or tells its reader what is wrong and ends as one who was told."""

import runpy
from pathlib import Path
from typing import Any

import pulumi
import pytest
from pulumi.runtime import set_all_config

from tests.components.fake_engine import Declarations, declare

PROGRAM = Path(__file__).parents[2] / "__main__.py"
TOLD = 32
"""What Pulumi's language hosts take for "the user has been told": the engine adds no line of its own."""
STACK = {
    "gcp:project": "acme-llm",
    "bezel:model": "gemma-4-12b-it-qat-w4a16",
    "bezel:accelerator": "nvidia-l4",
    "bezel:region": "us-east4",
}


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    said: list[str] = []
    monkeypatch.setattr(pulumi.log, "error", said.append)
    return said


def program(changes: dict[str, str], secret: tuple[str, ...] = (), **engine: Any) -> Declarations:
    def run() -> object:
        set_all_config(STACK | changes, list(secret))
        try:
            runpy.run_path(str(PROGRAM), run_name="__main__")
        except SystemExit as ended:
            return ended.code
        return 0

    return declare(run, **engine)


def test_a_stack_that_can_work_is_declared(told: list[str]) -> None:
    declared = program({})
    assert declared.one("cloudrunv2/service:Service").inputs["location"] == "us-east4"
    assert declared.result == 0
    assert told == []


@pytest.mark.parametrize(
    ("changes", "secret", "digest", "said"),
    [
        ({"bezel:accelerator": "nvidia-l5"}, (), "", "bezel:accelerator = nvidia-l5"),
        ({"bezel:secrets": "{}"}, ("bezel:secrets",), "", "bezel:secrets: encrypted"),
        ({}, (), None, "its digest could not be looked up"),
    ],
)
def test_what_the_user_must_mend_is_told_once_and_nothing_is_added(
    told: list[str], changes: dict[str, str], secret: tuple[str, ...], digest: str | None, said: str
) -> None:
    assert program(changes, secret, digest=digest).result == TOLD
    assert len(told) == 1
    assert said in told[0]
    assert "epair: " in told[0]
