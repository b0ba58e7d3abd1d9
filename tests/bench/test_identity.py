"""`bezel bench run` sends an identity token of Google's, unless the server is public."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from bezel.cli.main import main
from tests.support.rest.fake_google import PLANTED, serving
from tests.support.smoke.fake_service import MODEL, Project

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.slow
def test_an_identity_token_is_sent_unless_anybody_may_ask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving() as google, serving() as vllm:
        for name, value in Project(google, vllm).environment(tmp_path).items():
            monkeypatch.setenv(name, value)
        arguments = ["bench", "run", "--url", vllm.url, "--model", MODEL, "--requests", "4", "--output-tokens", "6"]
        failures = []
        for more in ((), ("--public",)):
            main([*arguments, *more, "--json"])
            text = capsys.readouterr().out
            failures.append(json.loads(text)["cells"][0]["failures"])
            assert PLANTED not in text
    assert failures == [{}, {"http_403": 4}]


@pytest.mark.parametrize(
    ("arguments", "code", "reason"),
    [
        (["--url", "http://203.0.113.7:80", "--model", "m"], 1, "a token sent to this address could be read"),
        (["--stack", "none"], 2, "there is no Pulumi.none.yaml"),
    ],
)
def test_mistakes_about_identity_and_stack_are_reported(
    arguments: list[str], code: int, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", "run", *arguments]) == code
    assert reason in capsys.readouterr().err
