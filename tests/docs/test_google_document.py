"""docs/google.md: every command exists, every skipped block says why, and the page works from its begin to its end."""

from __future__ import annotations

import os
import pty
import shlex
import subprocess
from typing import TYPE_CHECKING

import pytest

from bezel.cli.main import parse
from bezel_localcloud import control
from tests.support.docs.google_page import ANSWER, IN_PLACE, INTO, ONLY_GOOGLE, PAGE, Step, answers, script, steps
from tests.support.docs.markdown import ROOT
from tests.support.gitops.pipeline import Pipeline

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

STEPS = steps()
ASKING = ("init", "deploy", "destroy", "weights copy", "quota request")


def commands(step: Step) -> list[list[str]]:
    """The commands of `bezel` in a block, word by word."""
    text = step.text.replace("\\\n", " ")
    return [shlex.split(line)[1:] for line in text.splitlines() if line.startswith(".venv/bin/bezel ")]


def test_every_block_of_the_page_is_a_step() -> None:
    assert len(STEPS) == PAGE.read_text().count("```") / 2
    assert len(STEPS) > 12


@pytest.mark.parametrize("step", STEPS, ids=str)
def test_a_command_of_the_page_is_one_of_bezel(step: Step) -> None:
    for command in commands(step):
        parse(command)


@pytest.mark.parametrize("step", STEPS, ids=str)
def test_a_block_that_only_google_runs_says_why(step: Step) -> None:
    if ONLY_GOOGLE in step.marks:
        assert len(step.marks[ONLY_GOOGLE].split()) > 5
        assert not commands(step), "a command of bezel runs on localcloud too"
    else:
        assert IN_PLACE not in step.marks
        assert "gcloud" not in step.text


@pytest.mark.parametrize("step", STEPS, ids=str)
def test_a_block_has_an_answer_exactly_where_its_command_asks(step: Step) -> None:
    asks = [command for command in commands(step) if " ".join(command).startswith(ASKING)]
    assert (ANSWER in step.marks) == bool(asks)
    assert (INTO in step.marks) == (step.language == "yaml")


def test_the_readme_leads_to_the_page() -> None:
    assert "(docs/google.md)" in (ROOT / "README.md").read_text()


@pytest.fixture
def checkout(tmp_path: Path) -> Iterator[Pipeline]:
    made = Pipeline.whole(tmp_path)
    made.environment = made.warm_environment | {"LOCALCLOUD": str(made.endpoint.directory)}
    for name in ("PULUMI_BACKEND_URL", "PULUMI_CONFIG_PASSPHRASE"):
        del made.environment[name]
    yield made
    made.stop()


@pytest.mark.wide
@pytest.mark.timeout(900)
def test_the_page_works_word_by_word_on_localcloud(checkout: Pipeline) -> None:
    typing, terminal = pty.openpty()
    os.write(typing, answers(STEPS).encode())
    try:
        ended = subprocess.run(
            ["/bin/sh", "-c", script(STEPS)],
            cwd=checkout.folder,
            env=checkout.environment,
            stdin=terminal,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=850,
            check=False,
        )
    finally:
        os.close(typing)
        os.close(terminal)
    assert ended.returncode == 0, ended.stdout[-6000:]
    assert ended.stdout.rstrip().endswith("=== end")
    sentences = " ".join(ended.stdout.split())  # whatever the width of their rows
    assert "gets roles/iam.serviceAccountOpenIdTokenCreator on the account bezel-smoke@" in sentences
    assert "creation of the service: Google accepted, localcloud accepted" in sentences
    assert "bezel-local" not in (checkout.folder / "google-l4-qat.md").read_text()
    left = str(control.inventory(checkout.endpoint))
    assert not [name for name in ("bezel-l4-qat", "bezel-smoke", "bezel-local-pulumi-state") if name in left]
