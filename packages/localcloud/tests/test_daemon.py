"""The daemon's life: started once, stopped whole, killed without loss, started again where it was."""

import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from bezel_base.loopback.listeners import free_port
from bezel_localcloud import control
from bezel_localcloud.core.files.logfile import LogFile
from bezel_localcloud.core.paths import fingerprint, package_folders
from localcloud_support.client import DEPLOYER, PARENT, SERVICES, Client, is_alive, plain, start_daemon, until
from localcloud_support.kept_port import kept_port

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def life(tmp_path_factory, daemon_forks):
    """A directory that was served once, with everything that a service needs in place."""
    directory = tmp_path_factory.mktemp("life")
    Client(daemon_forks.start(directory)).prepare()
    yield directory
    control.stop(directory)


@pytest.fixture
def run_daemon(life, daemon_forks):
    """A function that returns the directory's running daemon, else a new one: as `start_daemon`, and forked."""
    return lambda **options: control.status(life) or daemon_forks.start(life, **options)


def instance_of(client, name):
    return client.front(name).get("/").json()["pid"]


def processes_of(directory):
    """Processes that carry the directory in their environment, as every instance does."""
    mark = f"LOCALCLOUD_DIRECTORY={directory}".encode()
    pids = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark in (entry / "environ").read_bytes().split(b"\0"):
                pids.append(entry.name)
    return pids


def kill(endpoint):
    """Kill a daemon, which is no running one from then on: nothing waits for that."""
    os.kill(endpoint.pid, signal.SIGKILL)
    assert control.status(endpoint.directory) is None


def test_a_killed_daemon_s_lock_is_not_taken_for_a_running_one(life):
    """A killed daemon whose lock lives on is not taken for a running one."""
    killed = start_daemon(life)
    started = []
    with (life / "daemon.lock").open() as lock:
        os.kill(killed.pid, signal.SIGKILL)
        until(lambda: not is_alive(killed.pid))
        # As a child does that was forked right before.
        until(lambda: _locks(lock))
        assert control.status(life) is None
        waiting = threading.Thread(target=lambda: started.append(start_daemon(life)))
        waiting.start()
        waiting.join(0.5)
        assert not started
    waiting.join(60)
    assert started[0].pid != killed.pid
    assert Client(started[0]).get(SERVICES).is_success


def test_a_daemon_whose_directory_is_deleted_ends_with_all_that_it_started(own_daemon):
    endpoint = own_daemon()
    client = Client(endpoint)
    client.prepare()
    client.create("orphan", client.template("--x"), scaling={"minInstanceCount": 1})
    instance = instance_of(client, "orphan")
    # As `rm -rf` does, under a daemon that may write meanwhile.
    until(lambda: shutil.rmtree(endpoint.directory, ignore_errors=True) or not endpoint.directory.exists())
    until(lambda: not is_alive(endpoint.pid) and not is_alive(instance))


def test_a_daemon_whose_directory_was_made_anew_leaves_it_to_another(own_daemon):
    first = own_daemon()
    shutil.rmtree(first.directory, ignore_errors=True)
    second = own_daemon()
    assert second.pid != first.pid
    until(lambda: not is_alive(first.pid))
    assert Client(second).get("/localcloud/resources").is_success


def _locks(file) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def test_a_kill_loses_nothing_and_a_start_carries_on_at_the_same_addresses(life, run_daemon):
    endpoint = run_daemon()
    client = Client(endpoint)
    traffic = [{"type": "TRAFFIC_TARGET_ALLOCATION_TYPE_LATEST", "percent": 100, "tag": "now"}]
    client.create("kept", client.template("--x"), scaling={"minInstanceCount": 1}, traffic=traffic)
    before, pid = client.service("kept"), instance_of(client, "kept")
    inventory = control.inventory(endpoint)
    kill(endpoint)
    until(lambda: not is_alive(pid) and not is_alive(endpoint.pid))
    with kept_port(endpoint.base):
        again = start_daemon(life)
    assert (again.base, again.pid != endpoint.pid) == (endpoint.base, True)
    # The token from before the kill still holds, for the API and for the front; a tag keeps its address too.
    assert client.service("kept") == before
    assert before["trafficStatuses"][0]["uri"] not in {before["uri"], ""}
    assert control.inventory(again) == inventory
    assert instance_of(client, "kept") != pid
    client.remove("kept")


