"""Every repair that a message names can be done: its command parses, its recipe, option and key exist.

What a repair does is for the runs of the engine (`tests/e2e`); a command that is misspelled is found here, whoever
names it.
"""

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from pydantic import BaseModel

from bezel.cli.command_table import command_table
from bezel.cli.main import parse
from bezel.engine.project.project import Project
from bezel.planner.base.parse import read_settings
from bezel.planner.base.settings import Settings
from bezel_base.command_line.parser import UsageError
from bezel_catalog import vllm_options
from bezel_localcloud.command.table import program_table
from tests.support.cli.repair_commands import ROOT, commands_in, commands_of, texts

PULUMI = Path(sys.executable).parent / "pulumi"
PULUMI_WORDS = ("up", "refresh", "destroy", "preview", "cancel", "import", "config", "stack", "state")
VLLM = vllm_options(str(Settings.model_fields["vllm_version"].default))
# Settings that the plan puts together to vLLM's `speculative-config`, and keys of its options that are maps.
SPECULATION = {"spec-method", "spec-model", "spec-tokens"}
WITHIN_OPTIONS = {"num_speculative_tokens", "kv_connector", "kv_role", "ec_connector", "ec_role"}
# Commands that change nothing but what they print, or measure, and the first words of those that do.
READS = (
    "bezel advise",
    "bezel analyze-logs",
    "bezel bench",
    "bezel catalog show",
    "bezel ci judge",
    "bezel compare",
    "bezel completion",
    "bezel cost",
    "bezel local env",
    "bezel local fault list",
    "bezel local outputs",
    "bezel local token",
    "localcloud env",
    "localcloud fault list",
    "localcloud fault show",
    "bezel mcp config",
    "bezel doctor",
    "bezel endpoint",
    "bezel upgrade --check",
    "bezel explain",
    "bezel logs",
    "bezel memory",
    "bezel metrics",
    "bezel model-files",
    "bezel models",
    "bezel plan",
    "bezel proxy",
    "bezel query",
    "bezel quota",
    "bezel secret show",
    "bezel status",
    "bezel tpu describe",
    "bezel zones",
    "bezel tpu find",
    "bezel tpu list",
    "make outputs",
    "pulumi login",
    "pulumi preview --stack",
    "pulumi stack --show-urns",
    "pulumi stack export",
    "pulumi stack history",
    "pulumi stack ls",
    "pulumi stack output",
)
PROGRAMS = ("bezel local",)  # the name of a program, as a text of its own
RUN_BY = {
    "bezel adopt": "tests/e2e/test_adoption.py",
    "bezel ci login": "tests/gitops/test_ci_login.py",
    "bezel new stack": "tests/cli/new/test_new_stack.py",
    "bezel new": "tests/cli/new/test_new_project.py",
    "pulumi import": "tests/e2e/test_adoption.py",
    "bezel catalog add-model": "tests/operations/test_add_model.py",
    "bezel catalog record-release": "tests/cli/test_record_release.py",
    "bezel catalog refresh --write": "tests/cli/test_catalog_command.py",
    "bezel ci deploy": "tests/gitops/test_review_run.py",
    "bezel ci expire": "tests/gitops/test_life_under_upkeep.py",
    "bezel ci lock": "tests/gitops/test_lock_command.py",
    "bezel ci preview": "tests/gitops/test_review_run.py",
    "bezel ci rehearse": "tests/gitops/test_rehearsal.py",
    "bezel container start": "tests/e2e/test_container.py",
    "bezel deploy": "tests/operations/test_deploy.py",
    "bezel destroy": "tests/operations/test_destroy.py",
    "bezel restart": "tests/operations/test_scale.py",
    "bezel rollback": "tests/operations/test_rollback.py",
    "bezel init": "tests/e2e/test_project_setup.py",
    "bezel local down": "tests/e2e/test_kill_points.py",
    "bezel local recover": "tests/e2e/test_kill_points.py",
    "bezel local start": "tests/e2e/test_prod_repairs.py",
    "bezel local stop": "tests/cli/test_command.py",
    "localcloud fault clear": "packages/localcloud/tests/test_command_process.py",
    "localcloud serve": "packages/localcloud/tests/test_command_process.py",
    "localcloud start": "packages/localcloud/tests/test_command_process.py",
    "localcloud stop": "packages/localcloud/tests/test_command_process.py",
    "bezel keys create": "tests/cli/test_keys_command.py",
    "bezel recover": "tests/e2e/test_kill_points.py",
    "bezel stack edit": "tests/operations/test_stack_edit.py",
    "bezel secret set": "tests/cli/test_secret_command.py",
    "bezel tpu delete": "tests/cli/test_tpu_command.py",
    "bezel tpu sweep": "tests/cli/test_tpu_command.py",
    "bezel weights copy": "tests/weights/test_command.py",
    "make down": "tests/e2e/test_prod_repairs.py",
    "make setup": "tests/tools/test_toolchain.py",
    "make -C ../judge setup": "tests/gitops/life/test_change.py",
    "make up": "tests/e2e/test_prod_repairs.py",
    "pulumi stack init": "tests/clients/test_pulumi_states.py",
    "pulumi stack import": "tests/engine/test_recover.py",
    "pulumi stack rm": "tests/clients/test_pulumi_states.py",
    "pulumi cancel": "tests/e2e/test_kill_points.py",
    "pulumi config set": "tests/cli/test_repair_commands.py",
    "pulumi destroy": "tests/e2e/test_prod_repairs.py",
    "pulumi refresh --clear-pending-creates": "tests/e2e/test_prod_repairs.py",
    "pulumi up --refresh": "tests/e2e/test_prod_repairs.py",
    "pulumi up": "tests/e2e/test_lease_hours.py",
    "pulumi up --stack": "tests/clients/test_pulumi_states.py",
}
SNIPPET = re.compile(r"`(bezel:\w+: [^`]+)`")
TO_SET = re.compile(r"\b(?:[Ss]et|[Rr]aise|[Ll]ower|[Rr]emove|[Aa]dd|[Dd]rop) `?([a-z]+(?:[.:_-][a-z*]+)+)(?![\w(])")


