"""Load clients that tools/bench/compare_clients.py compares: their command lines, and parsers of their own figures."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from tools.docs.generated_sections import ROOT

if TYPE_CHECKING:
    from collections.abc import Mapping

LONGEST_SECONDS = 500
OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}


@dataclass(frozen=True)
class Load:
    """A load on the server that knows the truth.

    Attributes:
        url: Address of the server.
        users: Concurrent users.
        requests: Number of requests.
        tokens: Tokens of each response.
        ramp: Seconds in which the users begin, one after the other; 0: all at once.
        ca_file: Certificate that the client trusts for the server.
        rate: Requests per second of an open loop with Poisson's arrivals, in place of the users; 0: a closed loop.
    """

    url: str
    users: int
    requests: int
    tokens: int
    ramp: float = 0.0
    ca_file: str = ""
    rate: float = 0.0


@dataclass
class ClientFigures:
    """A client's own figures of one load, and its CPU time.

    Attributes:
        answered: Requests that got a response.
        seconds: Duration by the client.
        tokens: Tokens that it counted.
        ttft_ms: TTFT of each request.
        tpot_ms: TPOT of each request, where it reports it.
        cpu_seconds: CPU time of the process tree, its start included.
        instants: Of each request (own client only): sent, first and last token in ns of the day, tokens.
        more: Further output of the own client.
    """

    answered: int
    seconds: float
    tokens: int
    ttft_ms: list[float]
    tpot_ms: list[float]
    cpu_seconds: float = 0.0
    instants: list[list[int]] = field(default_factory=list)
    more: dict[str, Any] = field(default_factory=dict)


class Client:
    """A client; subclasses define its command line and parse its output.

    Attributes:
        name: Name in the tables.
        short: Requests of a run that consists mostly of its start.
        long: Requests of a run of one token each: some seconds where the machine is idle.
        variables: Added to the environment.
    """

    name = ""
    short = 100
    long = 60_000
    variables: ClassVar[Mapping[str, str]] = OFFLINE

    def command(self, load: Load, folder: Path) -> list[str]:
        """The command line."""
        raise NotImplementedError

    def read(self, output: str, folder: Path) -> ClientFigures:
        """Parse its output."""
        raise NotImplementedError

    def run(self, load: Load, core: int) -> ClientFigures:
        """Run it on one core.

        Raises:
            SystemExit: The client failed.
        """
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            done = subprocess.run(
                ["taskset", "-c", str(core), *self.command(load, folder)],
                env=os.environ | self.variables,
                cwd=ROOT,
                capture_output=True,
                text=True,
                timeout=LONGEST_SECONDS,
                check=False,
            )
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            if done.returncode:
                raise SystemExit(f"{self.name} ended with {done.returncode}:\n{(done.stdout + done.stderr)[-2000:]}")
            measured = self.read(done.stdout, folder)
        measured.cpu_seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return measured


class Own(Client):
    """The project's engine."""

    name = "bezel"

    def command(self, load: Load, folder: Path) -> list[str]:
        """tools/bench/own_client.py, in a process of its own."""
        flags = {
            "url": load.url,
            "users": load.users,
            "requests": load.requests,
            "tokens": load.tokens,
            "ramp": load.ramp,
            "ca-file": load.ca_file,
            "samples": folder / "samples.json",
        }
        options = [word for name, value in flags.items() for word in (f"--{name}", str(value))]
        return [sys.executable, str(ROOT / "tools/bench/own_client.py"), *options]

    def read(self, output: str, folder: Path) -> ClientFigures:
        """One line of JSON, and the samples."""
        report = json.loads(output.splitlines()[-1])
        rows = json.loads((folder / "samples.json").read_text())
        return ClientFigures(
            report["answered"],
            report["seconds"],
            report["tokens"],
            [(first - sent) / 1e6 for sent, first, _, _ in rows],
            [(last - first) / 1e6 / (count - 1) for _, first, last, count in rows if count > 1],
            instants=rows,
            more=report,
        )


