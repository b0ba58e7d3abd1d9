"""An invalid command line is reported in two lines, by the command that it was for, or as JSON."""

import importlib
import importlib.metadata
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from bezel.cli.command_table import root_parser
from bezel.cli.main import main, parse
from bezel_base.command_line.parser import CARRIED, Parser

RUN = ("bench", "run", "--url", "http://127.0.0.1:1")
UP = ("local", "up", "l4-qat")
COPY = ("weights", "copy", "l4-qat")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((*RUN, "--usr", "8"), "bezel bench run: unrecognized argument: --usr 8; did you mean --users?"),
        (
            (*RUN, "--input-token=3"),
            "bezel bench run: unrecognized argument: --input-token=3; did you mean --input-tokens?",
        ),
        ((*RUN, "--zzz"), "bezel bench run: unrecognized argument: --zzz"),
        ((*RUN, "--request", "3"), "bezel bench run: unrecognized argument: --request 3; did you mean --requests?"),
        ((*RUN, "--users", "many"), "bezel bench run: argument --users: expected an integer, got 'many'"),
        ((*RUN, "--users", "1.5"), "bezel bench run: argument --users: expected an integer, got '1.5'"),
        ((*UP, "--deadline", "soon"), "bezel local up: argument --deadline: expected a number, got 'soon'"),
        (
            (*UP, "--deadline", "0"),
            "bezel local up: argument --deadline: expected a finite number above 0, got '0'",
        ),
        (
            (*UP, "--deadline", "nan"),
            "bezel local up: argument --deadline: expected a finite number above 0, got 'nan'",
        ),
        ((*UP, "--speed", "-1"), "bezel local up: argument --speed: expected a finite number above 0, got '-1'"),
        (
            (*COPY, "--deadline", "inf"),
            "bezel weights copy: argument --deadline: expected a finite number above 0, got 'inf'",
        ),
        (
            ("bench", "ab", "--start-seconds", "-1"),
            "bezel bench ab: argument --start-seconds: expected a finite number above 0, got '-1'",
        ),
        (("plan", "l4-qat", "l4-fp8"), "bezel plan: unrecognized argument: l4-fp8"),
        (("plan", "l4-qat", "--", "--diff"), "bezel plan: unrecognized argument: --diff"),
        (("local", "up"), "bezel local up: the following arguments are required: STACK"),
        ((*UP, "--dead", "3"), "bezel local up: unrecognized argument: --dead 3; did you mean --deadline?"),
        (("deply", "l4-qat"), "bezel: no command is called 'deply'; did you mean deploy?"),
        (("up",), "bezel: no command is called 'up'; did you mean deploy?"),
        (("bench", "rnu"), "bezel bench: no command is called 'rnu'; did you mean run?"),
        (("zzz",), "bezel: no command is called 'zzz'"),
        (("--errors", "yaml", "plan"), "bezel: argument --errors: invalid choice: 'yaml'; choose from text, json"),
        (("--errors", "jsno", "plan"), "bezel: argument --errors: invalid choice: 'jsno'; did you mean json?"),
        ((*UP, "x", "--", "--diff"), "bezel: arguments that are passed on must follow --: x precedes it"),
    ],
)
def test_a_mistake_is_reported_with_what_was_perhaps_meant(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str
) -> None:
    program, _, text = message.partition(": ")
    assert main(arguments) == 2
    assert capsys.readouterr().err == f"{message}\nAll options: {program} --help\n"
    if arguments[0] == "--errors":
        return
    assert main(["--errors", "json", *arguments]) == 2
    assert json.loads(capsys.readouterr().err) == {"title": program, "problems": [{"text": text}]}


def ended_code(arguments: Sequence[str]) -> object:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    return ended.value.code


