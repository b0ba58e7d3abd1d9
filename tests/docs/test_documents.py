"""The documents say what is so: what they show is run or compared, what they name exists."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from bezel.cli.main import parse
from bezel.engine.project.project import Project
from bezel.planner import make_plan
from bezel_base.command_line.parser import UsageError
from tests.docs.test_document_commands import problem_of
from tests.support.components.fake_engine import declare
from tests.support.docs.markdown import DOCUMENTS, ROOT, after, between, blocks
from tools.docs.planner.schema import configuration_table

CONTRIBUTING = ROOT / "CONTRIBUTING.md"
LINK = re.compile(r"\]\((?!https?:)([^)#]+)\)")
HELD_BY = re.compile(r"`(tests/[\w/]+\.py)`")


def name_of(document: Path) -> str:
    return str(document.relative_to(ROOT))


def test_the_configuration_table_is_the_schemas() -> None:
    shown = between(ROOT / "docs" / "stacks.md", "made by: .venv/bin/python -m tools.docs.planner.settings")
    assert shown == configuration_table(), "run `python -m tools.docs.planner.settings --write`"


def test_the_list_of_recipes_is_what_make_help_prints() -> None:
    # Under `make test` the variables of the outer make would add lines.
    outside = {name: value for name, value in os.environ.items() if "MAKE" not in name}
    command = ["make", "--no-print-directory", "help"]
    printed = subprocess.run(
        command, cwd=ROOT, env=outside, capture_output=True, text=True, check=True, timeout=60
    ).stdout
    assert after(CONTRIBUTING, "output of make help") == printed, "put what `make help` prints into CONTRIBUTING.md"


def test_recipes_number_at_most_twenty_in_rows_of_a_terminal() -> None:
    rows = after(CONTRIBUTING, "output of make help").splitlines()
    assert len(rows) <= 20
    assert max(map(len, rows)) <= 80


@pytest.mark.parametrize(("package", "declared"), [("components", "chat-account"), ("smoke", "health")])
def test_example_of_a_pulumi_package_declares_its_resource(package: str, declared: str) -> None:
    texts = blocks(ROOT / package / "README.md", "python")
    assert texts
    for text in texts:
        assert declare(lambda text=text: exec(text, {})).by_name(declared)  # noqa: S102


@pytest.mark.slow
@pytest.mark.parametrize("package", ["base", "catalog", "pulumi-offline"])
def test_example_of_a_package_runs(package: str) -> None:
    texts = blocks(ROOT / "packages" / package / "README.md", "python")
    assert texts
    for text in texts:
        run = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False, timeout=60)
        assert run.returncode == 0, run.stderr
        assert run.stdout


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_no_document_holds_the_marks_of_an_unfinished_merge(document: Path) -> None:
    assert re.findall(r"^(?:<{7} .*|={7}|>{7} .*)$", document.read_text(encoding="utf-8"), re.MULTILINE) == []


def test_every_setting_on_the_way_to_google_is_accepted() -> None:
    texts = blocks(ROOT / "docs" / "google.md", "yaml")
    assert texts
    for text in texts:
        shown = {key.removeprefix("bezel:"): value for key, value in yaml.safe_load(text).items()}
        settings = Project(ROOT).configuration("l4-qat") | shown
        assert make_plan(settings, project="my-project", stack="l4-qat")


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_every_command_that_is_shown_exists(document: Path) -> None:
    recipes = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    text = document.read_text().replace("\\\n", " ")
    for name in re.findall(r"(?:^|`)make ([a-z]+)", text, re.MULTILINE):
        assert name in recipes
    for line in re.findall(r"`?\.venv/bin/bezel ([^`\n)]+)", text):
        assert problem_of(f"bezel {line}") == ""


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_every_file_that_is_named_exists(document: Path) -> None:
    text = document.read_text()
    for target in LINK.findall(text):
        assert (document.parent / target).exists(), f"{document.name} links to {target}"
    for target in HELD_BY.findall(text):
        assert (ROOT / target).is_file(), f"{document.name} names {target}"


def test_a_command_that_does_not_exist_would_be_noticed() -> None:
    with pytest.raises(UsageError):
        parse(["local", "fly"])