def sections(model: type[BaseModel]) -> dict[str, type[BaseModel] | None]:
    """The keys of a section, with the section below each where there is one."""
    return {
        name: next(
            (
                kind
                for kind in (field.annotation, *get_args(field.annotation))
                if isinstance(kind, type) and issubclass(kind, BaseModel)
            ),
            None,
        )
        for name, field in model.model_fields.items()
    }


TOP = sections(Settings)
DOTTED = re.compile(rf"(?<![\w./@-])(?:bezel:)?((?:{'|'.join(TOP)})\.[\w*-]+)(?![\w/(])")
LEAVES = {name for section in TOP.values() if section for name in section.model_fields}


def is_key(path: str) -> bool:
    """Whether a stack file may have this key."""
    first, _, rest = path.removeprefix("bezel:").partition(".")
    if first not in TOP:
        return path == "gcp:project"
    below = TOP[first]
    if first == "vllm" and rest:
        return is_option(rest)
    return not rest or below is None or rest in below.model_fields


def is_option(name: str) -> bool:
    """Whether `vllm` may have this key; `spec-*` stands for several."""
    if name.endswith("*"):
        return any(option.startswith(name[:-1]) for option in SPECULATION)
    return name in SPECULATION or VLLM.find(f"--{name}") is not None


def parses(command: str) -> bool:
    """Whether its program takes a command; one that only names a group, or what it does, needs no arguments."""
    program, *arguments = shlex.split(command)
    read = parse if program == "bezel" else program_table().parser(program).read
    with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
        for variant in (
            arguments,
            [*arguments, "--help"] if not any(word.startswith("-") for word in arguments) else arguments,
        ):
            try:
                read(variant)
            except UsageError:
                continue
            except SystemExit:  # after the help
                return True
            return True
    return False