def test_a_deployment_under_way_is_finished_after_a_kill(life, run_daemon):
    control.stop(life)
    client = Client(run_daemon(speed=0.1))  # fifty seconds before the container starts
    begun = client.post(SERVICES, {"template": client.template()}, serviceId="begun").json()
    assert "done" not in begun
    assert client.service("begun")["reconciling"] is True
    killed = control.status(life)
    kill(killed)
    until(lambda: not is_alive(killed.pid))
    with kept_port(killed.base):
        run_daemon()
    operation = until(lambda: (o := client.get(f"/run/v2/{begun['name']}").json()).get("done") and o)
    assert "error" not in operation
    assert client.service("begun")["terminalCondition"]["state"] == "CONDITION_SUCCEEDED"
    client.remove("begun")


def test_the_first_request_after_a_restart_waits_for_a_cold_start(life, run_daemon):
    client = Client(run_daemon())
    client.create("cold", client.template("--boot=0.3"))
    control.stop(life)
    with kept_port(client.endpoint.base):
        run_daemon()
    front = client.front("cold")
    pids = []
    threads = [threading.Thread(target=lambda: pids.append(front.get("/").json()["pid"])) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(pids) == 3
    assert len(set(pids)) == 1
    client.remove("cold")


def test_stopping_leaves_no_process_and_no_endpoint(life, run_daemon):
    endpoint = run_daemon()
    client = Client(endpoint)
    client.create("ended", client.template())
    pid = instance_of(client, "ended")
    # This one never listens: its deployment is still under way when the daemon gets its signal to stop.
    client.post(SERVICES, {"template": client.template("--silent")}, serviceId="deaf")
    until(lambda: client.log("deaf"))
    control.stop(life)
    assert not is_alive(endpoint.pid)
    assert not is_alive(pid)
    assert control.status(life) is None
    assert not (life / "endpoint.json").exists()
    assert processes_of(life) == []
    control.stop(life)


def test_an_idle_instance_ends_and_the_least_number_stays(own_daemon):
    client = Client(own_daemon(idle=0.2))
    client.prepare()
    client.create("idle", client.template())
    client.create("busy", client.template(scaling={"minInstanceCount": 1, "maxInstanceCount": 1}))
    idle, busy = instance_of(client, "idle"), instance_of(client, "busy")
    until(lambda: not is_alive(idle))
    assert instance_of(client, "busy") == busy
    assert instance_of(client, "idle") != idle


@pytest.fixture(scope="module")
def started_directory(tmp_path_factory):
    """A directory for daemons as `control.start` starts them."""
    directory = tmp_path_factory.mktemp("started")
    yield directory
    control.stop(directory)


@pytest.fixture(scope="module")
def first_port():
    """A port for the first of them, which nothing else draws before the next one gets it."""
    port = free_port()
    with kept_port(f"http://127.0.0.1:{port}"):
        yield port


def test_two_that_start_at_once_get_the_same_daemon(started_directory, first_port):
    endpoints = []
    threads = [
        threading.Thread(
            target=lambda: endpoints.append(control.start(started_directory, speed=10_000, port=first_port))
        )
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({endpoint.pid for endpoint in endpoints}) == 1


@pytest.mark.wide_except("other code")
@pytest.mark.parametrize(
    "change",
    [
        lambda endpoint: endpoint | {"code": "of another version"},
        lambda endpoint: {"pid": endpoint["pid"], "base": endpoint["base"]},  # as a version reported that knew no more
        lambda endpoint: endpoint | {"speed": 5_000},
    ],
    ids=["other code", "an old version", "another speed"],
)
def test_a_daemon_of_another_kind_is_ended_and_replaced_with_its_data(started_directory, first_port, change):
    before = control.start(started_directory, speed=10_000, port=first_port)
    made = control.inventory(before) or Client(before).enable("iam") or control.inventory(before)
    path = started_directory / "endpoint.json"
    path.write_text(json.dumps(change(json.loads(path.read_text()))))
    after = control.start(started_directory, speed=10_000)
    assert (after.pid != before.pid, after.base, is_alive(before.pid)) == (True, before.base, False)
    assert control.inventory(after) == made != {}
    assert control.start(started_directory, speed=10_000) == after  # of this kind: it stays


def test_the_fingerprint_tells_code_from_code_and_costs_little(tmp_path):
    for folder in package_folders():
        shutil.copytree(folder, tmp_path / folder.name, ignore=shutil.ignore_patterns("__pycache__"))
    program = "from bezel_localcloud.core.paths import fingerprint; print(fingerprint())"

    def run_fingerprint():
        command = [sys.executable, "-S", "-c", program]
        here = os.environ | {"PYTHONPATH": str(tmp_path)}
        run = subprocess.run(command, cwd=tmp_path, env=here, capture_output=True, text=True, timeout=60, check=True)
        return run.stdout.strip()

    assert run_fingerprint() == fingerprint()
    (tmp_path / "bezel_bench").mkdir()
    (tmp_path / "bezel_bench/__init__.py").write_text("# not the daemon's\n")
    assert run_fingerprint() == fingerprint()
    seen = {fingerprint()}
    for file in (
        "simulated_vllm/api/web.py",
        "base/atomic_write.py",
        "localcloud/data/roles.toml",
        "catalog/loader.py",
    ):
        with (tmp_path / f"bezel_{file}").open("a") as opened:
            opened.write("# changed\n")
        changed = run_fingerprint()
        assert changed not in seen, file
        seen.add(changed)


def test_a_daemon_on_its_way_up_is_waited_for_not_run_into(started_directory, first_port):
    endpoint = control.start(started_directory, speed=10_000, port=first_port)
    path = started_directory / "endpoint.json"
    text = path.read_text()
    path.unlink()  # as while it prepares itself
    threading.Timer(0.2, lambda: path.write_text(text)).start()
    assert control.start(started_directory, speed=10_000) == endpoint
    path.unlink()
    threading.Timer(0.2, lambda: path.write_text(text)).start()
    control.stop(started_directory)
    assert not is_alive(endpoint.pid)


def test_a_second_daemon_refuses_the_directory(endpoint):
    command = [sys.executable, "-m", "bezel_localcloud", str(endpoint.directory)]
    second = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert second.returncode == 3
    assert "another localcloud daemon serves it" in second.stderr
    assert "Traceback" not in second.stderr
    assert control.status(endpoint.directory).pid == endpoint.pid


def test_a_daemon_that_cannot_start_shows_the_end_of_its_log(tmp_path):
    with pytest.raises(control.ControlError, match="the last words"):
        control.launch(tmp_path / "cloud", [sys.executable, "-c", "raise SystemExit('the last words')"])


def test_a_daemon_whose_log_is_gone_is_reported_without_its_last_lines(tmp_path):
    program = "import shutil; shutil.rmtree('logs'); raise SystemExit(3)"
    with pytest.raises(control.ControlError, match=r"(?s)exited with status 3.*\(no log\)"):
        control.launch(tmp_path / "cloud", [sys.executable, "-c", program])


def test_an_interrupted_start_leaves_no_daemon(tmp_path):
    program = "import os, pathlib, signal, time; pathlib.Path('pid').write_text(str(os.getpid()));"
    program += "os.kill(os.getppid(), signal.SIGINT); time.sleep(60)"
    with pytest.raises(KeyboardInterrupt):
        control.launch(tmp_path / "cloud", [sys.executable, "-c", program])
    assert not is_alive(int((tmp_path / "cloud" / "pid").read_text()))


def test_the_environment_names_every_api_and_says_when_it_is_simulated(endpoint):
    variables = control.environment(endpoint)
    assert variables["GOOGLE_CLOUD_RUN_V2_CUSTOM_ENDPOINT"] == f"{endpoint.base}/run/v2/"
    assert variables["GOOGLE_RESOURCE_MANAGER_CUSTOM_ENDPOINT"] == f"{endpoint.base}/crm/v1/"
    # Service accounts are read at one or the other, by the version of the published provider.
    assert variables["GOOGLE_IAM_BETA_CUSTOM_ENDPOINT"] == variables["GOOGLE_IAM_CUSTOM_ENDPOINT"]
    assert all(value.endswith("/") for name, value in variables.items() if name.endswith("_CUSTOM_ENDPOINT"))
    assert variables["GOOGLE_APPLICATION_CREDENTIALS"] == str(endpoint.credentials)
    assert variables["BEZEL_SIMULATED"] == "1"


def test_the_log_of_the_wire_holds_every_request_and_no_secret(cloud, endpoint):
    token = cloud.http.headers["Authorization"].partition(" ")[2]
    cloud.get(f"/crm/v1/{PARENT}", access_token="planted", alt="json")
    text = (endpoint.directory / "logs/wire.jsonl").read_text()
    last = json.loads(text.splitlines()[-1])
    assert (last["method"], last["path"], last["status"]) == ("GET", f"/crm/v1/{PARENT}", 200)
    assert last["query"] == "access_token=-&alt=json"
    assert last["ms"] > 0
    assert (last["caller"], last["granted"], last["denied"]) == (DEPLOYER, ["resourcemanager.projects.get"], [])
    assert token not in text
    assert "planted" not in text


def test_the_inventory_shows_only_what_was_made(started_directory):
    """The inventory shows what is left and nothing that was there before."""
    endpoint = control.start(started_directory, speed=10_000)
    client = Client(endpoint)
    client.enable("iam")
    assert control.inventory(endpoint) == {"enabledApis": ["iam.googleapis.com"]}
    email = client.account("left-over")
    assert control.inventory(endpoint) == {"accounts": [email], "enabledApis": ["iam.googleapis.com"]}
    client.delete(f"/iam/v1/{PARENT}/serviceAccounts/{email}")
    assert control.inventory(endpoint) == {"enabledApis": ["iam.googleapis.com"]}
    assert plain.get(f"{endpoint.base}/localcloud/resources").status_code == 401
    assert DEPLOYER not in str(control.inventory(endpoint))


def test_a_log_stays_below_twice_its_size_and_is_made_of_whole_lines(tmp_path):
    path = tmp_path / "log"
    log = LogFile(path, max_bytes=1000)
    for number in range(500):
        log.write(f"line {number}\n")
        if number == 250:
            log = LogFile(path, max_bytes=1000)  # another process continues where the first one was killed
    kept = (path.with_name("log.1").read_text() + path.read_text()).splitlines()
    assert path.stat().st_size <= 1000 >= path.with_name("log.1").stat().st_size
    assert kept == [f"line {number}" for number in range(500 - len(kept), 500)]
    assert len(kept) > 1000 / len("line 499\n")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["log", "log.1"]


def test_a_start_that_takes_a_while_says_until_when_it_waits(tmp_path):
    """The command in the daemon's place ends once that was said."""
    mark, lines = tmp_path / "said", []
    program = "import pathlib, sys, time\nwhile not pathlib.Path(sys.argv[1]).exists(): time.sleep(0.01)\nsys.exit(5)"

    def report(text):
        lines.append(text)
        mark.touch()

    with pytest.raises(control.ControlError, match="exited with status 5"):
        control.launch(tmp_path / "cloud", [sys.executable, "-c", program, str(mark)], report=report)
    assert lines == [f"localcloud in {tmp_path / 'cloud'} starts: waiting until it responds, for at most 60 s"]
