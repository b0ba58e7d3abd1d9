"""The process from which workers are forked: it begins as xdist's own program for a worker does, and collects."""

import os
import socket
import sys
from pathlib import Path
from typing import Any

import pytest
from _pytest.config import _prepareconfig


def collect(order: dict[str, Any]) -> None:
    """Collect with the arguments of the run, then fork workers as long as they are asked for.

    An order has the descriptor of the socket that asks for forks (`control`), the import `path`, the `arguments` of
    pytest and the `input` that all workers share. What goes wrong before the first fork is for the workers to say.
    """
    sys.path[:] = order["path"]
    with Path(os.devnull).open() as null:
        os.dup2(null.fileno(), 0)
    sys.stdin = os.fdopen(0, closefd=False)
    os.environ["PYTEST_XDIST_TESTRUNUID"] = order["input"]["testrunuid"]
    os.environ["PYTEST_XDIST_WORKER_COUNT"] = str(order["input"]["workercount"])
    config = _prepareconfig(order["arguments"], None)
    # Not before: pytest rewrites the assertions of the plugins that it loads.
    import xdist.remote

    from tests.support.worker_forks.interactor import ForkInteractor

    xdist.remote.setup_config(config, basetemp=None)
    config._parser.prog = Path(order["input"]["mainargv"][0]).name
    config.workerinput = order["input"]
    config.workeroutput = {}
    interactor = ForkInteractor(config, socket.socket(fileno=order["control"]))
    try:
        config.hook.pytest_cmdline_main(config=config)
    except pytest.UsageError:
        if interactor.gateway is not None:
            raise
    finally:
        if interactor.gateway is not None:
            interactor.channel.close()
            interactor.gateway.end()
