"""`localcloud` in processes of its own: served, started, pointed at, made to fail, reset, stopped; and mistakes."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from bezel_base.loopback.plain_http import NO_TLS
from bezel_base.process_status import has_ended
from bezel_localcloud import control
from bezel_localcloud.core.files.locks import hold_lock
from bezel_localcloud.core.paths import Endpoint, Paths
from localcloud_support.command_process import (
    LOCALCLOUD,
    SECONDS,
    ServeProcess,
    localcloud_here,
    run_localcloud,
    variables,
)
from localcloud_support.kept_port import kept_port

pytestmark = pytest.mark.slow  # whole processes
BUCKETS = "/storage/v1/b"
Serve = Callable[..., ServeProcess]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """A function that starts one in this test's folder; all are ended afterwards."""
    started: list[ServeProcess] = []

    def start(*options: str) -> ServeProcess:
        started.append(ServeProcess(tmp_path, *options))
        return started[-1]

    yield start
    for one in started:
        if not has_ended(one.pid):
            one.end(signal.SIGKILL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder in which `localcloud start --dir cloud` has been typed."""
    place = tmp_path_factory.mktemp("started")
    started = run_localcloud(place, "start", "--dir", "cloud", "--speed", "500")
    assert started.returncode == 0, started.stderr
    yield place
    stopped = run_localcloud(place, "stop", "--dir", "cloud")
    assert (stopped.returncode, stopped.stderr) == (0, "")
    assert control.status(place / "cloud") is None


def request(report: dict[str, str], token: str, method: str, path: str, **named: object) -> httpx.Response:
    headers = {"Authorization": f"Bearer {token}"}
    with httpx.Client(base_url=report["base"], headers=headers, trust_env=False, verify=NO_TLS) as client:
        return client.request(method, path, **named)  # type: ignore[arg-type]


def test_serve_ends_with_a_signal_and_a_folder_keeps_project_and_data(serve: Serve, tmp_path: Path) -> None:
    first = serve("--dir", "cloud", "--project", "my-project", "--enable", "iam")
    assert first.report["project"] == "my-project"
    token = localcloud_here(tmp_path, "token", "--dir", "cloud").stdout.strip()
    accounts = request(first.report, token, "GET", "/iam/v1/projects/my-project/serviceAccounts").json()["accounts"]
    assert "deployer@my-project.iam.gserviceaccount.com" in {account["email"] for account in accounts}
    assert "bezel-local" not in json.dumps(accounts)
    made = request(first.report, token, "POST", BUCKETS, params={"project": "my-project"}, json={"name": "kept"})
    assert made.is_success
    assert first.end(signal.SIGINT) == (0, "")
    with kept_port(first.report["base"]):
        started = localcloud_here(tmp_path, "start", "--dir", "cloud")
    assert started.returncode == 0, started.stderr
    assert "  project   my-project\n" in localcloud_here(tmp_path, "status", "--dir", "cloud").stdout
    assert request(first.report, token, "GET", "/iam/v1/projects/my-project/serviceAccounts").is_success
    other = localcloud_here(tmp_path, "start", "--dir", "cloud", "--project", "other-project")
    assert other.returncode == 2
    assert "holds the project my-project" in other.stderr
    assert localcloud_here(tmp_path, "stop", "--dir", "cloud").returncode == 0
    with kept_port(first.report["base"]):
        again = serve("--dir", "cloud")
    assert (again.report["project"], again.report["base"]) == ("my-project", first.report["base"])
    assert request(again.report, token, "GET", f"{BUCKETS}/kept").is_success
    assert again.end(signal.SIGTERM) == (0, "")


def test_start_prepares_the_project_as_serve_does(tmp_path: Path) -> None:
    bucket = tmp_path / "seed" / "started-bucket"
    bucket.mkdir(parents=True)
    (bucket / "first").write_text("one")
    arguments = ("start", "--dir", "cloud", "--enable", "secretmanager", "--seed", "seed")
    try:
        started = localcloud_here(tmp_path, *arguments)
        assert started.returncode == 0, started.stderr
        endpoint = Endpoint.read(tmp_path / "cloud")
        assert endpoint is not None
        token, report = control.access_token(endpoint), {"base": endpoint.base}
        assert request(report, token, "GET", f"/secretmanager/v1/projects/{endpoint.project}/secrets").is_success
        assert request(report, token, "GET", f"{BUCKETS}/started-bucket/o/first?alt=media").text == "one"
        # One that runs is prepared too, and what is there stays.
        (bucket / "first").write_text("another")
        (bucket / "second").write_text("two")
        assert localcloud_here(tmp_path, *arguments).returncode == 0
        assert Endpoint.read(tmp_path / "cloud") == endpoint
        assert request(report, token, "GET", f"{BUCKETS}/started-bucket/o/first?alt=media").text == "one"
        assert request(report, token, "GET", f"{BUCKETS}/started-bucket/o/second?alt=media").text == "two"
        # A refusal does not end one that ran before.
        (tmp_path / "seed" / "No_Bucket!").mkdir()
        refused = localcloud_here(tmp_path, *arguments)
        assert (refused.returncode, control.status(tmp_path / "cloud")) == (1, endpoint)
    finally:
        control.stop(tmp_path / "cloud")


def test_start_that_cannot_prepare_leaves_nothing_running(tmp_path: Path) -> None:
    (tmp_path / "seed" / "No_Bucket!").mkdir(parents=True)
    refused = localcloud_here(tmp_path, "start", "--dir", "cloud", "--seed", "seed")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "cannot be copied to gs://No_Bucket!" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert control.status(tmp_path / "cloud") is None


def test_start_says_which_command_it_waits_for(tmp_path: Path) -> None:
    layout = Paths(tmp_path / "cloud")
    layout.create()
    with hold_lock(layout.use_lock, 0, AssertionError):
        pass  # a folder of localcloud's
    with (
        hold_lock(layout.start_lock, 0, AssertionError),
        subprocess.Popen(
            [LOCALCLOUD, "start", "--dir", "cloud"],
            cwd=tmp_path,
            env=variables(tmp_path),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        ) as process,
    ):
        assert process.stderr is not None
        line = process.stderr.readline()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=SECONDS)
    expected = f"another command starts or stops localcloud in {layout.root}: waiting for it, for at most 90 s\n"
    assert line == expected
    assert process.returncode == 128 + signal.SIGINT
    assert control.status(layout.root) is None


def test_data_lie_in_the_state_folder_of_the_user(serve: Serve, tmp_path: Path) -> None:
    first = serve()
    assert first.report["directory"] == str(tmp_path / ".local/state/bezel/localcloud")
    assert run_localcloud(tmp_path, "stop").returncode == 0
    assert first.wait() == (0, "")


def test_serve_ends_with_the_process_that_it_was_given(serve: Serve) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as parent:
        first = serve("--temporary", "--parent", str(parent.pid))
        folder = Path(str(first.report["directory"]))
        parent.kill()
    assert first.wait() == (0, "")
    assert not folder.exists()


def test_a_second_serve_names_the_command_that_stops_the_first(serve: Serve, tmp_path: Path) -> None:
    first = serve("--dir", "cloud")
    code, errors = serve("--dir", "cloud").wait()
    assert code == 1
    assert f"`localcloud stop --dir {tmp_path / 'cloud'}`" in errors
    assert f"(process {first.pid}, {first.report['base']})" in errors


def test_status_and_env_point_clients_at_it(folder: Path) -> None:
    status = localcloud_here(folder, "status", "--dir", "cloud").stdout
    assert f'eval "$(localcloud env --dir {folder / "cloud"})"' in status
    endpoint = Endpoint.read(folder / "cloud")
    assert endpoint is not None
    as_json = json.loads(localcloud_here(folder, "env", "--dir", "cloud", "--format", "json").stdout)
    assert as_json["API_ENDPOINT_OVERRIDE"] == endpoint.base
    lines = localcloud_here(folder, "env", "--dir", "cloud").stdout
    shell = ["/bin/sh", "-c", f'{lines}\nprintf %s "$GOOGLE_APPLICATION_CREDENTIALS|$GOOGLE_CREDENTIALS"']
    ran = subprocess.run(
        shell, env={"GOOGLE_CREDENTIALS": "own"}, capture_output=True, text=True, timeout=60, check=True
    )
    assert ran.stdout == f"{folder / 'cloud' / 'credentials.json'}|"


def test_token_gives_an_identity_for_a_url(folder: Path) -> None:
    access = localcloud_here(folder, "token", "--dir", "cloud").stdout.strip()
    identity = localcloud_here(folder, "token", "--dir", "cloud", "https://service.example").stdout.strip()
    assert access.count(".") == identity.count(".") == 2
    assert access != identity


def test_a_fault_is_added_shown_and_cleared(folder: Path) -> None:
    place = ("--dir", "cloud")
    added = localcloud_here(folder, "fault", "add", *place, "slow-start", "factor=3")
    assert added.stdout.startswith("active: slow-start factor=3.0\n")
    assert "until `localcloud fault clear slow-start`." in added.stdout
    assert localcloud_here(folder, "fault", "show", *place).stdout == "slow-start factor=3.0\n"
    assert localcloud_here(folder, "fault", "clear", *place, "slow-start").stdout == "cleared: slow-start\n"
    assert localcloud_here(folder, "fault", "show", *place).stdout == "no active faults\n"


def test_token_tells_of_the_fault_that_refuses_it(folder: Path) -> None:
    place = ("--dir", "cloud")
    localcloud_here(folder, "fault", "add", *place, "clock-skew", "seconds=7200")
    refused = localcloud_here(folder, "token", *place)
    localcloud_here(folder, "fault", "clear", *place)
    assert refused.returncode == 1
    assert "the token endpoint responded 400" in refused.stderr
    assert "clear the fault that `localcloud fault show` lists" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_reset_begins_a_new_project_at_the_same_address(folder: Path) -> None:
    endpoint = Endpoint.read(folder / "cloud")
    assert endpoint is not None
    token, report = control.access_token(endpoint), {"base": endpoint.base}
    made = request(report, token, "POST", BUCKETS, params={"project": endpoint.project}, json={"name": "gone"})
    assert made.is_success
    ended = localcloud_here(folder, "reset", "--dir", "cloud")
    assert (ended.returncode, ended.stdout) == (0, f"localcloud at {endpoint.base} serves a new project\n")
    assert request(report, token, "GET", f"{BUCKETS}/gone").status_code == 404
    assert control.inventory(endpoint) == {}
    assert Endpoint.read(folder / "cloud") == endpoint


def _taken_port() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield str(listener.getsockname()[1])


taken_port = pytest.fixture(_taken_port)

MISTAKES = {
    "an unknown command": (("sevre",), 2, "no command is called 'sevre'; did you mean serve?"),
    "an unknown option": (("serve", "--enabel", "run"), 2, "did you mean --enable"),
    "an unknown API": (("serve", "--dir", "new", "--enable", "rnu"), 2, "localcloud does not serve this API"),
    "a port that is none": (("serve", "--port", "70000"), 2, "expected a port, from 0 to 65535"),
    "a port that is taken": (("serve", "--dir", "new", "--port", "TAKEN"), 1, "another process listens on it"),
    "a speed of zero": (("start", "--dir", "new", "--speed", "0"), 2, "expected a finite number above 0"),
    "a process that is not there": (("serve", "--dir", "new", "--parent", "2147483647"), 2, "--parent = 2147483647"),
    "a process id that is too large": (("serve", "--dir", "new", "--parent", "99999999999"), 2, "no process has such"),
    "an id that no project has": (("serve", "--dir", "new", "--project", "P"), 2, "expected 6 to 30 lowercase"),
    "a folder of something else": (("serve", "--dir", "full"), 2, "is not empty and not localcloud's"),
    "a file as the folder": (("start", "--dir", "full/file"), 2, "full/file"),
    "two places for the data": (("serve", "--dir", "new", "--temporary"), 2, "not allowed with argument --dir"),
    "a folder without a model": (("start", "--dir", "new", "--server", "vllm", "--model", "full"), 2, "no config.json"),
    "a word for no fault, with nothing that runs": (("fault", "add", "--dir", "new", "slow-strat"), 2, "slow-strat"),
    "a folder of buckets for a start": (("start", "--dir", "new", "--seed", "none"), 2, "there is no such folder"),
    "a file that is in no bucket": (("start", "--dir", "new", "--seed", "full"), 2, "file would be in no bucket"),
    "a folder of buckets that is none": (("serve", "--dir", "new", "--seed", "none"), 2, "there is no such folder"),
    "a model of the simulated server": (("start", "--dir", "new", "--model", "full"), 2, "add --server vllm"),
    "nothing that runs": (("env", "--dir", "new"), 1, "start it: `localcloud start`"),
    "an unknown fault": (("fault", "add", "--dir", "RUNNING", "slow-strat"), 2, "`localcloud fault list` explains"),
    "a parameter without a value": (("fault", "add", "--dir", "RUNNING", "slow-start", "factor"), 2, "factor=VALUE"),
    "a fault that is not active": (("fault", "clear", "--dir", "RUNNING", "slow-start"), 1, "is not active"),
}


@pytest.mark.wide_except("an unknown option", "a port that is taken", "a folder of something else")
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_told_with_its_repair(mistake: str, tmp_path: Path, folder: Path, taken_port: str) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    arguments, code, message = MISTAKES[mistake]
    placed = [{"TAKEN": taken_port, "RUNNING": str(folder / "cloud")}.get(word, word) for word in arguments]
    # What listens before it is refused needs a process of its own.
    run = run_localcloud if taken_port in placed else localcloud_here
    ended = run(tmp_path, *placed)
    assert (ended.returncode, ended.stdout) == (code, "")
    assert message in ended.stderr
    assert "Traceback" not in ended.stderr
    assert control.status(tmp_path / "new") is None


def test_serve_to_a_reader_that_has_gone_ends(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [LOCALCLOUD, "serve", "--dir", "cloud"]
    ended = subprocess.run(
        command, cwd=tmp_path, env=variables(tmp_path), stdout=writing, stderr=subprocess.PIPE, timeout=60, check=False
    )
    os.close(writing)
    assert ended.returncode != 0
    assert b"Traceback" not in ended.stderr
    assert control.status(tmp_path / "cloud") is None
