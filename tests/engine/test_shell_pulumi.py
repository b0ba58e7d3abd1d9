"""Plain `pulumi` after `bezel local env`: every command works, and no file of the checkout changes."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bezel.engine.local import shell_pulumi
from bezel.engine.local.engine import LocalEngine
from bezel.engine.project.project import Project
from tests.support.e2e import warm_python

CLI = Path(sys.executable).parent / "pulumi"
# As a person writes it: pulumi itself would write 1.1, and drop the comment.
STACK = "# A comment.\nconfig:\n  small:limit: 1.10\n"
FOREIGN = "encryptionsalt: v1:bm90IG91cnM=:v1:bm90IG91cnM=:bm90IG91cnM=\n"
PROGRAM = """
import pulumi
config = pulumi.Config()
pulumi.export("limit", config.get("limit"))
pulumi.export("hidden", pulumi.Output.secret("x"))
"""


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    folder = tmp_path / "clone"
    (folder / "below").mkdir(parents=True)
    runtime = {"name": "python", "options": {"toolchain": "uv", "virtualenv": ".venv"}}
    (folder / "Pulumi.yaml").write_text(json.dumps({"name": "small", "runtime": runtime}))
    for stack in ("one", "two"):
        (folder / f"Pulumi.{stack}.yaml").write_text(STACK)
    (folder / "__main__.py").write_text(PROGRAM)
    return folder


def content(folder: Path) -> dict[str, str]:
    """Every file of a folder but the environment and localcloud."""
    files = [file for file in folder.rglob("*") if file.is_file() and ".venv" not in file.parts]
    return {str(file.relative_to(folder)): file.read_text() for file in files if ".localcloud" not in file.parts}


def shell_of(clone: Path, cloud: Path) -> dict[str, str]:
    """The variables of a shell after `bezel local env`."""
    engine = LocalEngine(Project(clone), cloud, {"GOOGLE_PROJECT": "bezel-local"}).environment()
    variables = shell_pulumi.install(clone, cloud, "small")
    environment = {**os.environ, **engine, **variables}
    return environment | {"PATH": f"{Path(variables[shell_pulumi.VARIABLE]).parent}:{engine['PATH']}"}


# (folder, arguments, text of the answer); each works on what the ones before it left.
COMMANDS: list[tuple[str, str, str]] = [
    ("", "stack init one", "Created stack 'one'"),
    ("", "preview --stack one", "limit"),
    ("below", "preview --stack one", "limit"),
    ("", "preview --stack one --config-file Pulumi.one.yaml", "limit"),
    ("/", "-C CLONE preview --stack one --save-plan plan.json", "plan.json"),
    ("", "up --yes --skip-preview --stack one", "created"),
    ("", "refresh --yes --skip-preview --stack one", "Resources"),
    ("", "config set limit 2 --stack one", ""),
    ("", "config set --secret word hidden --stack one", ""),
    ("", "config get limit --stack one", "2"),
    ("", "config set-all --plaintext a=1 --stack one", ""),
    ("", "config rm a --stack one", ""),
    ("", "stack init two --copy-config-from one", "Created stack 'two'"),
    ("", "config cp limit --stack one --dest two", ""),
    ("", "config refresh --force --stack one", ""),
    ("", "stack select two", ""),
    ("below", "config get limit", "2"),
    ("", "stack history --stack one", "Version"),
    ("below", "stack export --stack one --file state.json", ""),
    ("below", "stack import --stack one --file state.json", "Import complete"),
    ("below", "stack graph --stack one graph.dot", "Wrote stack dependency graph"),
    ("", "stack rename three --stack two", "Renamed two to three"),
    ("", "stack change-secrets-provider passphrase --stack three", "Migrating"),
    ("", "stack rm three --yes", "has been removed"),
    ("", "cancel --yes --stack one", "canceled"),
    ("", "destroy --yes --skip-preview --remove --stack one", "configuration removed"),
]


# Those that deploy, set, write a file of the user's, and remove.
SOME = (
    "stack init one",
    "-C CLONE preview --stack one --save-plan plan.json",
    "up --yes --skip-preview --stack one",
    "config set limit 2 --stack one",
    "config get limit --stack one",
    "stack export --stack one --file state.json",
    "stack graph --stack one graph.dot",
    "destroy --yes --skip-preview --remove --stack one",
)


@pytest.mark.slow
@pytest.mark.parametrize(
    "commands",
    [
        pytest.param([command for command in COMMANDS if command[1] in SOME], id="some"),
        pytest.param(COMMANDS, id="all", marks=pytest.mark.wide),
    ],
)
def test_no_command_of_pulumi_changes_a_file_of_the_checkout(clone: Path, commands: list[tuple[str, str, str]]) -> None:
    warm_python.environment(clone / ".venv")
    shell = shell_of(clone, clone / ".localcloud") | warm_python.variables(clone)
    (clone / ".localcloud" / "passphrase").write_text("local")
    (clone / ".localcloud" / "state").mkdir()
    before = content(clone)
    written = ("plan.json", "state.json", "graph.dot")
    for folder, arguments, copies in commands:
        command = str(CLI) if folder == "below" else "pulumi"  # a shell may call it by its path too
        line = [word.replace("CLONE", str(clone)) for word in arguments.split()]
        run = subprocess.run(
            [command, *line], cwd=clone / folder, env=shell, capture_output=True, text=True, check=False, timeout=120
        )
        assert run.returncode == 0, (arguments, run.stdout, run.stderr)
        assert copies in run.stdout + run.stderr, (arguments, run.stdout)
        made = {name: text for name, text in content(clone).items() if not name.endswith(written)}
        assert made == before, arguments
    assert {"plan.json", "below/state.json", "below/graph.dot"} <= {*content(clone)}, (
        "files that a command writes are the user's"
    )


def test_a_copy_is_renewed_when_its_stack_file_changes_and_keeps_its_salt(clone: Path, tmp_path: Path) -> None:
    view = shell_pulumi.renew(clone, tmp_path / "cloud", "small")
    copy = view / "Pulumi.one.yaml"
    assert copy.read_text() == STACK
    copy.write_text(f"{STACK}  small:set: by-pulumi\nencryptionsalt: own\n")
    shell_pulumi.renew(clone, tmp_path / "cloud", "small")
    assert "by-pulumi" in copy.read_text()
    (clone / "Pulumi.one.yaml").write_text(
        STACK.replace("1.10", "1.20") + FOREIGN + "secretsprovider: gcpkms://theirs\n"
    )
    shell_pulumi.renew(clone, tmp_path / "cloud", "small")
    assert copy.read_text() == STACK.replace("1.10", "1.20") + "encryptionsalt: own\n"


def test_the_folder_links_what_the_project_has_and_nothing_that_is_gone(clone: Path) -> None:
    cloud = clone / ".localcloud"
    view = shell_pulumi.renew(clone, cloud, "small")
    assert {link.name for link in view.iterdir() if link.is_symlink()} == {"__main__.py", "below"}
    shutil.rmtree(clone / "below")
    (clone / "new.py").write_text("")
    shell_pulumi.renew(clone, cloud, "small")
    assert {link.name for link in view.iterdir() if link.is_symlink()} == {"__main__.py", "new.py"}
    assert not (view / "Pulumi.one.yaml").is_symlink()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("preview --save-plan=plan.json", "preview --save-plan=/clone/below/plan.json"),
        ("up --plan ../plan.json -s one", "up --plan /clone/plan.json -s one"),
        ("up -f --policy-pack a,/b", "up -f --policy-pack /clone/below/a,/b"),
        ("import -f list.json -o made.py", "import -f /clone/below/list.json -o /clone/below/made.py"),
        ("import --from x --generate-resources l.json", "import --from x --generate-resources /clone/below/l.json"),
        ("stack -s one graph ../g.dot --short-node-name", "stack -s one graph /clone/g.dot --short-node-name"),
        ("--color never stack graph --dot-fragment a g", "--color never stack graph --dot-fragment a /clone/below/g"),
        ("stack select graph", "stack select graph"),
        ("preview --config-file ../Pulumi.one.yaml", "preview --config-file /view/Pulumi.one.yaml"),
        ("preview --config-file ../other.yaml", "preview --config-file /clone/other.yaml"),
        ("config set a -- --file x", "config set a -- --file x"),
        ("stack export --file", "stack export --file"),
        ("--color always stack ls", "--color always stack ls"),
    ],
)
def test_files_are_those_of_the_users_folder_and_stack_files_the_copies(arguments: str, expected: str) -> None:
    made = shell_pulumi.with_paths(arguments.split(), Path("/clone/below"), Path("/clone"), Path("/view"))
    assert made == expected.split()


@pytest.mark.parametrize(
    ("arguments", "command"),
    [("preview -s one", "preview"), ("--color always stack ls", "stack"), ("-v 3 new x", "new"), ("--help", "")],
)
def test_the_command_is_found_behind_global_options(arguments: str, command: str) -> None:
    assert shell_pulumi.command_of(arguments.split()) == command
