"""The program as the engine runs it: it ends well, or tells its reader what is wrong and ends as one who was told."""

import json
import runpy
from pathlib import Path
from typing import Any

import pulumi
import pytest
from pulumi.runtime import set_all_config

from tests.support.components.fake_engine import Declarations, declare

PROGRAM = Path(__file__).parents[2] / "__main__.py"
TOLD = 32
"""What Pulumi's language hosts take for "the user has been told": the engine adds no line of its own."""
START = "gcp:organizations/getIAMPolicy:getIAMPolicy"
"""The function by which the program has the provider started."""
STACK = {
    "gcp:project": "acme-llm",
    "bezel:model": "gemma-4-12b-it-qat-w4a16",
    "bezel:accelerator": "nvidia-l4",
    "bezel:region": "us-east4",
}

READ_LATER = {"item": "vcpu", "region": "us-east4", "usd_per_unit": 0.000018, "as_of": "2099-01", "source": "a list"}


@pytest.fixture
def reported_errors(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    messages: list[str] = []
    monkeypatch.setattr(pulumi.log, "error", messages.append)
    return messages


def program(changes: dict[str, str], secret: tuple[str, ...] = (), **engine: Any) -> Declarations:
    def run() -> object:
        set_all_config(STACK | changes, list(secret))
        try:
            runpy.run_path(str(PROGRAM), run_name="__main__")
        except SystemExit as ended:
            return ended.code
        return 0

    return declare(run, **engine)


@pytest.mark.slow
def test_a_stack_that_can_work_is_declared(reported_errors: list[str]) -> None:
    declared = program({})
    assert declared.one("cloudrunv2/service:Service").inputs["location"] == "us-east4"
    assert declared.result == 0
    assert reported_errors == []


@pytest.mark.slow
@pytest.mark.parametrize("refused", ["", START])
def test_provider_starts_before_images_are_looked_up_and_may_fail(reported_errors: list[str], refused: str) -> None:
    declared = program({}, refused=refused)
    assert declared.functions == [START, "docker:index/getRegistryImage:getRegistryImage"]
    assert (declared.result, reported_errors) == (0, [])


@pytest.mark.parametrize(
    ("changes", "secret", "digest", "text"),
    [
        ({"bezel:accelerator": "nvidia-l5"}, (), "", "bezel:accelerator = nvidia-l5"),
        ({"bezel:secrets": "{}"}, ("bezel:secrets",), "", "bezel:secrets = (encrypted)"),
        ({"bezel:cost": json.dumps({"prices": [READ_LATER]})}, (), "", "bezel:cost.prices.0.as_of = 2099-01"),
        ({}, (), None, "= cannot be looked up"),
    ],
)
def test_what_the_user_must_mend_is_reported_once_and_nothing_is_added(
    reported_errors: list[str], changes: dict[str, str], secret: tuple[str, ...], digest: str | None, text: str
) -> None:
    assert program(changes, secret, digest=digest).result == TOLD
    assert len(reported_errors) == 1
    assert text in reported_errors[0]
    assert "epair: " in reported_errors[0]


@pytest.mark.slow
def test_a_stack_file_that_the_engine_read_otherwise_is_refused(
    reported_errors: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    stack_file = tmp_path / "Pulumi.test.yaml"
    stack_file.write_text("config:\n  bezel:labels:\n    since: 010\n")
    assert program({"bezel:labels": '{"since": 8}'}).result == TOLD
    assert f"{stack_file.name} line 3: bezel:labels.since = 010" in reported_errors[0]
    assert 'quote it: "010".' in reported_errors[0]

    stack_file.write_text('config:\n  bezel:labels:\n    since: "010"\n')
    assert program({"bezel:labels": '{"since": "010"}'}).result == 0


@pytest.mark.slow
@pytest.mark.parametrize("content", [b"config: {a: b", b"\xff\xfe", None])
def test_a_file_that_the_engine_cannot_have_read_is_no_matter(
    reported_errors: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes | None
) -> None:
    """As where `--config-file` names another one."""
    monkeypatch.chdir(tmp_path)
    if content is not None:
        (tmp_path / "Pulumi.test.yaml").write_bytes(content)
    assert program({}).result == 0
    assert reported_errors == []