@pytest.mark.parametrize("command", [(), ("plan",), ("bench", "run")])
def test_help_as_a_word_shows_what_the_option_shows(
    capsys: pytest.CaptureFixture[str], command: tuple[str, ...]
) -> None:
    codes = (ended_code(["help", *command]), ended_code([*command, "--help"]))
    shown = capsys.readouterr().out
    assert codes == (0, 0)
    assert shown[: len(shown) // 2] == shown[len(shown) // 2 :]
    assert shown.startswith("usage: " + " ".join(("bezel", *command)))


def test_a_call_without_a_command_shows_the_help_and_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended_code([]) == 2
    bare = capsys.readouterr()
    assert ended_code(["--help"]) == 0
    assert (bare.out, bare.err) == (capsys.readouterr().out, "")


def test_the_version_is_that_of_the_distribution(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended_code(["--version"]) == 0
    assert capsys.readouterr().out == f"bezel {importlib.metadata.version('bezel')}\n"


def test_what_is_right_is_read_whole() -> None:
    run = parse((*RUN, "--users", "8", "--input-tokens=3"))
    assert (run.command, run.users, run.input_tokens) == ("bench", 8, 3)
    up = parse((*UP, "--deadline", "3", "--", "--diff", "x"))
    assert (up.action, up.stack, up.deadline, up.pulumi) == ("up", "l4-qat", 3.0, ["--diff", "x"])
    assert not hasattr(up, "parser")


@pytest.mark.parametrize(
    ("arguments", "name", "value"),
    [
        (("query", "l4-qat", "--", "--stats"), "prompt", "--stats"),
        (("query", "--max-tokens", "3", "--", "l4-qat", "-5 + 3?"), "prompt", "-5 + 3?"),
        (("explain", "--", "-tp"), "subject", "-tp"),
        (("tpu", "describe", "--", "bezel-x"), "name", "bezel-x"),
    ],
)
def test_what_follows_the_dashes_is_a_value_where_nothing_is_passed_on(
    arguments: tuple[str, ...], name: str, value: str
) -> None:
    options = parse(arguments)
    assert (getattr(options, name), options.pulumi) == (value, [])


OUTSIDE = "there is no Pulumi.yaml in this folder or above"
JOB = (
    *("bench", "job", "--url", "http://127.0.0.1:1", "--tasks", "0", "--image", "i", "--bucket", "b"),
    *("--service-account", "a", "--job-region", "us-east4", "--project", "my-project"),
)


@pytest.mark.parametrize(
    ("arguments", "text", "code"),
    [
        (JOB, "--tasks = 0", 2),
        ((*JOB[:2], "--stack", "l4-qat", *JOB[4:]), OUTSIDE, 1),
        (("tpu", "list", "--project", "none"), OUTSIDE, 1),
        (("tpu", "list", "--project", "optional"), OUTSIDE, 1),
    ],
)
def test_a_command_needs_a_clone_by_its_kind_not_by_the_cloud_project(
    arguments: tuple[str, ...],
    text: str,
    code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == code
    assert text in capsys.readouterr().err


def test_no_option_takes_a_key_that_the_table_of_commands_sets() -> None:
    for parser in commands(root_parser()):
        assert not {action.dest for action in parser._actions} & {*CARRIED, "parser"}, parser.prog


def commands(parser: Parser) -> Iterator[Parser]:
    """The parsers of a command's subcommands, down to those that run."""
    parser.fill()
    if parser._subparsers is None:
        yield parser
    else:
        for command in parser._subparsers._group_actions[0].choices.values():
            yield from commands(command)


@pytest.mark.parametrize("command", [*commands(root_parser())], ids=lambda command: command.prog)
def test_every_command_has_a_function_and_explains_each_argument(command: Parser) -> None:
    names = command.prog.split()[1:]
    parents = [root_parser().fill()]
    for word in names[:-1]:
        parents.append(parents[-1]._subparsers._group_actions[0].choices[word].fill())
    run = next(run for parser in (command, *reversed(parents)) if (run := parser.get_default("run")))
    module, _, function = run.partition(":")
    assert callable(getattr(importlib.import_module(module), function))
    assert [action.dest for action in command._actions if not action.help] == []
    assert command.format_help().startswith(f"usage: {command.prog}")
