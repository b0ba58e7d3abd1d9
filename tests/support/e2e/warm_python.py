"""The Python processes of an engine's run: each forked from one that has loaded what it needs, not started anew.

The engine and what it starts are the real ones: the program, dynamic providers and packs (whose SDKs take nearly a
second to load), the stand-in providers and the language host. In place of the environment's interpreter they find a
launcher (`environment`): it hands folder, arguments, variables and streams of what it was started for to a server
(`warm_server`), passes signals on, and ends as the fork ended; a fork whose launcher is gone is killed. Without
`VARIABLE` the launcher is the interpreter itself, as in every run that is killed and in the first half of the life of a
stack; but a simulated server is forked wherever a localcloud starts it that was started by a launcher.

Leaves out the commands of `bezel`, which are forked by `warm_bezel`.
"""

import fcntl
import functools
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.support.e2e import warm_server

VARIABLE = "BEZEL_TEST_WARM_PYTHON"
PLUGINS = ("bezel_pulumi_offline.docker", "bezel_pulumi_offline.gcp")

# It imports nothing that is written in Python: it starts several times a run of the engine.
LAUNCHER = """#!{system} -IS
import _signal
_signal.signal(_signal.SIGINT, _signal.SIG_DFL)  # no traceback of an interrupt before there is a fork
import posix, sys
place, arguments = posix.environ.get(b"{variable}"), sys.argv[1:]
kind = None
if arguments[:2] == ["-m", "bezel_localcloud"]:  # it starts servers as it was started
    posix.execv("{python}", sys.argv)
if arguments[:2] == ["-m", "bezel_simulated_vllm"] and {simulated}:  # a container gets none of the variables
    kind, place = b"simulated", {simulated}
elif b"PYTHONPATH" in posix.environ:
    pass
elif arguments[:1] == ["-u"]:
    kind, arguments = b"sdk", arguments[1:]
elif arguments[:1] == ["-m"] and arguments[1] in {plugins}:
    kind = b"plugins"
elif arguments[:1] == ["-IS"] and arguments[1].endswith("/language_host"):
    kind, arguments = b"plugins", arguments[1:]
if not place or not kind:
    posix.execv("{python}", ["{python}", *sys.argv[1:]])
import _socket, select
# The fork starts with the order, so the engine may interrupt it before this process knows it: signals wait until then.
signals = (_signal.SIGINT, _signal.SIGTERM)
_signal.pthread_sigmask(_signal.SIG_BLOCK, signals)
order = [sys.argv[0], "", str(len(arguments)), *arguments]
order = [each.encode(sys.getfilesystemencoding(), "surrogateescape") for each in order]
order += [posix.getcwdb(), *(name + b"=" + value for name, value in posix.environ.items())]
order = b"\\0".join(order)
server = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
server.connect(place + b"/" + kind)
streams = [0, 1, 2, *(int(posix.environ[name]) for name in ({report},) if name in posix.environ)]
streams = b"".join(each.to_bytes(4, sys.byteorder) for each in streams)
head = len(order).to_bytes({length}, "big")
server.sendmsg([head], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
server.sendall(order)
fork = int.from_bytes(server.recv({length}, _socket.MSG_WAITALL), "big")
def pass_on(number, _frame):
    try:
        posix.killpg(fork, number)
    except ProcessLookupError:
        pass
woken, waking = _socket.socketpair()
waking.setblocking(False)
_signal.set_wakeup_fd(waking.fileno())
for number in signals:
    _signal.signal(number, pass_on)
_signal.pthread_sigmask(_signal.SIG_UNBLOCK, signals)
waiting = select.poll()
waiting.register(server, select.POLLIN)
waiting.register(woken, select.POLLIN)
# A signal that comes right before a wait for the server alone would be passed on after it only.
while server.fileno() not in dict(waiting.poll()):
    woken.recv(4096)
ended = server.recv({length}, _socket.MSG_WAITALL)
code = int.from_bytes(ended, "big", signed=True) if ended else -_signal.SIGKILL
if code < 0:
    if code != -_signal.SIGKILL:
        _signal.signal(-code, _signal.SIG_DFL)
    posix.kill(posix.getpid(), -code)
posix._exit(code)
"""

# What is open as long as this process lives, and the servers that it started.
_KEPT: list[object] = []


def environment(venv: Path) -> None:
    """Make a virtual environment that is this one, but for the launcher in place of the interpreter."""
    prefix = Path(sys.prefix)
    (venv / "bin").mkdir(parents=True)
    for entry in (*prefix.iterdir(), *(prefix / "bin").iterdir()):
        if not entry.name.startswith(("bin", "python")):
            (venv / entry.relative_to(prefix)).symlink_to(entry)
    launcher = venv / "bin" / "python"
    python = prefix / "bin" / "python"
    values = {"variable": VARIABLE, "plugins": PLUGINS, "length": warm_server.LENGTH, "report": warm_server.REPORT}
    values["simulated"] = os.fsencode(serve("simulated", shared_place()).parent)
    launcher.write_text(LAUNCHER.format(system=python.resolve(), python=python, **values))
    launcher.chmod(0o755)


@functools.cache
def serving() -> str:
    """Where the processes take orders that have loaded what a run of the engine needs: one each for all workers."""
    place = shared_place()
    for kind in ("sdk", "plugins"):
        serve(kind, place)
    return str(place)


def variables(folder: Path) -> dict[str, str]:
    """Variables with which the processes of a run of the engine are forked; the folder has an `environment`."""
    return {VARIABLE: serving(), "BEZEL_PYTHON": str(interpreter(folder))}


def interpreter(folder: Path) -> Path:
    """The launcher of the `environment` of a folder."""
    return folder / ".venv" / "bin" / "python"


@functools.cache
def shared_place() -> Path:
    """A folder for servers that is the same in all workers of a run."""
    # Short: the name of a socket has at most 107 bytes.
    return Path(tempfile.gettempdir()) / f"warm-{os.environ.get('PYTEST_XDIST_TESTRUNUID') or os.getpid()}"


@functools.cache
def serve(kind: str, place: Path) -> Path:
    """Start the server of this kind, unless another worker has; it serves until all are gone. Returns its socket."""
    place.mkdir(mode=0o700, exist_ok=True)
    file = place / kind
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        alive = place / "alive"
        if not alive.exists():
            os.mkfifo(alive)
        _KEPT.append(os.open(alive, os.O_RDWR))
        if not file.exists():
            _KEPT.append(_start(kind, place))
    return file


def _start(kind: str, place: Path) -> "subprocess.Popen[bytes]":
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(place / kind))
        listening.listen(64)
        here = listening.fileno()
        return subprocess.Popen(
            [sys.executable, warm_server.__file__, kind, str(place), str(here)],
            stdin=subprocess.DEVNULL,
            env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},  # a fork has only the thread that forked
            pass_fds=[here],
            start_new_session=True,
        )
