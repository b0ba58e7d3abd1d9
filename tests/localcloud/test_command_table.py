"""The commands of `localcloud` and of `bezel local`: what is one, what differs, and the folder of the data."""

import subprocess
import sys
from pathlib import Path

import pytest

from bezel.cli.command_table import command_table
from bezel.cli.local.program import BezelLocal
from bezel_localcloud.command.main import main
from bezel_localcloud.command.program import Program
from bezel_localcloud.command.table import program_table
from bezel_localcloud.core.files.locks import using

SHARED = ("serve", "start", "stop", "status", "env", "token", "fault", "region")
# What `bezel local` takes for Pulumi, and the options of the server, which each of its commands takes.
OF_BEZEL = {"--provider", "--model", "--server", "--speed"}


@pytest.mark.parametrize("command", SHARED)
def test_both_programs_call_the_same_function(command: str) -> None:
    own_commands, of_bezel = program_table().spec["commands"], command_table().spec["commands"]["local"]["commands"]
    assert own_commands[command]["call"] == of_bezel[command]["call"]


@pytest.mark.parametrize("command", [*((name,) for name in SHARED if name != "fault"), ("fault", "add")])
def test_options_of_localcloud_are_those_of_bezel_local(command: tuple[str, ...]) -> None:
    own_defaults, of_bezel = program_table().defaults_of(*command), command_table().defaults_of("local", *command)
    alone = {"parent", "project"}
    assert {name: own_defaults[name] for name in own_defaults.keys() - alone} == {
        name: of_bezel[name] for name in own_defaults.keys() - alone
    }
    assert not of_bezel.keys() & alone
    named = program_table().arguments_of(*command).keys()
    assert command_table().arguments_of("local", *command).keys() - named <= OF_BEZEL


def test_reset_is_a_command_of_localcloud_alone() -> None:
    assert program_table().spec["commands"].keys() - {*SHARED} == {"reset"}
    assert "reset" not in command_table().spec["commands"]["local"]["commands"]


def test_help_of_localcloud_names_no_other_program(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ([], *([name] for name in program_table().spec["commands"]), ["fault", "add"]):
        with pytest.raises(SystemExit) as ended:
            main([*command, "--help"])
        assert ended.value.code == 0
        assert "bezel" not in capsys.readouterr().out.replace("(default: bezel-local)", "")


@pytest.mark.slow
def test_help_imports_neither_the_cloud_nor_its_libraries() -> None:
    code = (
        "import sys, contextlib\n"
        "from bezel_localcloud.command.main import main\n"
        "with contextlib.suppress(SystemExit): main(['--help'])\n"
        "print(*sorted({name.partition('.')[0] for name in sys.modules} & "
        "{'httpx', 'starlette', 'uvicorn', 'cryptography', 'asyncio', 'bezel'}))\n"
        "print('bezel_localcloud.cloud' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert ran.stdout.splitlines()[-2:] == ["", "False"]


def test_folder_is_the_nearest_one_above(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    below = tmp_path / "project" / "deep"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    own_folder = tmp_path / "project" / ".localcloud"
    own_folder.mkdir()
    users = tmp_path / "state" / "bezel" / "localcloud"
    assert Program().default_directory() == users  # an empty folder of that name is not localcloud's
    with using(own_folder):
        pass
    assert Program().default_directory() == own_folder
    assert BezelLocal().default_directory() == users  # no Pulumi project is around


@pytest.mark.parametrize(
    ("program", "repair"),
    [
        (Program(), "add --server vllm, or leave"),
        (BezelLocal(), "add SERVER=vllm (--server vllm), or leave"),
    ],
)
def test_repairs_are_in_the_words_of_the_program(program: Program, repair: str, tmp_path: Path) -> None:
    from bezel_base.errors import UserError
    from bezel_localcloud.command.cloud import LocalCloud

    with pytest.raises(UserError) as raised:
        LocalCloud(program, tmp_path, model=tmp_path).check_server()
    assert repair in str(raised.value)
    with pytest.raises(UserError) as raised:
        LocalCloud(program, tmp_path / "none").running()
    assert f"`{program.typed} start`" in str(raised.value)
