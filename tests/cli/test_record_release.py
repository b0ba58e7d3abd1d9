"""`bezel catalog record-release`: one run records a vLLM and its server, and says what changed and for which stacks.

The vLLM is the small package of `test_record_options`, with request models, a registry and a server of its own.
"""

from __future__ import annotations

import gzip
import json
import shutil
import sys
from typing import TYPE_CHECKING

import pytest

from bezel.cli.catalog.record_release import record_release
from bezel.cli.catalog.touched_stacks import touched_lines
from bezel.cli.command_table import command_table
from bezel_base.errors import UserError
from bezel_catalog import vllm_options
from bezel_catalog.vllm.release_changes import Changes, option_changes, server_changes
from bezel_catalog.vllm.servers import recorded_server
from tests.cli.test_record_options import Build

if TYPE_CHECKING:
    from pathlib import Path

VERSION = "0.34.0"
BODIES = """
from pydantic import BaseModel, model_validator

class ChatCompletionRequest(BaseModel):
    messages: list[dict]
    only_in_this_release: int = 0

    @model_validator(mode="before")
    @classmethod
    def check_something_new(cls, data):
        return data
"""
REGISTRY = """
class ModelRegistry:
    get_supported_archs = staticmethod(lambda: ["Gemma4ForCausalLM", "NewForCausalLM"])
"""
SERVER = """
import http.server
import json
import sys

PAGES = {
    "/health": "",
    "/version": json.dumps({"version": VERSION}),
    "/openapi.json": json.dumps({"paths": {"/v1/chat/completions": {}, "/v1/new": {}}, "components": {}}),
    "/metrics": '# HELP vllm:new_total New.\\nvllm:new_total 0\\nvllm:cache_config_info{block_size="16"} 1\\n',
}

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        content = PAGES[self.path].encode()
        self.send_response(200)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass

port = next(int(word.partition("=")[2]) for word in sys.argv if word.startswith("--port="))
http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
"""


class Release(Build):
    """A build whose server starts."""

    def __init__(self, folder: Path, version: str = VERSION, served: str = VERSION) -> None:
        super().__init__(folder, version)
        for package in ("entrypoints/openai", "entrypoints/openai/chat_completion", "entrypoints/cli"):
            self._write(f"{package}/__init__", "")
        self._write("entrypoints/openai/chat_completion/protocol", BODIES)
        for package in ("model_executor", "model_executor/models"):
            self._write(f"{package}/__init__", "")
        self._write("model_executor/models/registry", REGISTRY)
        self._write("entrypoints/cli/main", f"VERSION = {served!r}\n{SERVER}")


@pytest.mark.slow
def test_one_run_records_a_release_and_says_what_changed(tmp_path: Path) -> None:
    build = Release(tmp_path)
    build.stack(**{"async-scheduling": True, "max-num-seqs": 4})
    code, text = build.bezel("catalog", "record-release", sys.executable)
    assert code == 0, text
    assert f"Recorded vLLM {VERSION}:" in text
    assert "2 endpoints, 1 request models, 1 metrics, 2 architectures." in text
    assert "Since 0.33.0:" in text
    assert "endpoints, new: /v1/new" in text
    assert "+only_in_this_release" in text
    assert "functions of bodies, new: ChatCompletionRequest.check_something_new" in text
    assert "architectures, new: NewForCausalLM" in text
    assert "async-scheduling" in next(line for line in text.splitlines() if line.startswith("  options, gone"))
    assert "Stack build sets what changed: async-scheduling" in text
    server = build.recordings / "servers" / VERSION
    assert json.loads((server / "metrics.json").read_text())["cache_config"] == {"block_size": "16"}
    assert "/v1/new" in json.loads(gzip.decompress((server / "openapi.json.gz").read_bytes()))["paths"]
    assert build.bezel("catalog", "check")[0] == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("served", "broken", "message"),
    [
        ("0.35.0", "", "its server calls itself 0.35.0"),
        (VERSION, "entrypoints/cli", "its server ended before it was healthy"),
        (VERSION, "model_executor", "could not record the request models"),
    ],
)
def test_a_server_that_does_not_fit_leaves_no_recording(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, served: str, broken: str, message: str
) -> None:
    build = Release(tmp_path, served=served)
    if broken:
        shutil.rmtree(build.site / "vllm" / broken)
    monkeypatch.setenv("PYTHONPATH", f"{build.folder}:{build.site}")
    with pytest.raises(UserError, match=message):
        record_release(sys.executable, name=None, replace=False, folder=build.recordings)
    assert not (build.recordings / f"{VERSION}.json").exists()
    assert not (build.recordings / "servers" / VERSION).exists()


def test_record_options_is_another_name_of_record_release() -> None:
    commands = command_table().spec["commands"]["catalog"]["commands"]
    alias, command = ({**commands[name], "help": ""} for name in ("record-options", "record-release"))
    assert alias == command
    assert alias["run"] == "bezel.cli.catalog.record_release:run"


@pytest.mark.slow
def test_recorded_releases_differ_by_their_names() -> None:
    changes = {
        change.kind: change
        for change in [
            *option_changes(vllm_options("0.32.0"), vllm_options("0.33.0")),
            *server_changes(recorded_server("0.32.0"), recorded_server("0.33.0")),
        ]
    }
    assert changes["options"].added == ("monokernel", "reasoning-effort-map", "sleep-mode-backend", "watchdog-config")
    assert changes["options"].removed == ()
    assert changes["options"].changed["spec-method"] == "choices +step5_mtp -medusa -mlp_speculator"
    assert "enable-chunked-prefill" not in changes["options"].changed  # its other negation is taken as before
    assert changes["endpoints"].added == ("/v1/decisions",)
    assert "+return_weight_versions" in changes["bodies"].changed["chat"]
    assert not any(change.touching for change in option_changes(vllm_options("0.33.0"), vllm_options("0.33.0")))


@pytest.mark.parametrize(
    ("name", "expected"), [("max-num-seqs", "sets what changed: max-num-seqs"), ("none", "No stack")]
)
def test_only_stacks_that_set_what_changed_are_named(tmp_path: Path, name: str, expected: str) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: one\nruntime: python\n")
    settings = {"bezel:vllm": {"max_num_seqs": 8}, "bezel:model": "gemma-4-e2b-it"}
    (tmp_path / "Pulumi.one.yaml").write_text(json.dumps({"config": settings}))
    lines = touched_lines([Changes("options", changed={name: "default 1 -> 2"})], tmp_path)
    assert expected in "\n".join(lines)
