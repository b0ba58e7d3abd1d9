"""Six inputs as stack files: golden texts, planned by the planner, without any credential.

The goldens are in `goldens`; `BEZEL_RECORD=1 pytest tests/conversion/test_six_inputs.py` writes them.
"""

import os
from pathlib import Path
from typing import Any

import pytest

from bezel.conversion.conversion import Conversion, convert
from bezel.planner import make_plan
from bezel.planner.base.stack_file import read_stack_file
from tests.support.conversion.six_inputs import CREDENTIALS, SIX

GOLDENS = Path(__file__).with_name("goldens")


def conversion_of(name: str) -> Conversion:
    return convert(SIX[name], name)


def settings_of(text: str) -> dict[str, Any]:
    content, problems = read_stack_file(text, "Pulumi.x.yaml")
    assert problems == []
    config = content["config"]
    return {key.removeprefix("bezel:"): value for key, value in config.items() if key.startswith("bezel:")}


@pytest.mark.parametrize("name", SIX)
def test_the_stack_file_and_the_report_are_those_of_the_golden(name: str) -> None:
    made = conversion_of(name)
    for ending, text in (("yaml", made.stack_file("docs/stack.schema.json")), ("txt", made.text())):
        file = GOLDENS / f"{name}.{ending}"
        if os.environ.get("BEZEL_RECORD"):
            file.write_text(text)
        assert text == file.read_text(), "look at why, then: BEZEL_RECORD=1 pytest tests/conversion/test_six_inputs.py"


@pytest.mark.parametrize("name", SIX)
def test_the_stack_file_is_read_as_the_settings_that_were_planned(name: str) -> None:
    made = conversion_of(name)
    settings = settings_of(made.stack_file())
    assert settings == made.converted.settings
    if made.plan is not None:
        again = make_plan(settings, project=made.plan.project, stack=made.stack)
        assert again.as_output() == made.plan.as_output()


@pytest.mark.parametrize("name", SIX)
def test_no_credential_is_written_or_shown(name: str) -> None:
    made = conversion_of(name)
    shown = made.stack_file() + made.text()
    assert [each for each in CREDENTIALS if each in shown] == []


def test_the_inputs_have_credentials_to_find() -> None:
    assert all(any(each in text for text in SIX.values()) for each in CREDENTIALS)


@pytest.mark.parametrize(
    ("name", "is_planned"),
    [
        ("live_service", True),
        ("vllm_serve", True),
        ("vllm_serve_eight_gpus", False),
        ("gcloud_run_deploy", True),
        ("compose", True),
        ("not_served", False),
    ],
)
def test_what_can_be_served_is_planned_and_the_rest_is_objected_to(name: str, *, is_planned: bool) -> None:
    made = conversion_of(name)
    assert (made.plan is not None) is is_planned
    assert bool(made.objections) is not is_planned
    assert all(problem.key and problem.consequence and problem.repair for problem in made.objections)
