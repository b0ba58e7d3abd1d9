"""Whoever asks a run to end, and however: the engine is told, is waited for, and never goes on alone."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from bezel.engine.run.process import End, Streams, run_to_end
from bezel_localcloud.core.files.locks import using
from tests.support.ended import is_readable

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="waits for processes by their descriptors, on Linux only"),
]

ROOT = Path(__file__).parents[2]
# Stands for `pulumi`: writes the names of its signals to a file, and ends by the last of the given number. Its plugin,
# in a process group of its own as the engine's are, lives on without its engine.
ENGINE = """
import os, signal, subprocess, sys
if os.environ.get("PLUGIN"):
    plugin = subprocess.Popen(["/bin/sh", "-c", "exec tail -f /dev/null"], process_group=0, stdout=2)
    open(os.environ["PLUGIN"], "w").write(str(plugin.pid))
told = open(sys.argv[1], "ab", buffering=0)
heard = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
signal.pthread_sigmask(signal.SIG_BLOCK, heard)  # so that none comes between a look and a wait
print(os.getpid(), flush=True)
for _ in range(int(sys.argv[2])):
    told.write(signal.Signals(signal.sigwait(heard)).name.encode() + b" ")
print("saved", flush=True)
if "SAVED" in os.environ:
    open(os.environ["SAVED"], "w").close()
sys.exit(3)
"""
# Stands for `bezel local up`.
COMMAND = """
import os, signal, sys
from contextlib import nullcontext
from pathlib import Path
from bezel_localcloud.core.files.locks import using
from bezel.engine.run.output import display_output
from bezel.engine.run.process import end_with_make, run_to_end
end_with_make()
limits = {"grace": (int(os.environ.get("GRACE", "60")),) * 2}
if "LIMIT" in os.environ:
    limits["seconds"] = float(os.environ["LIMIT"])
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # for the engine, which may start for longer than that
with using(Path("cloud")) as use, display_output() if "SAVED" in os.environ else nullcontext() as streams:
    line = [sys.executable, *sys.argv[1:]]
    ended = run_to_end(line, Path.cwd(), os.environ, (use.descriptor,), streams=streams, **limits)
