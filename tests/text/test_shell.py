"""Commands that a message gives to paste: each value stays one word of the shell, and no code of Markdown ends."""

import ast
import base64
import html
import itertools
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from base_support.shell import HOSTILE, one_line, words_of
from bezel.engine.events.denied_permissions import missing_roles
from bezel.gitops.comment.sections import section
from bezel.gitops.login.causes import account_refused
from bezel.gitops.login.settings import LoginSettings
from bezel_base.text.markdown import prose
from bezel_base.text.shell import shell_word, shell_word_for_make
from tests.support.source_nodes import nodes_of

PROJECT = Path(__file__).parents[2]


LOGIN = LoginSettings(
    "projects/1/locations/global/workloadIdentityPools/forge/providers/forge", "deploy@p.iam.gserviceaccount.com", "p"
)


@pytest.mark.skipif(shutil.which("make") is None, reason="GNU make is missing")
@pytest.mark.parametrize(
    "value", ["l4-qat", "$(shell touch hacked)", "x'; touch hacked; '", "$(touch hacked)", "a$b", "$$"]
)
def test_a_recipe_of_the_makefile_gets_a_name_and_no_code(value: str, tmp_path: Path) -> None:
    for name in ("Makefile", "uv.lock"):
        (tmp_path / name).write_bytes((PROJECT / name).read_bytes())
    program = tmp_path / "args"
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$@" >seen\n')
    program.chmod(0o755)
    command = f"make up setup= LOCAL=./args PYTHON=: STACK={shell_word_for_make(value)}"
    subprocess.run(["sh", "-c", command], cwd=tmp_path, capture_output=True, timeout=60, check=True)
    assert (tmp_path / "seen").read_text().splitlines()[:2] == ["up", value]
    assert not (tmp_path / "hacked").exists()


def commands_in(text: str) -> list[str]:
    """Commands between the backticks of a message."""
    command = re.compile(r"(?:\.venv/bin/)?(?:bezel|gcloud|pulumi) ")
    return [html.unescape(part) for part in re.split(r"`|</?code>", text) if command.match(html.unescape(part))]


@pytest.mark.parametrize("value", [value for value in HOSTILE if value.strip()])
def test_no_repair_runs_what_a_branch_or_a_stack_is_called(value: str, tmp_path: Path) -> None:
    document = {"kind": "rehearsal", "stack": value, "verdict": "failed", "project": "p"}
    claims = base64.urlsafe_b64encode(json.dumps({"sub": value}).encode()).decode()
    texts = [
        str(account_refused(LOGIN, 403, "denied", f"e30.{claims}.x")),
        *missing_roles(["Permission 'run.services.get' denied on resource 'x'"], f"{value}@p.iam"),
        section(document),
        prose(f"run `bezel ci lock {shell_word(value)} --show`", 500),
    ]
    commands = [command for text in texts for command in commands_in(text)]
    by_command = {command: words_of(command, tmp_path) for command in dict.fromkeys(commands)}
    whole = [command for command in by_command if any(one_line(value).strip() in word for word in by_command[command])]
    assert len(whole) == 4, by_command
    assert not any("hacked" in command for command in by_command if command not in whole)


# Beginnings of commands; a text is scanned between its backticks, or from the command on where it has none.
_COMMAND = re.compile(
    r"(?:^|(?<=[\s`'\"(:]))(?:\.venv/bin/)?(?:gcloud [a-z]+|bezel (?:ci|init|local|deploy|destroy|recover|status"
    r"|restart|secret|tpu|weights|zones|quota|proxy|container|scale|plan|logs|bench|catalog|mcp) |pulumi (?:up|destroy"
    r"|cancel|stack|preview|refresh|config|import|state|login) |git (?:push|fetch|clone|checkout) |curl |gh [a-z]+ "
    r"|gsutil [a-z-]+ gs|docker (?:login|pull|push|run) |make (?:up|down|outputs|preview|recover) |export [A-Z])"
)
_QUOTES = {"shell_word", "shell_word_for_make", "shlex.quote", "shlex.join", "command"}
# Own words: constants, and options that are quoted where they are made.
_OWN = re.compile(r"_?[A-Z_]+(?:\[.*\])?|kind|option")
_PACKAGES = ("bezel", "bootstrap", "components", "packages", "policies", "services", "smoke", "stacks")


def holes(path: Path) -> Iterator[tuple[int, str]]:
    """Line and expression of each value that a text puts into a command without a quote."""
    source = path.read_text(encoding="utf-8")
    if not _COMMAND.search(source):
        return
    for node in nodes_of(ast.parse(source)):
        if not isinstance(node, ast.JoinedStr):
            continue
        text, values = "", []
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                values.append((len(text), part.value))
            text += part.value if isinstance(part, ast.Constant) else "\0"
        for start, end in _spans(text):
            for place, value in values:
                is_quoted = isinstance(value, ast.Call) and ast.unparse(value.func) in _QUOTES
                if start < place < end and not is_quoted and "shell_word" not in ast.unparse(value):
                    yield node.lineno, ast.unparse(value)


def _spans(text: str) -> Iterator[tuple[int, int]]:
    if "`" not in text:
        match = _COMMAND.search(text)
        if match:
            yield match.start(), len(text)
        return
    for start, end in itertools.pairwise([-1, *(match.start() for match in re.finditer("`", text)), len(text)]):
        match = _COMMAND.match(text, start + 1)
        if match:
            yield start + 1, end


@pytest.mark.slow
def test_every_command_in_a_text_quotes_the_values_in_it() -> None:
    unquoted, commands = {}, 0
    for package in _PACKAGES:
        for path in sorted((PROJECT / package).rglob("*.py")):
            source = path.read_text(encoding="utf-8")
            commands += len(re.findall(r"\bshell_word(?:_for_make)?\(", source))
            bare = [(line, value) for line, value in holes(path) if not _OWN.fullmatch(value)]
            if bare:
                unquoted[str(path.relative_to(PROJECT))] = bare
    assert unquoted == {}
    assert commands > 100


def test_the_scan_finds_a_value_without_a_quote(tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    lines = ('a = f"run `bezel deploy {stack_name}` or `bezel deploy {shell_word(stack_name)}`"', 'b = f"{x} `y {x}`"')
    file.write_text("\n".join(lines))
    assert list(holes(file)) == [(1, "stack_name")]
