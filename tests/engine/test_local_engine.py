"""The engine on localcloud: unchanged files in the clone, plugins in place, nothing secret in the open."""

import importlib.metadata
import io
import json
import os
import socket
import subprocess
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from bezel.engine.local.engine import LocalEngine
from bezel.engine.local.place import Provider
from bezel.engine.local.project_places import run_folder
from bezel.engine.project.project import Project, ProjectError
from bezel.engine.recover.recover import Recovered
from bezel.engine.run.command import pulumi_cli
from bezel.engine.run.record import LastRun
from bezel_base.errors import UserError
from tests.support.cli.refused import NETWORK, refused_create

pytestmark = pytest.mark.slow

URN = "urn:pulumi:one::bezel::gcp:of/nobody:Nobody::nobody"
TYPE = "gcp:of/nobody:Nobody"
MADE = {"op": "create", "urn": URN, "type": TYPE, "new": {"urn": URN, "custom": True, "type": TYPE, "inputs": {}}}
STACK = "config:\n  bezel:region: us-east4\n"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    folder = tmp_path / "clone"
    folder.mkdir()
    (folder / "Pulumi.yaml").write_text("name: bezel\nruntime: python\n")
    (folder / "Pulumi.one.yaml").write_text(STACK)
    return Project(folder)


def engine(project: Project, tmp_path: Path, provider: Provider = "stand-in") -> LocalEngine:
    folder = tmp_path / "cloud"
    folder.mkdir(exist_ok=True)
    return LocalEngine(project, folder, {"GOOGLE_PROJECT": "bezel-local"}, provider)


def test_the_stack_file_stays_as_it_was_and_the_copy_gets_the_salt(project: Project, tmp_path: Path) -> None:
    made = engine(project, tmp_path)
    made.prepare("one")
    assert project.stack_file("one").read_text() == STACK
    assert made.stack_copy("one").read_text().startswith(STACK + "encryptionsalt:")


def test_a_changed_stack_file_reaches_the_copy_and_the_salt_stays(project: Project, tmp_path: Path) -> None:
    made = engine(project, tmp_path)
    made.prepare("one")
    salt = made.stack_copy("one").read_text().removeprefix(STACK)
    project.stack_file("one").write_text(STACK.replace("us-east4", "europe-west4"))
    made.prepare("one")
    assert made.stack_copy("one").read_text() == STACK.replace("us-east4", "europe-west4") + salt


def test_a_salt_of_another_backend_does_not_reach_the_copy(project: Project, tmp_path: Path) -> None:
    """A salt of another backend in the stack file does not reach the copy."""
    made = engine(project, tmp_path)
    project.stack_file("one").write_text(f"{STACK}encryptionsalt: v1:of-another-backend\n")
    for _ in range(2):
        made.prepare("one")
        copy = made.stack_copy("one").read_text()
        assert (copy.count("encryptionsalt:"), "of-another-backend" in copy) == (1, False)


def test_only_the_owner_reads_the_passphrase_and_it_is_no_variable(project: Project, tmp_path: Path) -> None:
    made = engine(project, tmp_path)
    made.prepare("one")
    file = made.folder / "passphrase"
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.read_text() not in "".join(made.environment().values())


def test_a_kept_key_opens_with_its_passphrase_only_and_is_repaired(project: Project, tmp_path: Path) -> None:
    made = engine(project, tmp_path)
    made.prepare("one")
    if not [*made.place.keys.iterdir()]:
        pytest.skip("this CLI is the official release, which keeps no key")
    (key,) = made.place.keys.iterdir()
    assert "BEZEL_KEPT_KEYS" not in made.place.environment()  # which a user's shell takes over
    assert (key.stat().st_mode & 0o777, made.place.keys.stat().st_mode & 0o777) == (0o600, 0o700)

    def set_secret(**variables: str) -> "subprocess.CompletedProcess[str]":
        command = [pulumi_cli(), "config", "set", "--secret", "--stack", "one", "bezel:a", "b"]
        environment = os.environ | made.environment() | variables
        folder = made.stack_copy("one").parent
        return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)

    content = key.read_bytes()
    for damaged in (bytes(len(content)), b""):
        key.write_bytes(damaged)
        assert set_secret().returncode == 0
        assert [(file, file.read_bytes()) for file in made.place.keys.iterdir()] == [(key, content)]
    refused = set_secret(PULUMI_CONFIG_PASSPHRASE="another")
    assert refused.returncode != 0
    assert "incorrect passphrase" in refused.stderr
    assert [*made.place.keys.iterdir()] == [key]


