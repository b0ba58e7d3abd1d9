"""`bezel new stack`: the copied file, the limits of its environment, the pipeline's file, and what is refused."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from bezel.cli.main import main
from bezel.engine.project.pipeline_file import read_pipeline

if TYPE_CHECKING:
    from pathlib import Path

    from bezel.engine.project.project import Project


def contents(folder: Path) -> dict[str, str]:
    return {str(file.relative_to(folder)): file.read_text() for file in folder.rglob("*") if file.is_file()}


def changes(before: dict[str, str], folder: Path) -> set[str]:
    return {path for path, text in contents(folder).items() if before.get(path) != text}


def new_stack(*arguments: str) -> int:
    return main(["new", "stack", *arguments])


def edit(project: Project, old: str, new: str, file: str = "Pulumi.dev.yaml") -> None:
    path = project.folder / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_a_copied_stack_keeps_comments_and_values_and_joins_the_pipeline(project: Project) -> None:
    before = contents(project.folder)
    assert new_stack("bot", "--from", "dev") == 0
    assert changes(before, project.folder) == {"Pulumi.bot.yaml", "bezel.toml"}
    assert (project.folder / "Pulumi.bot.yaml").read_text() == before["Pulumi.dev.yaml"]
    assert dict(read_pipeline(project).stacks) == {"dev": "dev", "bot": "dev"}
    added = [
        line for line in (project.folder / "bezel.toml").read_text().splitlines() if line not in before["bezel.toml"]
    ]
    assert added == ['bot = "dev"']


def test_an_environment_with_limits_gets_no_new_ones(project: Project) -> None:
    before = contents(project.folder)
    assert new_stack("prod", "--from", "dev", "--environment", "prod") == 0
    assert changes(before, project.folder) == {"Pulumi.prod.yaml", "bezel.toml"}
    assert project.configuration("prod")["environment"] == "prod"
    assert "# A plan above this is refused." in (project.folder / "Pulumi.prod.yaml").read_text()


def test_a_new_environment_gets_the_limits_of_the_copied_one(project: Project) -> None:
    before = contents(project.folder)
    assert new_stack("eu.trial", "--from", "dev", "--environment", "staging") == 0
    limits = {f"policies/{pack}.staging.json" for pack in ("hardware_cost", "security")}
    assert changes(before, project.folder) == {"Pulumi.eu.trial.yaml", "bezel.toml", *limits}
    pipeline = read_pipeline(project)
    assert (pipeline.stacks["eu.trial"], pipeline.protected) == ("staging", ("prod",))
    assert {files["staging"] for files in pipeline.packs.values()} == limits
    shipped = json.loads(before["policies/hardware_cost.dev.json"])
    limits_there = json.loads((project.folder / "policies" / "hardware_cost.staging.json").read_text())
    assert limits_there == {
        name: keys | {"limits": {"staging": keys["limits"]["dev"]}} for name, keys in shipped.items()
    }


def test_what_would_belong_to_both_stacks_is_changed(project: Project) -> None:
    edit(
        project, "config:\n", "secretsprovider: gcpkms://k\nencryptedkey: abc\nconfig:\n  bezel:restarted_at: '2026'\n"
    )
    edit(project, "  # A plan above", "  bezel:weights: {create: true, bucket: own}\n  # A plan above")
    assert new_stack("bot", "--from", "dev") == 0
    copied = project.configuration("bot")
    assert copied["weights"] == {"create": False, "bucket": "own"}
    assert "restarted_at" not in copied
    text = (project.folder / "Pulumi.bot.yaml").read_text()
    assert "encryptedkey" not in text
    assert "secretsprovider" not in text


def test_without_a_file_of_the_pipeline_only_the_stack_is_written(project: Project) -> None:
    (project.folder / "bezel.toml").unlink()
    before = contents(project.folder)
    assert new_stack("trial", "--from", "dev", "--environment", "staging") == 0
    assert changes(before, project.folder) == {"Pulumi.trial.yaml"}


REFUSED = {
    "no source": (["bot"], ("--from = (not set)", "name one of dev")),
    "an unknown source": (["bot", "--from", "dve"], ("STACK = dve", "did you mean dev")),
    "a stack that exists": (["dev", "--from", "dev"], ("NAME = dev", "there is Pulumi.dev.yaml", "another name")),
    "another case": (["DEV", "--from", "dev"], ("there is Pulumi.dev.yaml",)),
    "only periods": (["..", "--from", "dev"], ("at most 100 letters",)),
    "an environment that no stack has": (
        ["bot", "--from", "dev", "--environment", "Pre Prod"],
        ("--environment = Pre Prod", "lower-case letters"),
    ),
    "a region": (["bot", "--from", "dev", "--region", "us-east4"], ("--region = us-east4", "edit the new file")),
}


@pytest.mark.parametrize(("arguments", "phrases"), REFUSED.values(), ids=REFUSED)
def test_a_wrong_input_is_named_and_writes_nothing(
    project: Project, capsys: pytest.CaptureFixture[str], arguments: list[str], phrases: tuple[str, ...]
) -> None:
    before = contents(project.folder)
    assert new_stack(*arguments) == 2
    error = capsys.readouterr().err
    for phrase in (*phrases, "Repair: "):
        assert phrase in error, error
    assert contents(project.folder) == before


BROKEN = {
    "a plan with problems": ("Pulumi.dev.yaml", "max_hourly_usd: 1.10", "max_hourly_usd: 0.10", "above the limit"),
    "an encrypted value": ("Pulumi.dev.yaml", "config:\n", "config:\n  gcp:x: {secure: v1:abc}\n", "no other stack"),
    "a file of the pipeline with problems": ("bezel.toml", 'dev = "dev"', 'dve = "dev"', "there is no Pulumi.dve.yaml"),
    "inline tables": ("bezel.toml", '[stacks]\ndev = "dev"', 'stacks = {dev = "dev"}', "add the stack by hand"),
}  # fmt: skip


@pytest.mark.parametrize(("file", "old", "new", "phrase"), BROKEN.values(), ids=BROKEN)
def test_a_stack_that_nothing_can_be_made_of_is_left_alone(
    project: Project, capsys: pytest.CaptureFixture[str], file: str, old: str, new: str, phrase: str
) -> None:
    edit(project, old, new, file)
    before = contents(project.folder)
    assert new_stack("bot", "--from", "dev") in (1, 2)
    assert phrase in capsys.readouterr().err
    assert contents(project.folder) == before


def test_limits_that_stand_there_already_are_not_overwritten(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    (project.folder / "policies" / "security.staging.json").write_text("{}")
    before = contents(project.folder)
    assert new_stack("bot", "--from", "dev", "--environment", "staging") != 0
    assert "nothing is overwritten" in capsys.readouterr().err
    assert contents(project.folder) == before