def taken_by_pulumi(command: str) -> bool:
    """Whether the CLI knows the command and its options; it tells how a command is used before it runs anything."""
    arguments = shlex.split(command)[1:]
    asked = subprocess.run([PULUMI, *arguments, "--help"], capture_output=True, text=True, check=False, timeout=60)
    usage = re.search(r"^Usage:\n  pulumi (.*)", asked.stdout, re.MULTILINE)
    if asked.returncode != 0 or usage is None:
        return False
    named = usage[1].split()
    command_words = [word for word in named if word[0] not in "[<"]
    plain_arguments = [word for word in arguments if not word.startswith("-")]
    takes_more = any(word[0] in "[<" and word not in {"[flags]", "[command]"} for word in named)
    aliases = re.search(r"^Aliases:\n  (.*)", asked.stdout, re.MULTILINE)
    if aliases and plain_arguments[len(command_words) - 1 : len(command_words)] != command_words[-1:]:
        command_words[-1] = next(
            (word for word in aliases[1].split(", ") if word in plain_arguments), command_words[-1]
        )
    return plain_arguments[: len(command_words)] == command_words and (
        takes_more or len(plain_arguments) == len(command_words) or "--stack" in arguments
    )


# Not a case for each command: reading all modules takes seconds, in which each worker would collect.
@pytest.mark.slow
def test_every_command_of_bezel_parses() -> None:
    assert len(commands_of("bezel")) > 40
    assert {command: places for command, places in commands_of("bezel").items() if not parses(command)} == {}


@pytest.mark.slow
def test_every_command_of_localcloud_parses_in_both_programs() -> None:
    named = commands_of("localcloud")
    assert len(named) > 5
    assert {command: places for command, places in named.items() if not parses(command)} == {}
    shared = {command: places for command, places in named.items() if not command.startswith("localcloud reset")}
    of_bezel = {command.replace("localcloud", "bezel local", 1): places for command, places in shared.items()}
    assert {command: places for command, places in of_bezel.items() if not parses(command)} == {}


@pytest.mark.slow
def test_every_recipe_and_its_variables_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    assert commands_of("make")
    for command, places in commands_of("make").items():
        recipe, *settings = re.sub(r"-C \S+ ", "", command).split()[1:]
        assert re.search(rf"^{recipe}:", makefile, re.MULTILINE), (command, places)
        for one in settings:
            name = one.partition("=")[0]
            assert f"$({name})" in makefile or f"$${name}" in makefile, (command, places)


@pytest.mark.slow
def test_every_command_of_pulumi_and_its_options_exist() -> None:
    assert len(commands_of("pulumi")) > 10
    assert {command: places for command, places in commands_of("pulumi").items() if not taken_by_pulumi(command)} == {}
    for command, places in commands_of("pulumi").items():
        if command.startswith("pulumi config set"):
            key = next(word for word in shlex.split(command)[3:] if not word.startswith("-"))
            assert is_key(key), (command, places)


@pytest.mark.slow
def test_every_repair_that_changes_something_is_run_by_a_test() -> None:
    repairs = [command for program in ("bezel", "localcloud", "make", "pulumi") for command in commands_of(program)]
    changing = [command for command in repairs if not command.startswith(READS) and command not in PROGRAMS]
    assert [command for command in changing if not command.startswith(tuple(RUN_BY))] == []
    assert [command for command in RUN_BY if not any(one.startswith(command) for one in changing)] == []
    assert [file for file in RUN_BY.values() if not (ROOT / file).is_file()] == []


