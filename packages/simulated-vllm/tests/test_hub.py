"""Models and adapters of a hub at the wire: only the configuration is downloaded, of the revision that is asked for."""

from __future__ import annotations

import json
import struct
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

from bezel_simulated_vllm.configuration.adapters import LoRAModulePath, load_adapters
from bezel_simulated_vllm.configuration.failures import StartError
from bezel_simulated_vllm.configuration.hardware import machine_from_environment
from bezel_simulated_vllm.configuration.hub import adapter_reader, hub_models
from bezel_simulated_vllm.configuration.options import parse

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME, COMMIT, TOKEN = "acme/tiny", "c" * 40, "hf_plantedPlanted"
HEADER = json.dumps({"a": {"dtype": "BF16", "shape": [512], "data_offsets": [0, 1024]}}).encode()
WEIGHTS = struct.pack("<Q", len(HEADER)) + HEADER + bytes(1024)
ADAPTER = {"r": 8, "lora_alpha": 16, "target_modules": ["q_proj"]}


@contextmanager
def hub(files: dict[str, bytes], *, token: str = "") -> Iterator[tuple[dict[str, str], list[tuple[str, str]]]]:
    """A hub with these files by their paths; its variables, and the paths and ranges that were asked for."""
    asked: list[tuple[str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append((self.path, self.headers.get("Range", "")))
            is_allowed = not token or self.headers.get("Authorization") == f"Bearer {token}"
            content = files.get(self.path.lstrip("/")) if is_allowed else None
            self.send_response(404 if content is None else 200)
            self.send_header("Content-Length", str(len(content or b"")))
            self.end_headers()
            self.wfile.write(content or b"")

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield {"HF_ENDPOINT": f"http://127.0.0.1:{server.server_port}"}, asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def model_files(revision: str = "main", config: bytes = b"{}") -> dict[str, bytes]:
    return {
        f"{NAME}/resolve/{revision}/config.json": config,
        f"{NAME}/resolve/{revision}/model.safetensors": WEIGHTS,
    }


def test_revision_of_the_command_line_is_downloaded() -> None:
    files = model_files("main", b'{"of": "main"}') | model_files(COMMIT, b'{"of": "commit"}')
    options = parse([NAME, f"--revision={COMMIT}"])
    with hub(files) as (variables, _), hub_models(options, machine_from_environment({}), variables) as machine:
        assert json.loads((machine.mounts[NAME] / "config.json").read_text()) == {"of": "commit"}
    with (
        hub(model_files()) as (variables, _),
        pytest.raises(StartError, match="not a valid model identifier"),
        hub_models(options, machine_from_environment({}), variables),
    ):
        pass


def test_size_of_one_file_is_read_from_its_header() -> None:
    machine = machine_from_environment({})
    with hub(model_files()) as (variables, asked), hub_models(parse([NAME]), machine, variables) as mounted:
        index = json.loads((mounted.mounts[NAME] / "model.safetensors.index.json").read_text())
        assert index["metadata"]["total_size"] == 1024
        assert not (mounted.mounts[NAME] / "model.safetensors").exists()
    assert [ranges for path, ranges in asked if path.endswith("model.safetensors")] == [
        "bytes=0-7",
        f"bytes=0-{len(HEADER) + 7}",
    ]


def test_gated_model_needs_the_token_of_the_container() -> None:
    machine = machine_from_environment({})
    with hub(model_files(), token=TOKEN) as (variables, _):
        with hub_models(parse([NAME]), machine, variables | {"HF_TOKEN": TOKEN}) as mounted:
            assert NAME in mounted.mounts
        with pytest.raises(StartError), hub_models(parse([NAME]), machine, variables):
            pass


def test_adapter_of_a_hub_is_loaded_by_its_configuration() -> None:
    folder = "acme/sql-lora/resolve/main"
    files = {f"{folder}/adapter_config.json": json.dumps(ADAPTER).encode(), f"{folder}/adapter_model.safetensors": b"x"}
    options = parse([NAME, "--enable-lora", "--lora-modules", "sql=acme/sql-lora"])
    with hub(files) as (variables, asked):
        read = adapter_reader(machine_from_environment({}), variables)
        assert load_adapters(options, [NAME], read) == (LoRAModulePath("sql", "acme/sql-lora"),)
    assert {ranges for path, ranges in asked if path.endswith("adapter_model.safetensors")} == {"bytes=0-0"}


@pytest.mark.parametrize("variables", [{}, {"HF_HUB_OFFLINE": "1"}, {"HF_ENDPOINT": "http://127.0.0.1:9"}])
def test_adapter_that_no_hub_gives_ends_the_start(variables: dict[str, str]) -> None:
    options = parse([NAME, "--enable-lora", "--lora-modules", "sql=acme/sql-lora"])
    with hub({}) as (there, _):
        read = adapter_reader(machine_from_environment({}), there | variables)
        with pytest.raises(StartError, match="No adapter found for acme/sql-lora"):
            load_adapters(options, [NAME], read)
