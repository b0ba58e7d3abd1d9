"""`bezel-bench run` as a user calls it, as a client of the comparison."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from bezel_bench.result.sample_file import read_samples
from tools.bench.clients.load_client import Client, ClientFigures, Load, distribution_version

if TYPE_CHECKING:
    from pathlib import Path


@dataclass
class Bezel(Client):
    """`bezel-bench run`.

    Attributes:
        path: Its command.
    """

    path: Path
    # 1: the load is busy_machine, client_limited, … ; its result is written.
    exits = (0, 1)

    @cached_property
    def name(self) -> str:
        """With its version, and whether its engine is compiled."""
        code = "import bezel_bench; print(getattr(bezel_bench, 'ENGINE', ''))"
        engine = subprocess.check_output([self.path.parent / "python", "-c", code], text=True).strip()
        version = distribution_version(self.path.parent, "bezel-bench")
        return f"bezel-bench {version} ({engine})" if engine else f"bezel-bench {version}"

    def command(self, load: Load, folder: Path) -> list[str]:
        """A closed loop, or an open one with Poisson's arrivals."""
        pace = f"--rate {load.rate:g} --seed {load.seed}" if load.rate else f"--users {load.users}"
        prompts = f"--file {load.prompts}" if load.prompts else f"--input-tokens {load.input_tokens}"
        flags = f"--url {load.url} --public {pace} --requests {load.requests} {prompts} --output-tokens {load.tokens}"
        flags += f" --ramp {load.ramp:g}" if load.ramp else ""
        flags += f" --ca-file {load.ca_file}" if load.ca_file else ""
        return [str(self.path), "run", *flags.split(), "--out", str(folder / "result.json")]

    def read(self, folder: Path) -> ClientFigures:
        """The samples beside its result."""
        (cell,) = json.loads((folder / "result.json").read_text())["cells"]
        samples, _ = read_samples(folder / "result.samples.npz")[cell["id"]]
        good = samples.good()
        sent, first, last, tokens = (good[name] for name in ("sent", "first", "last", "output_tokens"))
        several = tokens > 1
        return ClientFigures(
            len(good),
            float(good["done"].max() - sent.min()) / 1e9,
            int(tokens.sum()),
            ((first - sent) / 1e6).tolist(),
            ((last - first)[several] / 1e6 / (tokens[several] - 1)).tolist(),
            (good.gaps() / 1e6).tolist(),
            [list(row) for row in zip(sent.tolist(), first.tolist(), last.tolist(), strict=True)],
            cell["state"],
        )
