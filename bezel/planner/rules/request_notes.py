"""Notes on requests that a service takes and cannot run at once, or cuts: facts that refuse no deploy.

Owns the comparison of request_concurrency with the server's batch, and of the request timeout with the plan's estimated
speed. Sources: Cloud Run's pages on concurrency (an instance is added at about 60 % of the maximum) and on request
timeouts (at most an hour, then HTTP 504), November 2026.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bezel.planner.base.problems import setting

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bezel_catalog.sizing.roofline import Estimate

LONGEST_TIMEOUT_SECONDS = 3600
SCALES_AT = 0.6  # of request_concurrency
_BATCHES = 2  # one that runs and one that waits, as the plan chooses it


def concurrency_warnings(
    concurrency: int, sequences: int, *, max_instances: int, queued: int | None, timeout_seconds: int, answer: str
) -> Iterator[str]:
    """Warn of requests that wait inside the server, and of sequences that no request reaches.

    Args:
        concurrency: requests that Cloud Run sends to one instance at a time.
        sequences: max-num-seqs.
        max_instances: of the service.
        queued: max-num-queued-reqs, above which the server refuses; None where it queues any number.
        timeout_seconds: time limit of a request, its wait included.
        answer: what the last request waits for: its first token, or its answer.
    """
    key = setting("scaling.request_concurrency")
    beside = f"{key}={concurrency} beside max-num-seqs={sequences}"
    if concurrency < sequences:
        several = "responses" if answer == "first token" else "inputs"
        yield (
            f"{beside}: an instance never has more than {concurrency} requests, so {sequences - concurrency} of its "
            f"{sequences} sequences stay unused (except by requests with several {several}). "
            f"Raise it to {sequences} or more, or lower max-num-seqs to {concurrency}."
        )
    if concurrency <= _BATCHES * sequences:
        return
    further = concurrency - sequences
    waiting = further if queued is None else min(further, queued)
    batches = -(-waiting // sequences)
    refused = further - waiting
    later = (
        f" Cloud Run adds an instance only at about {int(concurrency * SCALES_AT)} requests at a time."
        if max_instances > 1
        else ""
    )
    yield (
        f"{beside}: of {concurrency} requests of an instance {sequences} run and {waiting} wait inside vLLM, the last "
        f"one for {batches} batch{'es' if batches != 1 else ''} before its {answer}, within its {timeout_seconds} s."
        f"{f' A further {refused} are refused (503).' if refused else ''}{later} Lower it to {_BATCHES * sequences}: "
        "one batch that runs and one that waits."
    )


def timeout_warnings(seconds: int, estimate: Estimate, longest: int) -> Iterator[str]:
    """Warn of a timeout below what a long response takes at the plan's speed.

    Args:
        seconds: time limit of a request.
        estimate: speed of one server.
        longest: tokens of the longest response, max-model-len.
    """
    if seconds >= LONGEST_TIMEOUT_SECONDS:
        return
    whole = max(0, int((seconds - estimate.ttft_seconds[1]) / estimate.step_seconds[1]))
    if whole >= longest:
        return
    benchmark = (
        f" The deploy's benchmark asks for {estimate.output_tokens} and may fail."
        if whole < estimate.output_tokens
        else ""
    )
    yield (
        f"{setting('scaling.request_timeout_seconds')}={seconds}: Cloud Run ends a response after {seconds} s (504, or "
        f"a stream that breaks off), which is about {whole} tokens in a full batch by the slow estimate; max-model-len "
        f"allows {longest}.{benchmark} Raise it to at most {LONGEST_TIMEOUT_SECONDS}, or bound max_tokens in the "
        "requests."
    )