@pytest.mark.slow
def test_a_setting_of_a_repair_command_stands_in_the_stack_file(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.yaml").write_text((ROOT / "Pulumi.yaml").read_text())
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PULUMI_HOME": str(tmp_path / "home")}
    environment |= {"PULUMI_BACKEND_URL": f"file://{tmp_path}", "PULUMI_CONFIG_PASSPHRASE": "none"}

    def pulumi(*arguments: str) -> None:
        subprocess.run([PULUMI, *arguments], cwd=tmp_path, env=environment, check=True, capture_output=True, timeout=60)

    pulumi("stack", "init", "one")
    for command in commands_of("pulumi"):
        if command.startswith("pulumi config set"):
            pulumi(*shlex.split(command)[1:])
    written = yaml.safe_load((tmp_path / "Pulumi.one.yaml").read_text())["config"]
    assert written["bezel:secrets"] == {"HF_TOKEN": "hf-token"}
    assert written["bezel:smoke"] == {"impersonate": "NAME@PROJECT.iam.gserviceaccount.com"}
    assert written["gcp:project"] == "PROJECT_ID"


@pytest.mark.slow
def test_no_command_stands_where_it_is_not_seen_as_one() -> None:
    cloud = [*program_table().spec["commands"]]
    commands_by_program = {"bezel": [*command_table().spec["commands"]], "localcloud": cloud, "pulumi": PULUMI_WORDS}
    loose = []
    for message in texts():
        seen = commands_in(message.text)
        for program, command_words in commands_by_program.items():
            named = len(re.findall(rf"(?<![\w./-]){program} (?:{'|'.join(command_words)})\b(?! *:)", message.text))
            named += len(re.findall(rf"\.venv/bin/{program} ", message.text))
            plain = [one.removeprefix("../judge/").removeprefix(".venv/bin/") for one in seen]
            if named > sum(one.startswith(f"{program} ") for one in plain):
                loose.append(f"{message.place}: {message.text.strip()[:100]}")
    assert not loose, "put the command into backticks"


@pytest.mark.slow
def test_every_key_of_a_stack_file_that_a_message_names_exists() -> None:
    unknown, seen = [], 0
    for message in texts():
        if " " not in message.text:
            continue
        named = DOTTED.findall(message.text)
        seen += len(named)
        unknown += [f"{message.place}: {path}" for path in named if not is_key(path)]
    assert not unknown
    assert seen > 40


@pytest.mark.slow
def test_every_key_that_a_message_says_to_change_exists() -> None:
    unknown, seen = [], 0
    for message in texts():
        for name in TO_SET.findall(message.text):
            seen += 1
            if not (is_key(name) or is_option(name) or name in LEAVES | WITHIN_OPTIONS | {"e.g"}):
                unknown.append(f"{message.place}: {name}")
    assert not unknown
    assert seen > 30


@pytest.mark.slow
def test_every_line_of_a_stack_file_that_a_message_shows_is_taken() -> None:
    settings: dict[str, Any] = dict(Project(ROOT).configuration("l4-qat"))
    shown = [(message.place, line) for message in texts() for line in SNIPPET.findall(message.text)]
    assert shown
    for place, line in shown:
        ((key, value),) = yaml.safe_load(re.sub(r"\b1\b", "word", line)).items()
        _, problems = read_settings(settings | {key.removeprefix("bezel:"): value})
        assert not problems, f"{place}: {line}: {problems}"


@pytest.mark.parametrize(
    "command",
    [
        "bezel tpu lst",
        "bezel local recover l4-qat --adop",
        "bezel weights copy l4-qat --form x",
        "bezel no",
        "localcloud stpo",
    ],
)
def test_a_command_that_bezel_does_not_take_would_be_noticed(command: str) -> None:
    assert not parses(command)


@pytest.mark.slow
@pytest.mark.parametrize("command", ["pulumi up --refreshed", "pulumi destory", "pulumi config sett bezel:model x"])
def test_a_command_that_pulumi_does_not_take_would_be_noticed(command: str) -> None:
    assert not taken_by_pulumi(command)


@pytest.mark.parametrize("name", ["lease.boot_deadline_seconds", "vllm.swap-space", "gcp:projekt", "smoke.request"])
def test_a_key_that_no_stack_file_has_would_be_noticed(name: str) -> None:
    assert not is_key(name)
