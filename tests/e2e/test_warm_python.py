"""A process that is forked for the engine is to it what a new interpreter would be."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import grpc
import httpx
import pytest

import bezel_pulumi_offline
from bezel_localcloud import control
from tests.support.e2e import warm_localcloud, warm_python
from tests.support.e2e.warm_server import LENGTH
from tests.support.ended import is_readable

Start = Callable[..., "subprocess.Popen[str]"]
LANGUAGE_HOST = Path(bezel_pulumi_offline.__file__).parent / "language_host"
SCRIPT = """
import os, sys
import pulumi
print(pulumi.__name__, sys.argv[1:], __name__, os.getcwd(), os.environ["OWN"], sys.path[0], sys.stdin.read())
print("bad", file=sys.stderr)
sys.exit(7)
"""
ENDING = """
import atexit, sys, threading, time
atexit.register(print, "registered")
ended = threading.Event()
threading.Thread(target=lambda: (ended.wait(), print("thread"))).start()
print("main")
ended.set()
"""
# In short sleeps: a signal that comes between Python's look for one and the sleep is noticed only after it.
WAITING = "import os, time\nprint(os.getpid(), os.environ.get('OWN'), flush=True)\nfor _ in range(300):\n"
WAITING += "    time.sleep(0.2)\n"


@pytest.fixture(scope="module")
def serving() -> str:
    """A process that forks, started as by `make test &` in a shell without job control: it ignores an interrupt.

    The engine does not, and neither may what it starts: it would wait five seconds for each such plugin.
    """
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        place = Path(tempfile.mkdtemp(prefix="warm-"))
        for kind in ("sdk", "plugins"):
            warm_python.serve(kind, place)
        return str(place)
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.fixture(params=["forked", "started"])
def start(request: pytest.FixtureRequest, tmp_path: Path, serving: str) -> Start:
    """Start the interpreter of a rehearsal's environment, in a folder that holds two scripts."""
    warm_python.environment(tmp_path / ".venv")
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "waiting.py").write_text(WAITING)
    warm = {warm_python.VARIABLE: serving} if request.param == "forked" else {}
    # With a path of imports of its own an interpreter is never forked.
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def start_with(*arguments: str, standard_input: int = subprocess.DEVNULL) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [tmp_path / ".venv" / "bin" / "python", *arguments],
            cwd=tmp_path,
            env=variables | {"OWN": "1"} | warm,
            stdin=standard_input,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return start_with


@pytest.mark.wide_except("forked-*", "started-arguments1")
@pytest.mark.parametrize("arguments", [("-u", "script.py", "--a", "b"), ("-u", "-m", "script", "--a", "b")])
def test_it_has_arguments_folder_variables_and_streams_of_its_own(
    start: Start, arguments: tuple[str, ...], tmp_path: Path
) -> None:
    process = start(*arguments, standard_input=subprocess.PIPE)
    output, complained = process.communicate("given", timeout=30)
    assert output.split() == ["pulumi", "['--a',", "'b']", "__main__", str(tmp_path), "1", str(tmp_path), "given"]
    assert (complained, process.returncode) == ("bad\n", 7)


@pytest.mark.wide_except("forked-*", "started-raise ValueError*")
@pytest.mark.parametrize(
    ("end", "code", "last"),
    [
        ("", 0, ""),
        ("sys.exit()", 0, ""),
        ("sys.exit('why')", 1, "why"),
        ("raise ValueError('odd')", 1, "ValueError: odd"),
        ("raise KeyboardInterrupt", -signal.SIGINT, "KeyboardInterrupt"),
    ],
)
def test_it_ends_as_the_interpreter_does_after_its_threads_and_functions(
    start: Start, end: str, code: int, last: str, tmp_path: Path
) -> None:
    (tmp_path / "script.py").write_text(ENDING + end)
    process = start("-u", "script.py")
    output, complained = process.communicate(timeout=30)
    assert (output.split(), process.returncode) == (["main", "thread", "registered"], code)
    assert complained.strip().rpartition("\n")[2] == last


@pytest.mark.parametrize("start", ["forked"], indirect=True)
def test_a_fork_starts_others_by_its_launcher(start: Start, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("import sys\nprint(sys.executable)\n")
    output, _ = start("-u", "script.py").communicate(timeout=30)
    assert output.strip() == str(tmp_path / ".venv" / "bin" / "python")


@pytest.mark.wide_except("forked-*", "started-15")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_it_ends_by_the_signal_that_its_launcher_gets(start: Start, number: signal.Signals) -> None:
    process = start("-u", "waiting.py")
    assert process.stdout is not None
    pid = int(process.stdout.readline().split()[0])
    descriptor = os.pidfd_open(pid)
    process.send_signal(number)
    assert process.wait(30) == -number
    assert is_readable(descriptor, 30)
    os.close(descriptor)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_before_the_fork_is_known_is_passed_on(tmp_path: Path, number: signal.Signals) -> None:
    """A fork may serve, and the engine end it, while its launcher still waits for a CPU."""
    warm_python.environment(tmp_path / ".venv")
    place = Path(tempfile.mkdtemp(prefix="warm-"))
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(place / "sdk"))
        listening.listen()
        launcher = subprocess.Popen(
            [tmp_path / ".venv" / "bin" / "python", "-u", "script.py"],
            env={warm_python.VARIABLE: str(place)},
            stderr=subprocess.PIPE,
            text=True,
        )
        listening.settimeout(30)
        orders, _address = listening.accept()
    with orders:
        orders.settimeout(30)
        head = orders.recv(LENGTH, socket.MSG_WAITALL)
        orders.recv(int.from_bytes(head, "big"), socket.MSG_WAITALL)
        launcher.send_signal(number)
        with subprocess.Popen(["sleep", "60"], process_group=0) as fork:
            orders.sendall(fork.pid.to_bytes(LENGTH, "big"))
            assert fork.wait(30) == -number
        orders.sendall((-number).to_bytes(LENGTH, "big", signed=True))
    assert (launcher.communicate(timeout=30)[1], launcher.returncode) == ("", -number)


