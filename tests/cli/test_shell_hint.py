"""Hint that a printed command needs localcloud's variables: where one is named, and the shell lacks them."""

from pathlib import Path

import pytest

from bezel.cli.local.shell_hint import backend_of, commands_in, shell_hint

FOLDER = Path("/data/.localcloud")


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("Repair: `bezel logs dev` shows it.", "bezel logs dev"),
        ("`.venv/bin/bezel status`", ".venv/bin/bezel status"),
        ("delete it (`gcloud run services delete llm --region=us-east4`)", "gcloud run services delete llm"),
        ("run `pulumi up --refresh`", "pulumi up --refresh"),
        ("`gsutil ls gs://b`", "gsutil ls"),
        ("`curl https://llm.example/v1/models`", "curl"),
    ],
)
def test_a_named_command_needs_the_variables(text: str, command: str) -> None:
    (command_text,) = commands_in(text)
    assert command_text.startswith(command)
    hint = shell_hint([text], FOLDER, {})
    assert 'eval "$(.venv/bin/bezel local env' in hint
    assert max(map(len, hint.splitlines())) <= 100


@pytest.mark.parametrize(
    "text",
    [
        "no command at all",
        "`make up STACK=dev` again",
        "`.venv/bin/bezel local recover dev --adopt`",
        "`bezel explain POLICY`",
        "set `bezel:region` of dev",
        "`lease.renew: true`",
    ],
)
def test_what_needs_no_variables_gets_no_hint(text: str) -> None:
    assert shell_hint([text], FOLDER, {}) == ""


def test_a_shell_that_has_the_variables_gets_no_hint() -> None:
    text = "`bezel logs dev`"
    assert shell_hint([text], FOLDER, {"PULUMI_BACKEND_URL": backend_of(FOLDER)}) == ""
    assert shell_hint([text], FOLDER, {"PULUMI_BACKEND_URL": "gs://acme-state"})
