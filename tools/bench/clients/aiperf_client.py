"""aiperf as a client of the comparison."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from tools.bench.clients.load_client import Client, ClientFigures, Load, distribution_version

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


@dataclass
class Aiperf(Client):
    """`aiperf profile`.

    Attributes:
        path: Its command.
        tokenizer: Folder of a tokenizer, of which it makes its prompts.
    """

    path: Path
    tokenizer: Path
    # Offline it takes a folder's path for a name on the Hub.
    variables: ClassVar[Mapping[str, str]] = {"DO_NOT_TRACK": "1"}
    requests = (3_000, 200)
    slow = True

    @cached_property
    def name(self) -> str:
        """With its version."""
        return f"aiperf {distribution_version(self.path.parent, 'aiperf')}"

    def command(self, load: Load, folder: Path) -> list[str]:
        """Its profile of one load, with the tokens that the server counts."""
        pace = f"--request-rate {load.rate:g}" if load.rate else f"--concurrency {load.users}"
        if load.ramp:
            pace += f" --concurrency-ramp-duration {load.ramp:g}"
        flags = (
            f"--model {load.model} --url {load.url} --endpoint-type chat --streaming --tokenizer {self.tokenizer} "
            f"--use-server-token-count {pace} --request-count {load.requests} "
            f"--prompt-input-tokens-mean {load.input_tokens} --prompt-output-tokens-mean {load.tokens} "
            f"--extra-inputs ignore_eos:true --ui none --output-artifact-dir {folder}"
        )
        return [str(self.path), "profile", *flags.split()]

    def read(self, folder: Path) -> ClientFigures:
        """Its records of single requests."""
        lines = (folder / "profile_export.jsonl").read_text().splitlines()
        good = [record["metrics"] for record in map(json.loads, lines) if not record.get("error")]
        report = json.loads((folder / "profile_export_aiperf.json").read_text())
        return ClientFigures(
            len(good),
            report["benchmark_duration"]["avg"],
            round(report["total_osl"]["avg"]),
            [metrics["time_to_first_token"]["value"] for metrics in good],
            [metrics["inter_token_latency"]["value"] for metrics in good if "inter_token_latency" in metrics],
            [gap for metrics in good for gap in metrics.get("inter_chunk_latency", {"value": []})["value"]],
        )
