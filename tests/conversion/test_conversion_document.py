"""docs/conversion.md: each flag of its table becomes the setting beside it."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from bezel.conversion.conversion import convert

DOCUMENT = Path(__file__).parents[2] / "docs" / "conversion.md"
ROWS = re.findall(r"^\| `(--[^`]+)` \| `([^`]+)` \|$", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE)
BASE = "gcloud run deploy chat --image=vllm/vllm-openai:v0.32.0"
MODEL = "--model=google/gemma-4-E2B-it"


def settings_of(flag: str) -> dict[str, Any]:
    arguments = f"{flag},{MODEL}" if flag.startswith("--args=") else f"{flag} --args={MODEL}"
    return convert(f"{BASE} {arguments}", "FILE").converted.settings


@pytest.mark.parametrize(("flag", "setting"), ROWS)
def test_a_flag_of_the_table_becomes_its_setting(flag: str, setting: str) -> None:
    ((key, expected),) = yaml.safe_load(setting).items()
    value = settings_of(flag)[key.removeprefix("bezel:")]
    assert (value | expected if isinstance(expected, dict) else expected) == value
    without = settings_of("--no-traffic").get(key.removeprefix("bezel:"))
    assert without != value


def test_the_table_has_the_flags() -> None:
    assert len(ROWS) >= 18
