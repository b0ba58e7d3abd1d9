"""vLLM's load clients: `vllm bench serve` and the native `vllm-rs bench serve` of its wheel, with the same options."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING

from tools.bench.clients.load_client import Client, ClientFigures, Load, distribution_version

if TYPE_CHECKING:
    from pathlib import Path


@dataclass
class VllmRs(Client):
    """`vllm-rs bench serve`: the native client.

    Attributes:
        path: Its command.
        tokenizer: Folder of a tokenizer, of which it makes its prompts.
    """

    path: Path
    tokenizer: Path

    @cached_property
    def name(self) -> str:
        """With its version."""
        version = subprocess.check_output([self.path, "--version"], text=True).split()[-1]
        return f"vllm-rs bench serve {version}"

    def command(self, load: Load, folder: Path) -> list[str]:
        """The documented form; evenly spaced requests are its way to begin users one by one."""
        rate = f"--request-rate {load.users / load.ramp:g} --burstiness inf " if load.ramp else ""
        limit = (
            f"--request-rate {load.rate:g} --seed {load.seed} "
            if load.rate
            else f"--max-concurrency {load.users} {rate}"
        )
        prompts = (
            f"--dataset-name custom --dataset-path {load.prompts} --custom-output-len {load.tokens}"
            if load.prompts
            else f"--dataset-name random --random-input-len {load.input_tokens} --random-output-len {load.tokens}"
        )
        flags = (
            f"--backend openai-chat --endpoint /v1/chat/completions --base-url {load.url} --model {load.model} "
            f"--tokenizer {self.tokenizer} {prompts} --num-prompts {load.requests} "
            f"{limit}--ignore-eos --temperature 0 --disable-tqdm --save-result --save-detailed "
            f"--result-dir {folder} --result-filename result.json"
        )
        return [str(self.path), "bench", "serve", *flags.split()]

    def read(self, folder: Path) -> ClientFigures:
        """Its detailed result."""
        report = json.loads((folder / "result.json").read_text())
        requests = [
            row
            for *row, error in zip(
                *(report[key] for key in ("ttfts", "latencies", "output_lens", "itls", "errors")), strict=True
            )
            if not error
        ]
        return ClientFigures(
            report["completed"],
            report["duration"],
            report["total_output_tokens"],
            [ttft * 1e3 for ttft, *_ in requests],
            [(latency - ttft) * 1e3 / (count - 1) for ttft, latency, count, _ in requests if count > 1],
            [gap * 1e3 for gap in chain.from_iterable(gaps for *_, gaps in requests)],
        )


@dataclass
class Vllm(VllmRs):
    """`vllm bench serve`."""

    requests = (8_000, 200)
    slow = True

    @cached_property
    def name(self) -> str:
        """With its version."""
        return f"vllm bench serve {distribution_version(self.path.parent, 'vllm')}"