@pytest.mark.parametrize(("provider", "installed"), [("stand-in", True), ("real", False)])
def test_the_stand_ins_lie_under_the_sdks_version_by_default(
    project: Project, tmp_path: Path, provider: Provider, installed: bool
) -> None:
    """The stand-ins lie under the SDK's version unless the real ones are requested."""
    made = engine(project, tmp_path, provider)
    made.prepare("one")
    version = importlib.metadata.version("pulumi-gcp")
    home = Path(made.environment()["PULUMI_HOME"])
    plugin = home / "plugins" / f"resource-gcp-v{version}" / "pulumi-resource-gcp"
    assert os.access(plugin, os.X_OK) is installed
    assert ("PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION" in made.environment()) is installed


def lock_file(made: LocalEngine, pid: int, command: int) -> Path:
    """A stack that an engine has locked, and the command that started it."""
    folder = made.folder / "state" / ".pulumi" / "locks" / "organization" / "bezel" / "one"
    folder.mkdir(parents=True, exist_ok=True)
    lock = {"pid": pid, "username": "u", "hostname": socket.gethostname(), "timestamp": "2026-11-23T08:00:00Z"}
    (folder / "x.json").write_text(json.dumps(lock))
    record = run_folder(made.folder, "bezel", "one")
    LastRun(record).mark()
    (record / "command").write_text(str(command))
    return folder / "x.json"


@pytest.mark.parametrize("command", ["up", "refresh", "destroy"])
def test_a_stack_on_which_another_run_goes_on_keeps_its_lock(project: Project, tmp_path: Path, command: str) -> None:
    """A stack on which another run goes on is refused and keeps its lock."""
    made = engine(project, tmp_path)
    lock = lock_file(made, os.getpid(), os.getpid())
    for attempt in (lambda: made.run(command, "one"), lambda: made.recover("one")):
        with pytest.raises(UserError, match=rf"process {os.getpid()}, since 2026-11-23T08:00:00.*\n.*kill -INT"):
            attempt()
    assert lock.exists()


class EndingOutput(io.StringIO):
    """An output at whose first line a process is ended."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        super().__init__()
        self._process = process

    def write(self, text: str) -> int:
        self._process.terminate()
        return super().write(text)


def test_an_engine_whose_command_was_killed_is_awaited_and_unlocked(project: Project, tmp_path: Path) -> None:
    """An engine whose command was killed is waited for and then unlocked."""
    made = engine(project, tmp_path)
    made.prepare("one")
    killed = subprocess.Popen(["true"])
    killed.wait(60)
    with subprocess.Popen(["sleep", "60"]) as ending, redirect_stdout(EndingOutput(ending)) as output:
        lock = lock_file(made, ending.pid, killed.pid)
        assert made.recover("one") == Recovered()
    assert not lock.exists()
    message = f"the last run on one lost its command and is ending (process {ending.pid}): waiting for it"
    assert message in output.getvalue()


def test_a_stack_without_a_file_makes_nothing(project: Project, tmp_path: Path) -> None:
    made = engine(project, tmp_path)
    with pytest.raises(ProjectError):
        made.prepare("two")
    assert list(made.folder.iterdir()) == []


def test_what_exists_already_is_named_until_it_is_given_up(project: Project, tmp_path: Path) -> None:
    made = engine(project, tmp_path)
    refused_create(made.folder, "one")
    assert made.existing_resources("one") == [NETWORK]
    assert (made.forget_refused("one"), made.forget_refused("one")) == (1, 0)
    assert made.existing_resources("one") == []


def test_what_exists_already_stays_named_when_something_else_is_recovered(project: Project, tmp_path: Path) -> None:
    made = engine(project, tmp_path)
    made.prepare("one")
    refused_create(made.folder, "one", {"resourcePreEvent": {"metadata": MADE}})
    assert made.recover("one").checked == 1
    assert made.existing_resources("one") == [NETWORK]


def state_of(made: LocalEngine) -> Path:
    """The state of a stack that was made, cut as a full disk does it, with the whole one before it beside it."""
    file = made.folder / "state" / ".pulumi" / "stacks" / "bezel" / "one.json"
    file.with_name("one.json.bak").write_bytes(file.read_bytes())
    file.write_text("")
    return file


def test_a_cut_state_is_put_back_only_where_no_engine_is_about_to_write_it(project: Project, tmp_path: Path) -> None:
    made = engine(project, tmp_path)
    made.prepare("one")
    state = state_of(made)
    lock = lock_file(made, os.getpid(), os.getpid())
    with pytest.raises(UserError, match="is not a state of the engine"):
        made.outputs("one")
    assert state.read_text() == ""
    lock.unlink()
    assert made.outputs("one") == {}


def test_what_a_run_made_after_the_state_that_was_put_back_is_looked_for(
    project: Project, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = engine(project, tmp_path)
    made.prepare("one")
    refused_create(
        made.folder, "one", *({kind: {"metadata": MADE}} for kind in ("resourcePreEvent", "resOutputsEvent"))
    )
    state_of(made)
    made.outputs("one")
    assert "looks in the cloud for the later changes" in capsys.readouterr().err
    assert made.recover("one").checked == 1
