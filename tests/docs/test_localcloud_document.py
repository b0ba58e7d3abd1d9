"""docs/localcloud.md shows what is served, and its commands, options and fixtures work."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from bezel.cli.command_table import command_table
from bezel.cli.main import parse
from bezel_localcloud import PROGRAM, clients, pytest_plugin
from bezel_localcloud.command.table import program_table
from bezel_localcloud.http.methods import served_methods
from tests.support.docs.markdown import ROOT, after, between, blocks
from tools.docs.localcloud import READERS, SAMPLE, served_table, tables

DOCUMENT = ROOT / "docs" / "localcloud.md"
SHARED = frozenset({"serve", "start", "stop", "status", "env", "token", "fault"})
FIXTURE = "run by tests/docs/test_localcloud_document.py"


def test_the_tables_are_made_from_what_is_served() -> None:
    shown = between(DOCUMENT, "made by: .venv/bin/python -m tools.docs.localcloud")
    assert shown == tables(), "run `.venv/bin/python -m tools.docs.localcloud --write`"


def test_every_served_method_is_in_the_table_and_every_api_has_an_endpoint() -> None:
    text = served_table()
    for method in served_methods().values():
        api, *resource, name = method.id.split(".")
        assert re.search(rf"\| `{re.escape('.'.join(resource))}` \| [\w, ]*\b{name}\b", text), method.id
        assert f"{api}.googleapis.com" in clients.api_names(), method.id
    assert set(re.findall(r"`(\w+\.googleapis\.com)`", text)) == set(clients.api_names())


def test_every_variable_has_a_reader_and_every_reader_a_variable() -> None:
    names = clients.environment(SAMPLE, {})
    for pattern in READERS:
        assert any(re.fullmatch(pattern, name) for name in names), pattern


@pytest.mark.slow
def test_every_command_of_the_page_is_one() -> None:
    texts = [*blocks(DOCUMENT, "sh"), *(step["run"] for step in yaml.safe_load(blocks(DOCUMENT, "yaml")[0]))]
    commands = re.findall(r"(?:^|\()localcloud ([^\n)|>]+)", "\n".join(texts), re.MULTILINE)
    commands += re.findall(r"`localcloud ([^`]+)`", DOCUMENT.read_text())
    assert len(commands) > 10
    for command in commands:
        arguments = shlex.split(command.replace("PID", "1"))
        if arguments != ["fault"]:  # where the group is meant
            program_table().parser(PROGRAM).read(arguments)
        if arguments[0] in SHARED and "--parent" not in arguments and arguments != ["fault"]:
            parse(["local", *arguments])


def test_the_options_in_the_table_are_those_of_serve() -> None:
    rows = re.findall(r"^\| `(--[^`]+)` \|", DOCUMENT.read_text(), re.MULTILINE)
    shown = {word for row in rows for word in row.split() if word.startswith("--")}
    assert shown == {name for name in program_table().arguments_of("serve") if name.startswith("--")}
    assert shown - {"--parent", "--project"} == command_table().arguments_of("local", "serve").keys()


def test_the_options_in_the_table_are_those_of_pytest() -> None:
    rows = re.findall(r"^\| (`localcloud_[^|]+) \|", DOCUMENT.read_text(), re.MULTILINE)
    shown = {word for row in rows for word in re.findall(r"localcloud_\w+", row)}
    added = pytest.Parser(_ispytest=True)
    pytest_plugin.pytest_addoption(added)
    assert shown == {*added._inidict}


# Client of the table -> the programs that run what its row says, as it is written there.
PROGRAMS = {
    "Python": ("clients/test_serve.py", "clients/programs/google_kms.py"),
    "Go": ("clients/go/google_storage/main.go", "clients/go/google_go/main.go"),
    "Node.js": (
        "clients/programs/storage_node.cjs",
        "clients/programs/external_account.cjs",
        "clients/programs/google_node.cjs",
    ),
    "Java": ("clients/programs/GoogleJava.java",),
    "gcloud": ("clients/test_serve.py", "clients/programs/storage_commands.py"),
    "gsutil": ("clients/test_storage_clients.py",),
    "rclone": ("clients/programs/storage_commands.py",),
    "gcsfs": ("clients/programs/storage_gcsfs.py", "../packages/localcloud/bezel_localcloud/clients.py"),
}
NOT_CODE = {"env", "gcloud run", "api_endpoint", "serve --tls"}


def row_words(text: str) -> list[str]:
    """The names in a piece of code that a program must have too: all but addresses, and what stands in quotes."""
    return re.findall(r"\w+", re.sub(r'http://[\w.:/]+|["\']', " ", text.replace("New...REST", "REST")))


def test_the_code_in_each_client_s_row_is_what_a_program_of_the_tests_runs() -> None:
    table = re.search(r"^\| client \| storage \|.*?\n\n", DOCUMENT.read_text(), re.MULTILINE | re.DOTALL)
    assert table is not None
    rows = [line.strip("| ").split(" | ") for line in table[0].splitlines()[2:] if line]
    assert {row[0] for row in rows} == PROGRAMS.keys()
    for name, *cells in rows:
        text = "\n".join((ROOT / "tests" / file).read_text() for file in PROGRAMS[name])
        for code in re.findall(r"`([^`]+)`", " ".join(cells)):
            missing = [word for word in row_words(code) if word not in text]
            assert code in NOT_CODE or not missing, (name, code, missing)
    assert [word for word in row_words("option.WithNothing") if word not in "option"] == ["WithNothing"]


@pytest.mark.slow
def test_the_fixture_works_as_it_is_shown(tmp_path: Path) -> None:
    (tmp_path / "test_shown.py").write_text(after(DOCUMENT, FIXTURE))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", str(tmp_path)]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
