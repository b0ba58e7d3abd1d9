"""Server of an installed vLLM with a made-up model of some kilobytes, asked for what it publishes.

Owns the model, the start and the end of the server, and the requests: /version, /openapi.json, /metrics. The model has
no weights (they are dummies) and a tokenizer of single letters, so that nothing is downloaded.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bezel_base.console import note
from bezel_base.errors import Problem, UserError
from bezel_base.loopback.listeners import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator

START_SECONDS = 900.0
"""Time limit of the start: imports, compiling and warm-up, on a busy machine."""
_ASK_SECONDS = 60.0
_END_SECONDS = 20.0
_LOG_LINES = 3
_ENVIRONMENT = {
    **dict.fromkeys(("VLLM_NO_USAGE_STATS", "DO_NOT_TRACK", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"), "1"),
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "PYTHONSAFEPATH": "1",
}
_OPTIONS = (
    *("--host=127.0.0.1", "--served-model-name=tiny", "--load-format=dummy", "--enforce-eager", "--max-model-len=64"),
    *("--max-num-seqs=4", "--kv-cache-memory-bytes=64M", "--enable-auto-tool-choice", "--tool-call-parser=hermes"),
)
_SPECIAL = ("<unk>", "<s>", "</s>")
_WORDS = (*_SPECIAL, *"abcdefghijklmnopqrstuvwxyz")
_CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 32,
    "vocab_size": 32,
    "max_position_embeddings": 128,
    "rms_norm_eps": 1e-6,
    "torch_dtype": "bfloat16",
    "tie_word_embeddings": True,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
_TOKENIZER = {
    "version": "1.0",
    **dict.fromkeys(("truncation", "padding", "normalizer", "post_processor", "decoder")),
    "added_tokens": [
        {"id": number, "content": word, "special": True}
        | dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
        for number, word in enumerate(_SPECIAL)
    ],
    "pre_tokenizer": {"type": "Whitespace"},
    "model": {"type": "WordLevel", "vocab": {word: number for number, word in enumerate(_WORDS)}, "unk_token": "<unk>"},
}
_TOKENIZER_CONFIG = {
    "tokenizer_class": "PreTrainedTokenizerFast",
    "bos_token": "<s>",
    "eos_token": "</s>",
    "unk_token": "<unk>",
    "chat_template": "{% for message in messages %}{{ message['content'] }} {% endfor %}",
}


@dataclass(frozen=True)
class Published:
    """What a server says of itself.

    Attributes:
        version: the release at /version, e.g. "0.33.0".
        document: the text of /openapi.json.
        metrics: the text of /metrics.
    """

    version: str
    document: bytes
    metrics: str


def ask_server(python: str) -> Published:
    """Start the vLLM of an interpreter's environment, and return what its server publishes.

    Raises:
        UserError: it does not start within START_SECONDS, or answers something else; the text has its last lines.
    """
    with tempfile.TemporaryDirectory(prefix="bezel-record-") as folder:
        model = Path(folder, "model")
        model.mkdir()
        for name, content in (
            ("config.json", _CONFIG),
            ("tokenizer.json", _TOKENIZER),
            ("tokenizer_config.json", _TOKENIZER_CONFIG),
        ):
            (model / name).write_text(json.dumps(content), encoding="utf-8")
        port, log = free_port(), Path(folder, "log")
        note(f"starting the vLLM of {python}, which takes a minute or more")
        with _running(python, model, port, log) as server:
            _wait(server, port, log, python)
            version = str(json.loads(_get(port, "/version"))["version"]).partition("+")[0]
            return Published(version, _get(port, "/openapi.json"), _get(port, "/metrics").decode())


@contextmanager
def _running(python: str, model: Path, port: int, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The server's process; its whole group is ended, since the engine is a process of its own."""
    line = [python, "-m", "vllm.entrypoints.cli.main", "serve", str(model), f"--port={port}", *_OPTIONS]
    path = os.pathsep.join([str(Path(python).parent), os.environ.get("PATH", os.defpath)])
    environment = {key: value for key, value in os.environ.items() if key != "VLLM_CPU_KVCACHE_SPACE"}
    with log.open("wb") as out:
        process = subprocess.Popen(
            line,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
            env=environment | _ENVIRONMENT | {"PATH": path},
        )
        try:
            yield process
        finally:
            for number in (signal.SIGTERM, signal.SIGKILL):
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, number)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_END_SECONDS)


def _wait(server: subprocess.Popen[bytes], port: int, log: Path, python: str) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        with suppress(OSError):
            _get(port, "/health")
            return
        ended = server.poll() is not None
        if ended or time.monotonic() > deadline:
            lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-_LOG_LINES:]
            what = "ended before it was healthy" if ended else f"was not healthy within {START_SECONDS:g} s"
            consequence = f"its server {what}, so nothing is recorded: {' | '.join(lines) or 'no output'}."
            repair = "choose the interpreter of an environment in which `vllm serve` starts on this machine."
            raise UserError(Problem("PYTHON", python, consequence, repair))
        time.sleep(0.2)


def _get(port: int, path: str) -> bytes:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=_ASK_SECONDS) as response:
        return bytes(response.read())
