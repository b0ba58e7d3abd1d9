"""The command `simulated-vllm`: its words, what it refuses before the start, and its ends."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import pytest

from bezel_simulated_vllm import command
from bezel_simulated_vllm.configuration.hardware import machine_from_environment
from bezel_simulated_vllm.configuration.hub import hub_models
from bezel_simulated_vllm.configuration.options import parse

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MODEL = "google/gemma-4-E2B-it"
HERE = ("--host", "127.0.0.1", "--port", "0")
FAST, SLOW = "100000", "0.001"
PROGRAM = "import sys; from bezel_simulated_vllm.command import main; sys.exit(main())"


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable of the simulation from the test's own environment."""
    for name in [name for name in os.environ if name.startswith(("LOCALCLOUD_", "HF_"))]:
        monkeypatch.delenv(name)


def call(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """Exit status of the command in this process."""
    monkeypatch.setattr(sys, "argv", ["simulated-vllm", *arguments])
    try:
        return command.main()
    except SystemExit as ended:  # as argparse ends a process
        return int(ended.code or 0)


@contextmanager
def run_command(speed: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """The command as a process."""
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *arguments],
        env=os.environ | {"LOCALCLOUD_SPEED": speed},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def line_with(process: subprocess.Popen[str], text: str) -> str:
    """The first line of its log with a text."""
    assert process.stdout
    return next(line for line in process.stdout if text in line)


def connect(process: subprocess.Popen[str], port: int) -> socket.socket:
    """A connection to the command's port, which it accepts a moment after it has named it."""
    while process.poll() is None:
        with suppress(ConnectionRefusedError):
            return socket.create_connection(("127.0.0.1", port), 10)
    raise AssertionError("the server has ended")


@pytest.mark.parametrize("word", [(), ("serve",)])
def test_command_refuses_an_option_in_the_words_of_vllm(
    word: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, *word, MODEL, "--max-model-length", "8") == 2
    output = capsys.readouterr()
    assert output.err.endswith("vllm: error: unrecognized arguments: --max-model-length 8\n")
    assert output.out == ""


@pytest.mark.parametrize(
    ("options", "variables", "name"),
    [
        (["--grpc"], {}, "--grpc"),
        (["--headless"], {}, "--headless"),
        ([], {"VLLM_USE_RUST_FRONTEND": "1"}, "VLLM_USE_RUST_FRONTEND"),
    ],
)
def test_another_program_than_the_http_server_is_refused_by_name(
    options: list[str],
    variables: dict[str, str],
    name: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for variable, value in variables.items():
        monkeypatch.setenv(variable, value)
    assert call(monkeypatch, MODEL, *HERE, *options) == 2
    assert name in capsys.readouterr().err


def test_word_serve_is_a_model_where_a_container_gives_it() -> None:
    assert parse(["serve"]).model == "serve"


@pytest.mark.parametrize("option", ["-v", "--version"])
def test_version_names_the_package_and_its_vllm(
    option: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, option) == 0
    name, version, release = capsys.readouterr().out.split(" ", 2)
    assert (name, release) == ("simulated-vllm", "(vLLM 0.32.0)\n")
    assert version[0].isdigit()


@pytest.mark.slow
def test_help_loads_neither_engine_nor_web_server() -> None:
    code = "import atexit, sys; atexit.register(lambda: print(*sys.modules, file=sys.stderr)); " + PROGRAM
    ended = subprocess.run(
        [sys.executable, "-c", code, "serve", "--help"], capture_output=True, text=True, timeout=100, check=True
    )
    assert ended.stdout.startswith("usage: vllm serve [model_tag] [options]")
    modules = set(ended.stderr.split())
    assert "bezel_simulated_vllm.configuration.options" in modules
    assert not modules & {"uvicorn", "starlette", "pydantic", "ssl", "bezel_simulated_vllm.startup"}


def test_command_reports_every_wrong_variable(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LOCALCLOUD_SPEED", "fast")
    monkeypatch.setenv("LOCALCLOUD_SERVING_SPEED", "-1")
    monkeypatch.setenv("LOCALCLOUD_HARDWARE", "nvidia-l4")
    assert call(monkeypatch, MODEL) == 2
    error = capsys.readouterr().err
    assert error.startswith("3 problems.")
    assert error.count("Repair: ") == 3
    for name in ("LOCALCLOUD_SPEED = fast", "LOCALCLOUD_SERVING_SPEED = -1", "LOCALCLOUD_HARDWARE = nvidia-l4"):
        assert name in error


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("LOCALCLOUD_HARDWARE", "[1]", "expected an object, got list"),
        ("LOCALCLOUD_HARDWARE", '{"accelerator": "a100"}', "it cannot be simulated"),
        ("LOCALCLOUD_HARDWARE", '{"accelerators": "many"}', "it describes no machine"),
        ("LOCALCLOUD_MOUNTS", "{", "it cannot be read as JSON"),
        ("LOCALCLOUD_LISTEN", "127.0.0.1:http", "it names no port to listen on"),
    ],
)
def test_command_explains_a_wrong_variable(
    name: str, value: str, expected: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(name, value)
    assert call(monkeypatch, MODEL) == 2
    error = capsys.readouterr().err
    assert error.startswith(name)
    assert expected in error
    assert "Repair: " in error


def test_command_explains_a_missing_config_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, MODEL, "--config", str(tmp_path / "none.yaml")) == 2
    assert capsys.readouterr().err.startswith(f"--config = {tmp_path / 'none.yaml'}\n")


@pytest.mark.parametrize("arguments", [(), ("serve", *HERE)])
def test_command_without_a_model_names_what_is_missing(
    arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, *arguments) == 2
    output = capsys.readouterr()
    assert output.err.startswith("MODEL = (not set)\n   vLLM would download Qwen/Qwen3-0.6B")
    assert (
        f"Repair: name a model of the catalogue or the folder of one, e.g. `simulated-vllm serve {MODEL}`" in output.err
    )
    assert not output.out


def test_command_asks_a_named_hub_for_the_default_model(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{port}")
    monkeypatch.setenv("LOCALCLOUD_SPEED", FAST)
    assert call(monkeypatch, *HERE) == 1
    output = capsys.readouterr()
    assert "(not set)" not in output.err
    assert "Qwen/Qwen3-0.6B" in output.out


def test_command_refuses_a_taken_port_before_the_start(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert call(monkeypatch, MODEL, "--host", "127.0.0.1", "--port", port) == 1
    output = capsys.readouterr()
    assert output.err.startswith(f"--port = {port}\n   another process listens on it")
    assert output.out == ""


def test_command_refuses_a_host_of_another_machine(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, MODEL, "--host", "192.0.2.1", "--port", "0") == 1
    assert capsys.readouterr().err.startswith("address = 192.0.2.1\n")


@pytest.mark.parametrize(
    ("name", "variables", "is_there"),
    [
        (MODEL, {}, True),
        ("google/gemma-4-12B-it-assistant", {}, True),
        ("google/gemma-9-1B-it", {}, False),
        (MODEL, {"HF_HUB_OFFLINE": "1"}, False),
    ],
)
def test_models_of_the_catalogue_need_no_hub(name: str, variables: dict[str, str], is_there: bool) -> None:
    with hub_models(parse([name]), machine_from_environment({}), variables) as machine:
        assert (name in machine.mounts) is is_there
        folder = machine.mounts.get(name)
        assert folder is None or json.loads((folder / "config.json").read_text())["model_type"]
    assert folder is None or not folder.exists()


@pytest.mark.slow
def test_command_serves_a_model_and_ends_with_status_0() -> None:
    with run_command(FAST, "serve", MODEL, *HERE) as process:
        port = int(line_with(process, "Starting vLLM server on http://127.0.0.1:").rpartition(":")[2])
        with connect(process, port) as connection:
            connection.sendall(b"GET /v1/models HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            answer = b"".join(iter(lambda: connection.recv(65536), b""))
        assert answer.startswith(b"HTTP/1.1 200 ")
        assert f'"id":"{MODEL}"'.encode() in answer
        assert b"\r\nserver: uvicorn\r\n" in answer
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


@pytest.mark.slow
def test_interrupt_ends_a_start_without_a_traceback() -> None:
    with run_command(SLOW, MODEL, *HERE) as process:
        line_with(process, "non-default args")
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        assert process.stderr
        assert process.stderr.read() == ""
