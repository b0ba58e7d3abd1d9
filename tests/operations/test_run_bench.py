"""A load as an operation on a simulated server: its summary, its file, and an end in order whoever ends it."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from bezel.operations.bench.run_bench import RunArguments, run_bench
from bezel.operations.bench.sweep import SweepArguments
from bezel.operations.bench.target import options_of
from bezel.operations.changes.stack_lock import CancelledError
from bezel.operations.context import Context
from bezel_base.errors import UserError
from bezel_bench.result.document import load
from localcloud_support.client import until
from simulated_vllm_support.process import NAME, simulated_vllm
from tests.support.ended import has_ended, processes_with
from tests.support.operations.deployed import Deployed
from tests.support.operations.model_server import ModelServer

pytestmark = pytest.mark.slow  # a server, and a process for each load
SMALL = {"users": 2, "requests": 8, "output_tokens": 8, "simulated": True}
LONG = {"users": 2, "seconds": 600, "output_tokens": 8, "simulated": True}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with simulated_vllm(tmp_path_factory.mktemp("model")) as address:
        yield address


def arguments(url: str, **options: Any) -> RunArguments:
    return RunArguments.model_validate({"url": url, "out": "run.json", **options})


def test_a_run_has_its_figures_and_its_file_says_the_same(url: str, tmp_path: Path) -> None:
    shown: list[str] = []
    with Context(tmp_path, os.environ, show=shown.append) as context:
        result = run_bench(context, arguments(url, **SMALL, slo=("ttft=60000",), options=("warmup=2",)))
    whole = load(tmp_path / "run.json")
    (cell,) = result.cells
    assert (result.kind, result.nature, result.model, result.file) == ("run", "simulated", NAME, "run.json")
    assert (cell.requests, cell.users, cell.failures) == (8, 2, {})
    assert cell.state == whole.cells[0].state
    assert result.exit_code == (cell.state != "ok")
    figure = cell.figures["requests_per_second"]
    assert figure == pytest.approx(whole.cells[0].value("requests_per_second"), rel=1e-3)
    assert any("calibrates" in line for line in shown)
    assert any(note.startswith("2 warm-up requests") for note in result.notes)
    assert "written: run.json" in result.text()


def test_a_server_that_does_not_answer_is_the_error_of_the_command(tmp_path: Path) -> None:
    context = Context(tmp_path, os.environ, show=lambda _line: None)
    with pytest.raises(UserError, match="no server responds there"):
        run_bench(context, arguments("http://127.0.0.1:9"))
    with pytest.raises(UserError, match="max-concurrency"):
        run_bench(context, arguments("http://127.0.0.1:9", options=("max-concurrency=x",)))
    assert list(tmp_path.iterdir()) == []


def test_a_cancelled_load_ends_in_order_and_keeps_what_was_measured(url: str, tmp_path: Path) -> None:
    cancelled = threading.Event()

    def give_up() -> None:
        # The file of the samples so far has a first line of its own.
        until(lambda: any(file.read_bytes().count(b"\n") > 1 for file in tmp_path.glob("run.cells/*.spill")), 60)
        cancelled.set()

    watching = threading.Thread(target=give_up)
    watching.start()
    context = Context(tmp_path, os.environ, show=lambda _line: None, cancelled=cancelled)
    with pytest.raises(CancelledError, match="the cells so far are kept"):
        run_bench(context, arguments(url, **LONG))
    watching.join()
    assert processes_with(str(tmp_path / "run.json")) == []
    assert (tmp_path / "run.journal").is_file()
    (cell,) = load(tmp_path / "run.json").cells
    assert cell.requests > 0
    assert cell.client is not None
    assert cell.client.interrupted


STARTED = """
import os, sys
from pathlib import Path
from bezel.operations.bench.run_bench import RunArguments, run_bench
from bezel.operations.context import Context
show = lambda line: print(line, flush=True)
arguments = RunArguments(url=sys.argv[2], out="run.json", users=2, seconds=600, output_tokens=8)
run_bench(Context(Path(sys.argv[1]), os.environ, show=show), arguments)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its parent has ended")
def test_a_load_ends_with_the_process_that_asked_for_it(url: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", STARTED, str(tmp_path), url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as asking:
        assert asking.stdout is not None
        assert "calibrates" in asking.stdout.readline()
        (loading,) = processes_with(str(tmp_path / "run.json"))
        asking.send_signal(signal.SIGKILL)
        asking.wait(60)
        assert has_ended(loading)


def test_a_service_without_an_instance_is_loaded_only_on_request(cloud: Deployed) -> None:
    ModelServer(cloud, minimum=0)
    options = {"stack": "dev", "out": "run.json"}
    with pytest.raises(UserError, match="that would start one"):
        options_of(cloud.context, RunArguments.model_validate(options))
    assert options_of(cloud.context, RunArguments.model_validate({**options, "wake": True})) == ["--stack", "dev"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"users": 0},
        {"users": 100_000},
        {"requests": 10**7},
        {"seconds": 10**6},
        {"repeats": 1000},
        {"slo": ("ttft",)},
        {"model": "--url=http://example.com"},
        {"extra_body": "{}"},
    ],
)
def test_a_load_is_bounded_and_has_no_other_options(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        RunArguments.model_validate({"stack": "dev", "out": "x.json", **wrong})


@pytest.mark.parametrize("wrong", [{"contexts": "1,-2"}, {"users": "--full"}, {"max_minutes": 0}, {"metric": "x"}])
def test_a_sweep_is_bounded_too(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        SweepArguments.model_validate({"stack": "dev", "out": "x.json", **wrong})