print(ended, flush=True)
sys.exit(ended.code)
"""


class Run:
    """A command that runs an engine, which ends at the n-th signal."""

    def __init__(self, folder: Path, last: int, by: Callable[[list[str]], list[str]] = lambda command: command) -> None:
        (folder / "engine.py").write_text(ENGINE)
        (folder / "command.py").write_text(COMMAND)
        self._told = folder / "told"
        line_of_command = [
            sys.executable,
            str(folder / "command.py"),
            str(folder / "engine.py"),
            str(self._told),
            str(last),
        ]
        # Under `make test` the variables of the outer make would have this one print where it works.
        outside = {name: value for name, value in os.environ.items() if "MAKE" not in name}
        self.command = subprocess.Popen(
            by(line_of_command),
            cwd=folder,
            env=outside | {"PYTHONPATH": str(ROOT)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert self.command.stdout is not None
        line = self.command.stdout.readline()
        if not line.strip().isdecimal():
            self.command.kill()
            raise AssertionError(f"no engine was started: {line!r}")
        self.engine = os.pidfd_open(int(line))

    def received_text(self, signals: int) -> str:
        """What the engine has been told, once it is that many."""
        end = time.monotonic() + 60
        while len(self._told.read_text().split()) < signals:
            assert self.goes_on()
            assert time.monotonic() < end, f"the engine was told {self._told.read_text()!r} in 60 s"
        return self._told.read_text().strip()

    def goes_on(self) -> bool:
        return not is_readable(self.engine, 0.02)

    def end(self) -> tuple[str, str]:
        """What the engine was told in all, and what was printed, once engine and command are gone."""
        assert is_readable(self.engine, 60), "the engine goes on"
        assert self.command.stdout is not None
        # Not by `communicate`, which leaves out what was read ahead with the first line.
        output = self.command.stdout.read()
        self.command.wait(60)
        return self._told.read_text().strip(), output

    def close(self) -> None:
        """End what a failed test has left."""
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.engine, signal.SIGKILL)
        os.close(self.engine)
        self.command.kill()
        self.command.wait(60)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Run]]:
    runs: list[Run] = []

    def begin(last: int = 1, **others: Callable[[list[str]], list[str]]) -> Run:
        runs.append(Run(tmp_path, last, **others))
        return runs[-1]

    yield begin
    for run in runs:
        run.close()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("whom", ["the command", "its group"])
def test_a_signal_is_handed_on_once_and_the_end_is_waited_for(
    start: Callable[..., Run], number: signal.Signals, whom: str
) -> None:
    run = start()
    (os.killpg if whom == "its group" else os.kill)(run.command.pid, number)
    signals, output = run.end()
    assert signals == "SIGINT"
    assert "saved\n" in output
    assert output.endswith("End(code=3, interrupted=True, timed_out=False)\n")
    assert ("completes its running operations" in output) is (number != signal.SIGINT)
    assert run.command.returncode == 3


def test_an_engine_that_ends_by_itself_was_not_interrupted(start: Callable[..., Run]) -> None:
    run = start()
    signal.pidfd_send_signal(run.engine, signal.SIGTERM)
    assert run.end() == ("SIGTERM", "saved\nEnd(code=3, interrupted=False, timed_out=False)\n")


def test_an_engine_that_takes_longer_than_its_limit_is_interrupted(
    start: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LIMIT", "0.2")
    run = start(2)  # it lives until the test has seen it
    assert run.received_text(1) == "SIGINT"
    signal.pidfd_send_signal(run.engine, signal.SIGTERM)
    assert run.end() == ("SIGINT SIGTERM", "saved\nEnd(code=3, interrupted=False, timed_out=True)\n")


def test_ctrl_c_is_handed_on_as_often_as_it_comes(
    start: Callable[..., Run],
) -> None:
    """Ctrl-C is handed on as often as it comes and nothing else hurries the engine."""
    run = start(3)
    for count in (1, 2, 3):
        run.command.send_signal(signal.SIGINT)
        if count < 3:
            assert run.received_text(count) == " ".join(["SIGINT"] * count)
    assert run.end()[0] == "SIGINT SIGINT SIGINT"


def test_a_killed_command_has_its_engine_interrupted(start: Callable[..., Run]) -> None:
    run = start()
    run.command.kill()
    assert run.end() == ("SIGINT", "saved\n")


def test_an_engine_whose_output_is_read_outlives_a_killed_command(
    start: Callable[..., Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = tmp_path / "saved"
    monkeypatch.setenv("SAVED", str(saved))
    run = start()
    run.command.kill()
    run.command.wait(60)
    assert (run.end()[0], saved.exists()) == ("SIGINT", True)


def test_an_engine_uses_localcloud_to_its_end_without_its_command(start: Callable[..., Run], tmp_path: Path) -> None:
    """An engine uses localcloud to its end whatever became of its command."""
    run = start(2)
    run.command.kill()
    run.command.wait(60)
    with using(tmp_path / "cloud") as use:
        assert not use.take_alone()
        signal.pidfd_send_signal(run.engine, signal.SIGTERM)  # after the guard's SIGINT, or together with it
        run.end()
        use.share()
        assert use.take_alone()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_an_engine_that_does_not_end_is_interrupted_again_and_then_killed(
    start: Callable[..., Run], monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    monkeypatch.setenv("GRACE", "4")  # two signals that come before the engine has heard the first are one
    run = start(99)
    run.command.send_signal(number)
    signals, output = run.end()
    assert signals == "SIGINT SIGINT"
    assert "saved" not in output


@pytest.mark.parametrize("ended", ["the engine", "both", "by the guard", "by its limit"])
def test_a_killed_engine_leaves_no_plugin(
    start: Callable[..., Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ended: str
) -> None:
    monkeypatch.setenv("PLUGIN", str(tmp_path / "plugin"))
    monkeypatch.setenv("GRACE", "1")
    if ended == "by its limit":
        monkeypatch.setenv("GRACE", "4")  # it is killed when both have passed: after its start on a busy machine, too
        monkeypatch.setenv("LIMIT", "1")
    run = start(99)
    plugin = os.pidfd_open(int((tmp_path / "plugin").read_text()))
    try:
        if ended in {"both", "by the guard"}:
            run.command.kill()
        if ended in {"the engine", "both"}:
            signal.pidfd_send_signal(run.engine, signal.SIGKILL)
        assert is_readable(plugin, 30), "the plugin goes on"
        run.end()
    finally:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(plugin, signal.SIGKILL)
        os.close(plugin)


def test_an_engine_that_ends_well_ends_its_plugins_itself(
    start: Callable[..., Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLUGIN", str(tmp_path / "plugin"))
    run = start()
    plugin = int((tmp_path / "plugin").read_text())
    signal.pidfd_send_signal(run.engine, signal.SIGTERM)
    run.end()
    os.kill(plugin, signal.SIGKILL)  # it is there: an engine that ended well may leave what it wants


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_make_that_is_ended_ends_the_run(start: Callable[..., Run], tmp_path: Path, number: signal.Signals) -> None:
    make = shutil.which("make")
    assert make is not None

    def by_make(command: list[str]) -> list[str]:
        (tmp_path / "Makefile").write_text(f"up:\n\t@{' '.join(command)}\n")
        return [make, "up"]

    run = start(by=by_make)
    run.command.send_signal(number)
    assert run.end()[0] == "SIGINT"


def test_what_the_shell_lets_it_ignore_stays_ignored(start: Callable[..., Run]) -> None:
    run = start(by=lambda command: ["/bin/sh", "-c", 'trap "" HUP; exec "$@"', "sh", *command])
    run.command.send_signal(signal.SIGHUP)
    run.command.send_signal(signal.SIGINT)
    signals, output = run.end()
    assert signals == "SIGINT"
    assert "completes its running" not in output


def test_an_engine_of_another_thread_is_interrupted_when_it_is_cancelled(tmp_path: Path) -> None:
    (tmp_path / "engine.py").write_text(ENGINE)
    log, cancelled, ends = tmp_path / "told", threading.Event(), []
    outlet, inlet = os.pipe()

    def run() -> None:
        command = [sys.executable, str(tmp_path / "engine.py"), str(log), "1"]
        ends.append(
            run_to_end(command, tmp_path, os.environ, grace=(5, 5), streams=Streams(inlet, inlet), cancelled=cancelled)
        )

    thread = threading.Thread(target=run)
    thread.start()
    assert is_readable(outlet, 60), "the engine did not start"
    os.read(outlet, 100)
    assert ends == []  # it runs until it is cancelled
    cancelled.set()
    thread.join(60)
    os.close(inlet)
    os.close(outlet)
    assert (ends, log.read_text()) == ([End(3, interrupted=True)], "SIGINT ")
