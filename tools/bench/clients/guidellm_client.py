"""guidellm as a client of the comparison."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from tools.bench.clients.load_client import Client, ClientFigures, Load, distribution_version

if TYPE_CHECKING:
    from pathlib import Path


@dataclass
class Guidellm(Client):
    """`guidellm run`.

    Attributes:
        path: Its command.
        tokenizer: Folder of a tokenizer, of which it makes its prompts.
    """

    path: Path
    tokenizer: Path
    requests = (1_000, 100)
    slow = True

    @cached_property
    def name(self) -> str:
        """With its version."""
        return f"guidellm {distribution_version(self.path.parent, 'guidellm')}"

    def command(self, load: Load, folder: Path) -> list[str]:
        """A benchmark of one level, its users begun in its ramp."""
        profile = (
            f"kind=poisson,rate={load.rate:g}"
            if load.rate
            else f"kind=concurrent,streams={load.users},rampup_duration={load.ramp:g}"
        )
        flags = (
            f"--backend kind=openai_http,target={load.url},model={load.model} --profile {profile} "
            f"--constraint kind=max_requests,count={load.requests} "
            f"--data kind=synthetic_text,prompt_tokens={load.input_tokens},output_tokens={load.tokens} "
            f"--tokenizer kind=hf_auto,model={self.tokenizer} --output kind=json,path={folder / 'result.json'} "
            "--disable-console"
        )
        return [str(self.path), "run", *flags.split()]

    def read(self, folder: Path) -> ClientFigures:
        """Its report's requests. It has no time between two tokens: its ITL is a request's mean."""
        report = json.loads((folder / "result.json").read_text())["benchmarks"][0]
        good = report["requests"]["successful"]
        begun = [request["request_start_time"] for request in good]
        ended = [request["request_end_time"] for request in good]
        return ClientFigures(
            len(good),
            max(ended) - min(begun),
            sum(request["output_tokens"] for request in good),
            [request["time_to_first_token_ms"] for request in good],
            # Its own time per output token includes the time to the first token.
            [
                (request["request_latency"] * 1e3 - request["time_to_first_token_ms"]) / (request["output_tokens"] - 1)
                for request in good
                if request["output_tokens"] > 1
            ],
        )