def test_another_call_of_the_interpreter_is_the_interpreter_itself(start: Start) -> None:
    output, _ = start("-c", "import sys; print(sys.executable, 'pulumi' in sys.modules)").communicate(timeout=30)
    assert output.split() == [str(Path(sys.prefix) / "bin" / "python"), "False"]


PLUGINS = [("-m", f"bezel_pulumi_offline.{name}") for name in ("gcp", "docker")]


@pytest.mark.wide_except("forked-*", "started-arguments2")
@pytest.mark.parametrize("arguments", [*PLUGINS, ("-IS", str(LANGUAGE_HOST))])
def test_a_plugin_serves_at_its_port_until_its_input_closes(start: Start, arguments: tuple[str, ...]) -> None:
    process = start(*arguments, "127.0.0.1:1", standard_input=subprocess.PIPE)
    assert process.stdout is not None
    port = int(process.stdout.readline())
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        grpc.channel_ready_future(channel).result(30)
    _, complained = process.communicate(timeout=30)
    assert complained == ""


@pytest.mark.parametrize("start", ["forked"], indirect=True)
def test_a_fork_and_its_launcher_that_end_at_once_end_alone(start: Start) -> None:
    ending, staying = (start("-u", "waiting.py") for _ in range(2))
    assert ending.stdout is not None
    assert staying.stdout is not None
    fork = int(ending.stdout.readline().split()[0])
    staying.stdout.readline()
    server = Path(f"/proc/{fork}/stat").read_text().rpartition(") ")[2].split()[1]
    assert int(server) != os.getpid()
    # It finds both ended when it looks again.
    os.kill(int(server), signal.SIGSTOP)
    for process in (fork, ending.pid):
        descriptor = os.pidfd_open(process)
        os.kill(process, signal.SIGKILL)
        assert is_readable(descriptor, 30)
        os.close(descriptor)
    os.kill(int(server), signal.SIGCONT)
    assert start("-u", "script.py").wait(30) == 7
    assert staying.poll() is None
    staying.terminate()
    assert staying.wait(30) == -signal.SIGTERM
    ending.wait(30)


def test_a_simulated_server_is_forked_and_writes_its_report(tmp_path: Path) -> None:
    """A container has none of the run's variables, but PYTHONPATH, and an open file of its own."""
    warm_python.environment(tmp_path / ".venv")
    path, packages = f"{tmp_path}/socket:8000", os.pathsep.join(sys.path[1:])
    variables = {"PYTHONPATH": packages, "LOCALCLOUD_LISTEN": f"unix:{path}", "LOCALCLOUD_SPEED": "10000"}
    command = [
        tmp_path / ".venv" / "bin" / "python",
        "-m",
        "bezel_simulated_vllm",
        "google/gemma-4-12B-it-qat-w4a16-ct",
    ]
    with (tmp_path / "report").open("wb") as report:
        variables["LOCALCLOUD_START_REPORT"] = str(report.fileno())
        process = subprocess.Popen(
            command,
            env=variables,
            pass_fds=[report.fileno()],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if "Available routes" in line:
            break
    with httpx.Client(transport=httpx.HTTPTransport(uds=path), timeout=30) as client:
        assert client.get("http://server/health").status_code == 200
    process.terminate()
    lines += process.communicate(timeout=30)[0].splitlines()
    assert process.returncode == 0, lines
    assert lines[0].startswith("(APIServer pid=")
    assert f"pid={process.pid})" not in lines[0]
    assert float((tmp_path / "report").read_text()) > 0


@pytest.mark.parametrize(
    ("argument", "code", "text"),
    [("--no-such-option", 2, "unrecognized arguments: --no-such-option"), ("--help", 0, "usage: vllm serve")],
)
def test_a_forked_simulated_server_ends_as_its_command_does(
    tmp_path: Path, argument: str, code: int, text: str
) -> None:
    warm_python.environment(tmp_path / ".venv")
    command = [tmp_path / ".venv" / "bin" / "python", "-m", "bezel_simulated_vllm", argument]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert ended.returncode == code
    assert text in ended.stdout + ended.stderr


def test_a_forked_localcloud_is_stopped_as_any_other(tmp_path: Path) -> None:
    endpoint = warm_localcloud.start(tmp_path / "cloud", "--speed", "10000")
    assert control.status(tmp_path / "cloud") == endpoint
    assert "services" not in control.inventory(endpoint)
    control.stop(tmp_path / "cloud")
    assert control.status(tmp_path / "cloud") is None


def test_a_localcloud_that_ends_at_once_is_named_with_its_log(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="unrecognized arguments: --no-such-option"):
        warm_localcloud.start(tmp_path / "cloud", "--no-such-option")
