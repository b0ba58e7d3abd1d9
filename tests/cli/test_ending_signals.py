"""Commands that wait for an answer, ended by a signal: the exit code names it, nothing hangs, nothing is left half."""

from __future__ import annotations

import itertools
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bezel.cli.main import main
from bezel_base import ending_signals
from tests.support.cli.served import BEZEL

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
APIS = ("STORAGE", "TPU", "COMPUTE", "CLOUD_RUN_V2", "TPU_V2", "SERVICE_USAGE", "CLOUD_QUOTAS", "RESOURCE_MANAGER")
BENCH = ("--public", "--out", "out.json")
COMMANDS = {
    "status": ("status", "l4-qat"),
    "doctor": ("doctor", "l4-qat"),
    "watch": ("watch", "l4-qat"),
    "deploy": ("deploy", "l4-qat"),
    "drift": ("ci", "drift", "l4-qat"),
    "weights copy": ("weights", "copy", "l4-qat"),
    "bench run": ("bench", "run", "--url", "URL", *BENCH),
    "bench ab": ("bench", "ab", "--arm", "a=URL", "--arm", "b=URL/b", *BENCH),
}


class Silent:
    """A server that takes each request and never answers."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._held: list[socket.socket] = []
        self.asked = threading.Event()
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._take, daemon=True).start()

    def _take(self) -> None:
        while True:
            try:
                taken, _ = self._listener.accept()
                self._held.append(taken)
                if taken.recv(100):
                    self.asked.set()
            except OSError:
                return

    def close(self) -> None:
        self._listener.close()
        for taken in self._held:
            taken.close()


@pytest.fixture
def silent() -> Iterator[Silent]:
    served = Silent()
    yield served
    served.close()


# One handler answers both signals for all commands, so each command gets one of them.
@pytest.mark.wide_except("deploy-15", "bench run-2")
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "number"), list(zip(COMMANDS, itertools.cycle([signal.SIGINT, signal.SIGTERM]), strict=False))
)
def test_the_exit_code_of_an_ended_command_names_the_signal(
    silent: Silent, tmp_path: Path, name: str, number: signal.Signals
) -> None:
    arguments = [
        str(tmp_path / word) if word == "out.json" else word.replace("URL", silent.url) for word in COMMANDS[name]
    ]
    environ = {
        "PATH": os.environ["PATH"], "HOME": str(tmp_path / "home"), "GOOGLE_OAUTH_ACCESS_TOKEN": "planted",
        "GOOGLE_CLOUD_PROJECT": "acme-llm", "PULUMI_BACKEND_URL": "gs://acme-states", "HF_ENDPOINT": silent.url,
        **{f"GOOGLE_{api}_CUSTOM_ENDPOINT": f"{silent.url}/" for api in APIS},
    }  # fmt: skip
    with subprocess.Popen(
        [BEZEL, *arguments], cwd=ROOT, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - a shell may have ignored it
    ) as process:  # fmt: skip
        try:
            assert silent.asked.wait(60), "it never asked"
            process.send_signal(number)
            _, errors = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 128 + number, errors
    assert "Traceback" not in errors
    assert "Error" not in errors
    assert [file for file in tmp_path.rglob("*") if file.is_file() and file.name.startswith((".out", "out.json"))] == []


# The kernel gives the signal to a thread that does not wait, as it may to one that is about to wait.
BLOCKED = """
import fcntl, os, queue, signal, socket, subprocess, sys, threading, time
from bezel_base import ending_signals

here, there = socket.socketpair()
first, second = open(sys.argv[1], "w"), open(sys.argv[1], "w")
fcntl.flock(first, fcntl.LOCK_EX)
endless = threading.Thread(target=threading.Event().wait, daemon=True)
endless.start()
waits = {
    "recv": lambda: here.recv(1),
    "read": lambda: os.read(os.pipe()[0], 1),
    "accept": lambda: socket.create_server(("127.0.0.1", 0)).accept(),
    "event": lambda: threading.Event().wait(),
    "queue": lambda: queue.Queue().get(),
    "join": endless.join,
    "process": lambda: subprocess.run(["cat"], stdin=there),
    "flock": lambda: fcntl.flock(second, fcntl.LOCK_EX),
    "sleep": lambda: time.sleep(60),
}
try:
    with ending_signals.handle():
        threading.Timer(0.5, lambda: signal.pthread_kill(threading.get_ident(), signal.SIGTERM)).start()
        waits[sys.argv[2]]()
except KeyboardInterrupt:
    os._exit(ending_signals.exit_code())
"""
WAITS = ("recv", "read", "accept", "event", "queue", "join", "process", "flock", "sleep")


@pytest.mark.slow
def test_a_signal_ends_a_wait_that_it_did_not_interrupt(tmp_path: Path) -> None:
    running = {
        wait: subprocess.Popen([sys.executable, "-c", BLOCKED, str(tmp_path / wait), wait], cwd=ROOT) for wait in WAITS
    }
    try:
        codes = {wait: process.wait(50) for wait, process in running.items()}
    finally:
        for process in running.values():
            process.kill()
    assert codes == dict.fromkeys(WAITS, 128 + signal.SIGTERM)


def test_a_timer_in_use_stays() -> None:
    before = signal.signal(signal.SIGALRM, lambda *_: None)
    timer = signal.setitimer(signal.ITIMER_REAL, 1000)
    try:
        with ending_signals.handle():
            assert signal.getitimer(signal.ITIMER_REAL)[0] > 100
    finally:
        signal.setitimer(signal.ITIMER_REAL, *timer)
        signal.signal(signal.SIGALRM, before)
    with ending_signals.handle():
        pass
    assert signal.getsignal(signal.SIGALRM) is before


def test_a_command_that_has_no_signal_keeps_its_code(capsys: pytest.CaptureFixture[str]) -> None:
    ending_signals.note(signal.SIGTERM)  # of a command before it in the same process
    assert main(["plan", "no-such-stack"]) == 2
    assert main(["cost", "l4-qat"]) == 0
    assert main(["plan"]) == 2
    capsys.readouterr()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_that_is_held_back_comes_after_the_block(number: signal.Signals) -> None:
    done = []

    def work() -> None:
        with ending_signals.held_back():
            os.kill(os.getpid(), number)
            done.append("block")
        done.append("after")

    with pytest.raises(KeyboardInterrupt), ending_signals.handle():
        work()
    assert done == ["block"]


def test_a_block_without_an_interrupt_is_left_as_it_was_entered() -> None:
    before = signal.getsignal(signal.SIGINT)
    with ending_signals.held_back():
        assert signal.getsignal(signal.SIGINT) is not before
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_a_block_as_an_interrupt_does(number: signal.Signals) -> None:
    with pytest.raises(KeyboardInterrupt), ending_signals.handle():
        signal.raise_signal(number)
    assert ending_signals.exit_code() == 128 + number
    assert signal.getsignal(number) is signal.SIG_DFL
    ending_signals.forget()
    assert ending_signals.exit_code() is None


def test_a_signal_that_was_to_be_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with ending_signals.handle():
            os.kill(os.getpid(), signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)