@dataclass
class Vllm(Client):
    """`vllm bench serve`."""

    folder: Path
    tokenizer: Path
    short = 200
    long = 16_000

    def __post_init__(self) -> None:
        """Ask for its version."""
        self.name = f"vllm bench serve {version(self.folder, 'vllm')}"

    def command(self, load: Load, folder: Path) -> list[str]:
        """The documented form of a closed loop; evenly spaced requests are its way to begin users one by one."""
        rate = f"--request-rate {load.users / load.ramp} --burstiness inf " if load.ramp else ""
        limit = f"--request-rate {load.rate} " if load.rate else f"--max-concurrency {load.users} {rate}"
        flags = (
            f"--backend openai-chat --endpoint /v1/chat/completions --base-url {load.url} --model mock "
            f"--tokenizer {self.tokenizer} --dataset-name random --random-input-len 16 "
            f"--random-output-len {load.tokens} --num-prompts {load.requests} "
            f"{limit}--ignore-eos --temperature 0 --disable-tqdm --save-result --save-detailed "
            f"--result-dir {folder} --result-filename result.json"
        )
        return [str(self.folder / "vllm"), "bench", "serve", *flags.split()]

    def read(self, output: str, folder: Path) -> ClientFigures:
        """Its detailed result."""
        del output
        report = json.loads((folder / "result.json").read_text())
        return ClientFigures(
            report["completed"],
            report["duration"],
            report["total_output_tokens"],
            [ttft * 1e3 for ttft in report["ttfts"]],
            [
                (latency - ttft) * 1e3 / (count - 1)
                for latency, ttft, count in zip(
                    report["latencies"], report["ttfts"], report["output_lens"], strict=True
                )
                if count > 1
            ],
        )


@dataclass
class Guidellm(Client):
    """guidellm."""

    folder: Path
    tokenizer: Path
    long = 1_500

    def __post_init__(self) -> None:
        """Ask for its version."""
        self.name = f"guidellm {version(self.folder, 'guidellm')}"

    def command(self, load: Load, folder: Path) -> list[str]:
        """A benchmark of one level."""
        flags = (
            f"--backend kind=openai_http,target={load.url},model=mock "
            f"--profile kind=concurrent,streams={load.users},rampup_duration={load.ramp} "
            f"--constraint kind=max_requests,count={load.requests} "
            f"--data kind=synthetic_text,prompt_tokens=16,output_tokens={load.tokens} "
            f"--tokenizer kind=hf_auto,model={self.tokenizer} --output kind=json,path={folder / 'result.json'} "
            "--disable-console"
        )
        return [str(self.folder / "guidellm"), "run", *flags.split()]

    def read(self, output: str, folder: Path) -> ClientFigures:
        """Its report's requests."""
        del output
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


@dataclass
class Aiperf(Client):
    """aiperf."""

    folder: Path
    tokenizer: Path
    # Offline it takes a folder's path for a name on the Hub.
    variables: ClassVar[Mapping[str, str]] = {"DO_NOT_TRACK": "1"}

    def __post_init__(self) -> None:
        """Ask for its version."""
        self.name = f"aiperf {version(self.folder, 'aiperf')}"

    def command(self, load: Load, folder: Path) -> list[str]:
        """Its profile of one load, with the tokens that the server counts."""
        pace = f"--request-rate {load.rate}" if load.rate else f"--concurrency {load.users}"
        if load.ramp:
            pace += f" --concurrency-ramp-duration {load.ramp}"
        flags = (
            f"--model mock --url {load.url} --endpoint-type chat --streaming --tokenizer {self.tokenizer} "
            f"--use-server-token-count {pace} --request-count {load.requests} --prompt-input-tokens-mean 16 "
            f"--prompt-output-tokens-mean {load.tokens} --extra-inputs ignore_eos:true --ui none "
            f"--output-artifact-dir {folder}"
        )
        return [str(self.folder / "aiperf"), "profile", *flags.split()]

    def read(self, output: str, folder: Path) -> ClientFigures:
        """Its records of single requests."""
        del output
        lines = (folder / "profile_export.jsonl").read_text().splitlines()
        good = [record["metrics"] for record in map(json.loads, lines) if not record.get("error")]
        report = json.loads((folder / "profile_export_aiperf.json").read_text())
        return ClientFigures(
            len(good),
            report["benchmark_duration"]["avg"],
            round(report["total_osl"]["avg"]),
            [metrics["time_to_first_token"]["value"] for metrics in good],
            [metrics["inter_token_latency"]["value"] for metrics in good if "inter_token_latency" in metrics],
        )


def version(folder: Path, package: str) -> str:
    """The version of an installed package, by the Python beside its command."""
    code = f"import importlib.metadata as m; print(m.version({package!r}))"
    return subprocess.check_output([folder / "python", "-c", code], text=True).strip()
