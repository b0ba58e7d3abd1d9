"""Send one load with the project's engine and print its figures as one line of JSON: a child of `compare_clients`.

A process of its own, so that its CPU time and memory are measured like those of any other client. With --samples it
writes each request's instants to a file, by the monotonic clock, as the server's log does.
"""

from __future__ import annotations

import argparse
import json
import resource
from collections import Counter
from pathlib import Path

from bezel_bench.client.load_engine import run_load
from bezel_bench.load.plan import Body, Closed, Load, PromptPlan, Stop, Target


class Bodies:
    """Short prompts that begin with their number.

    Attributes:
        turns: One request each.
    """

    turns = 1

    def __init__(self, tokens: int) -> None:
        """Args: tokens: requested by each body."""
        self._tokens = tokens

    def body(self, index: int, turn: int = 0) -> Body:
        """The request of that number."""
        text = (
            f'{{"model":"mock","messages":[{{"role":"user","content":"{index + turn} hello, how are you today?"}}],'
            f'"max_tokens":{self._tokens},"ignore_eos":true,"stream":true,"stream_options":{{"include_usage":true}}}}'
        )
        return Body(text.encode(), self._tokens)


def main() -> None:
    """Send the load and print its figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--url", required=True)
    parser.add_argument("--users", type=int, required=True)
    parser.add_argument("--requests", type=int, required=True)
    parser.add_argument("--tokens", type=int, required=True)
    parser.add_argument("--ramp", type=float, default=0.0)
    parser.add_argument("--ca-file", default="")
    parser.add_argument("--samples", type=Path)
    options = parser.parse_args()
    load = Load(
        target=Target(options.url, "mock", public=True, ca_file=options.ca_file),
        pattern=Closed(options.users),
        stop=Stop(options.requests),
        prompts=PromptPlan(output_tokens=options.tokens),
        ramp_seconds=options.ramp,
    )
    measured = run_load(load, Bodies(options.tokens), dict, lambda _: None)
    samples = [sample for sample in measured.samples if not sample.failure]
    if options.samples:
        rows = [[s.sent, s.first, s.last, s.output_tokens] for s in samples]
        options.samples.write_text(json.dumps(rows))
    health = measured.client
    line = {
        "answered": len(samples),
        "failures": dict(Counter(sample.failure for sample in measured.samples if sample.failure)),
        "seconds": health.wall_seconds,
        "chunks": sum(len(sample.chunks) for sample in samples),
        "tokens": sum(sample.output_tokens for sample in samples),
        "send_cpu_seconds": health.cpu_seconds,
        "cpu_share": health.busiest_cpu_share,
        "lag_p99_ms": health.loop_lag_p99_ms,
        "reconnections": health.reconnections,
        "memory_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "at_once": most_at_once(measured.samples),
    }
    print(json.dumps(line))


def most_at_once(samples: list) -> int:  # type: ignore[type-arg]
    """The largest number of concurrent requests."""
    edges = sorted([(s.sent, 1) for s in samples if s.sent] + [(s.done, -1) for s in samples if s.sent])
    max_live = now = 0
    for _, step in edges:
        now += step
        max_live = max(max_live, now)
    return max_live


if __name__ == "__main__":
    main()
