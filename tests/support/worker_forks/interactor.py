"""What happens between the collection and the tests: workers are forked, and each speaks to xdist."""

import os
import queue
import signal
import socket
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
import xdist.remote
from _pytest.tmpdir import TempPathFactory
from execnet.gateway_base import Channel, Popen2IO, WorkerGateway, WorkerPool, get_execmodel, loads_internal

EXECMODEL = get_execmodel("main_thread_only")
# How long a worker may take to end after its last message.
END_SECONDS = 10


class EarlyEvents:
    """Stands for a worker's channel while there is no worker: keeps what each worker is going to send."""

    def __init__(self) -> None:
        self.gateway = SimpleNamespace(execmodel=EXECMODEL)
        self.events: list[object] = []

    def send(self, event: object) -> None:
        """Keep what goes to the channel of each worker."""
        self.events.append(event)


class ForkGateway(WorkerGateway):
    """A worker's side of execnet, which runs no program in the main thread: that is amidst pytest's session."""

    def __init__(self, io: Popen2IO) -> None:
        super().__init__(io=io, id="fork", _startcount=2)
        self.channels: queue.SimpleQueue[Channel | None] = queue.SimpleQueue()
        self._session_ended = threading.Event()
        # For what `serve` would begin with in the main thread.
        self._execpool = WorkerPool(EXECMODEL)
        self._executetask_complete = EXECMODEL.Event()
        self._executetask_complete.set()
        self._initreceive()

    def _local_schedulexec(self, channel: Channel, sourcetask: bytes) -> None:
        """Give the channel of xdist's program to the main thread; run other programs, which ask for versions."""
        _, file, *_ = loads_internal(sourcetask)
        if file == xdist.remote.__file__:
            self.channels.put(channel)
        else:
            super()._local_schedulexec(channel, sourcetask)

    def _terminate_execution(self) -> None:
        """Interrupt the session where it still runs when xdist lets the worker go, or is gone."""
        self.channels.put(None)
        if not self._session_ended.wait(5):
            os.kill(os.getpid(), signal.SIGINT)
            if not self._session_ended.wait(10):
                os._exit(1)

    def end(self) -> None:
        """Wait, after the session, until xdist lets the worker go."""
        self._session_ended.set()
        self.join()


class ForkInteractor(xdist.remote.WorkerInteractor):
    """Speaks to xdist for a worker; where pytest would begin with the tests, there the workers are forked."""

    def __init__(self, config: pytest.Config, control: socket.socket) -> None:
        self._early = EarlyEvents()
        self._control = control
        control.set_inheritable(False)
        self.gateway: ForkGateway | None = None
        super().__init__(config, self._early)

    @pytest.hookimpl
    def pytest_internalerror(self, excrepr: object) -> None:
        """Tell xdist of it; the inherited function does so by a global variable of xdist's program."""
        self.sendevent("internal_error", formatted_error=str(excrepr))

    @pytest.hookimpl
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Fork workers as long as they are asked for; in each, run its tests."""
        self._begin_worker(self._fork_workers())
        return super().pytest_runtestloop(session)

    def _fork_workers(self) -> Popen2IO:
        """Return in each worker, with its pipes; end this process when the run has ended."""
        if obstacles := find_obstacles({self._control.fileno()}):
            sys.stderr.write(f"no worker is forked, each collects by itself: {', '.join(obstacles)}\n")
            os._exit(1)
        workers = set()
        handler = signal.signal(signal.SIGINT, signal.SIG_IGN)  # the workers answer it, and xdist
        self._control.send(b"ready")
        while True:
            request, descriptors, *_ = socket.recv_fds(self._control, 20, 2, socket.MSG_CMSG_CLOEXEC)
            if not request:
                _end(workers)
            pid = os.fork()
            if not pid:
                self._control.close()
                signal.signal(signal.SIGINT, handler)
                return Popen2IO(os.fdopen(descriptors[1], "wb"), os.fdopen(descriptors[0], "rb"), EXECMODEL)
            workers.add(pid)
            for descriptor in descriptors:
                os.close(descriptor)
            self._control.send(str(pid).encode())

    def _begin_worker(self, io: Popen2IO) -> None:
        """Take on what xdist says that this worker is, and send what a worker has sent by now."""
        self.gateway = ForkGateway(io)
        channel = self.gateway.channels.get()
        if channel is None:
            os._exit(1)
        worker_input, _, options, _ = channel.receive()
        self.config.workerinput.update(worker_input)
        self.workerid = os.environ["PYTEST_XDIST_WORKER"] = worker_input["workerid"]
        self.config.option.basetemp = options.get("basetemp")
        self.config._tmp_path_factory = TempPathFactory.from_config(self.config, _ispytest=True)
        # The files that take what tests write: the forks would share one position in each.
        capture = self.config.pluginmanager.getplugin("capturemanager")
        if capture is not None:
            capture.stop_global_capturing()
            capture.start_global_capturing()
            capture.suspend_global_capture()
        self.channel = channel
        for event in self._early.events:
            channel.send(event)


def find_obstacles(expected: set[int]) -> list[str]:
    """What keeps this process from being forked, apart from the descriptors that are expected; empty if nothing does.

    Of threads a fork has one alone, and never sees the others release a lock. In a connection or the queue of an event
    loop, which imports opened, the forks would take messages from one another.
    """
    threads = len(list(Path("/proc/self/task").iterdir()))
    obstacles = [f"{threads} threads run after the imports"] if threads > 1 else []
    for link in Path("/proc/self/fd").iterdir():
        try:
            target = str(link.readlink())
        except FileNotFoundError:  # it read the folder
            continue
        if target.startswith(("socket:", "anon_inode:[event")) and int(link.name) not in {0, 1, 2} | expected:
            obstacles.append(f"the imports opened {target}")
    return obstacles


def _end(workers: set[int]) -> None:
    """End this process after the workers; kill those that do not end by themselves."""

    def kill(*_: object) -> None:
        for pid in workers:
            os.kill(pid, signal.SIGKILL)

    signal.signal(signal.SIGALRM, kill)
    signal.alarm(END_SECONDS)
    while workers:
        workers.discard(os.wait()[0])
    os._exit(0)
