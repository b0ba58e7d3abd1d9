"""Lines as people publish them: the settings that they become, and what is said about the rest."""

from typing import Any

import pytest

from bezel.conversion.conversion import convert
from bezel_base.errors import UserError
from tests.support.conversion.published_lines import PUBLISHED, Published


def value_at(settings: dict[str, Any], path: str) -> Any:
    first, _, rest = path.partition(".")
    value = settings.get(first)
    return value if not rest else (value or {}).get(rest)


@pytest.mark.parametrize("line", PUBLISHED.values(), ids=PUBLISHED)
def test_a_published_line_becomes_these_settings(line: Published) -> None:
    made = convert(line.text, "FILE")
    assert {path: value_at(made.converted.settings, path) for path in line.settings} == line.settings
    assert [part for part in line.remarks if part not in made.text()] == []


def test_there_are_enough_lines_to_judge_by() -> None:
    assert len(PUBLISHED) >= 20


@pytest.mark.parametrize("line", [PUBLISHED["the quickstart"], PUBLISHED["docker, an entrypoint"]])
def test_a_line_without_its_server_is_refused(line: Published) -> None:
    with pytest.raises(UserError, match=r"starts or deploys vLLM|does not run vLLM"):
        convert(line.text.replace("vllm", "llama"), "FILE")
