"""Validity checks of a cell: the nine checks in order, with the values that each needs.

Each check is a function of plain values in bezel_bench.validity.load_checks or bezel_bench.validity.server_checks; the
consequences of their results are in bezel_bench.result.cell_status.
"""

import functools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bezel_bench.load.patterns import user_windows
from bezel_bench.load.plan import Bodies, Closed, Load, is_closed
from bezel_bench.metrics.metric_inputs import MetricInputs
from bezel_bench.result.columns import Columns, Ints
from bezel_bench.result.document import Check, Counters
from bezel_bench.result.records import Manifest, Metric, ServedBy
from bezel_bench.result.sample import HTTP_4XX, HTTP_401, HTTP_403, HTTP_404, HTTP_429, KINDS, REFUSED
from bezel_bench.server.drain import Drained
from bezel_bench.validity import load_checks, server_checks
from bezel_bench.validity.roofline import Work, hardware_of

_BEGINNING = 64  # characters: about a block of the prefix cache
_LOOKED_AT = 256
# Failures that cost the engine no work.
_NEVER_RAN = {REFUSED, HTTP_401, HTTP_403, HTTP_404, HTTP_429, HTTP_4XX}


@dataclass(frozen=True)
class Evidence:
    """Inputs of the checks.

    Attributes:
        served: The model and engine that served: the manifest's, or the variant's.
        beginnings: Beginnings of a sample of the prompts.
    """

    load: Load
    facts: MetricInputs
    metrics: Mapping[str, Metric]
    counters: Counters
    drained: Drained
    manifest: Manifest
    served: ServedBy
    beginnings: Sequence[str]

    @property
    def users(self) -> int:
        """Return the users of a closed loop; 0 for any other load."""
        return self.load.pattern.users if isinstance(self.load.pattern, Closed) else 0

    @functools.cached_property
    def at_once(self) -> int:
        """Return the most requests under way at once."""
        return most_in_flight(self.facts.columns)


def check_all(evidence: Evidence) -> list[Check]:
    """Return the result of each check."""
    return [check(evidence) for check in CHECKS]


def _unique_prompts(evidence: Evidence) -> Check:
    prompts = evidence.load.prompts
    return load_checks.unique_prompts(prompts.kind, prompts.seed, evidence.beginnings, evidence.metrics["cached_share"])


def _output_length(evidence: Evidence) -> Check:
    good, gained = evidence.facts.good, evidence.counters.gained
    fixed = evidence.load.extra_body.get("ignore_eos", True) is True
    drafts = gained.drafts if gained else None
    return load_checks.output_length(
        good["asked_tokens"], good["output_tokens"], good["first"] > 0, drafts, fixed=fixed
    )


def _conservation(evidence: Evidence) -> Check:
    users = len(user_windows(evidence.load)) if is_closed(evidence.load.pattern) else 0
    columns, rate = evidence.facts.columns, evidence.metrics["requests_per_second"]
    return load_checks.conservation(columns, evidence.facts.steady, evidence.at_once, users, rate)


def _counters(evidence: Evidence) -> Check:
    good, failure = evidence.facts.good, evidence.facts.columns.failure
    ran = [code for code, kind in enumerate(("", *KINDS)) if kind and kind not in _NEVER_RAN]
    client = server_checks.ClientCounts(
        requests=len(good),
        prompt_tokens=int(good["prompt_tokens"].sum()),
        output_tokens=int(good["output_tokens"].sum()),
        unfinished=int(np.isin(failure, ran).sum()),
    )
    return server_checks.counters_agree(client, evidence.counters)


def _roofline(evidence: Evidence) -> Check:
    platform = evidence.manifest.platform
    hardware = hardware_of(
        evidence.manifest.checkpoint,
        platform.accelerator,
        platform.chips,
        platform.instances,
        evidence.served.kv_cache_dtype,
    )
    return server_checks.below_roofline(_work(evidence), hardware)


def _work(evidence: Evidence) -> Work | str:
    """Return the work done, with the upper bounds of sequences in a step and tokens of each."""
    values = {name: evidence.metrics[name].value for name in ("output_tokens_per_second", "prompt_tokens_mean")}
    output, prompt = values["output_tokens_per_second"], values["prompt_tokens_mean"]
    if prompt is None:
        return "no request succeeded"
    if output is None:
        return "no output tokens were counted"
    instances = evidence.manifest.platform.instances or 1
    limits = [
        limit * instances for limit in (evidence.manifest.platform.concurrency, evidence.served.max_num_seqs) if limit
    ]
    yields = [evidence.metrics[name].value or 1.0 for name in ("acceptance_length", "tokens_per_chunk")]
    return Work(
        input_tokens_per_second=evidence.metrics["input_tokens_per_second"].value,
        output_tokens_per_second=output,
        sequences=min([evidence.at_once, *limits]),
        tokens_per_step=max(1.0, *yields),
        prompt_tokens=prompt,
    )


def _steady(evidence: Evidence) -> Check:
    facts = evidence.facts
    # Later turns of a conversation are longer: that is not drift.
    values = facts.latencies["e2e"].values if evidence.load.prompts.kind != "multi_turn" else np.zeros(0)
    rate = evidence.metrics["requests_per_second"]
    return load_checks.steady_state(
        facts.steady, evidence.users, len(facts.good), len(facts.counted_rows), values, rate
    )


CHECKS: tuple[Callable[[Evidence], Check], ...] = (
    _unique_prompts,
    _output_length,
    _conservation,
    _counters,
    _roofline,
    lambda evidence: server_checks.drained_before(evidence.drained),
    _steady,
    lambda evidence: server_checks.manifest_complete(evidence.manifest, evidence.served),
    lambda evidence: load_checks.failures_apart(len(evidence.facts.columns), evidence.facts.columns.failures()),
)


def most_in_flight(columns: Columns) -> int:
    """Return the most requests under way at once."""
    is_sent = columns["sent"] > 0
    return most_at_once(columns["sent"][is_sent], columns["done"][is_sent])


def most_at_once(begins: Ints, ends: Ints) -> int:
    """Return the most spans of time that any instant is in."""
    begins, ends = np.sort(begins), np.sort(ends)
    # At one instant the ends come first: a user's next request does not overlap the last.
    ended = np.searchsorted(ends, begins, side="right")
    return int((np.arange(1, len(begins) + 1) - ended).max(initial=0))


def beginnings(bodies: Bodies, requests: int) -> list[str]:
    """Return the beginnings of a sample of the prompts: of the first turn, the user's text."""
    places = sorted({place * requests // _LOOKED_AT for place in range(_LOOKED_AT)})
    return [_beginning(bodies.body(place).data) for place in places]


def _beginning(data: bytes) -> str:
    body = json.loads(data)
    if "messages" in body:
        content = body["messages"][-1]["content"]
        if isinstance(content, list):
            content = next((part["text"] for part in reversed(content) if "text" in part), content)
    else:
        content = next(body[name] for name in ("prompt", "input", "documents") if name in body)
    return str(content)[:_BEGINNING]
