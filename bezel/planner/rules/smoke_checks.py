"""Feasibility of the smoke check and the short benchmark against the planned server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bezel.planner.base.members import SERVICE_ACCOUNT
from bezel.planner.base.problems import setting
from bezel.planner.rules.platform_checks import GPU_PROBE_WINDOW_SECONDS, PROBE_DELAY_SECONDS
from bezel_base.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bezel.planner.base.deployment import SmokePlan
    from bezel.planner.base.settings import ProbeSettings
    from bezel.planner.vllm.engine_args import EngineArgs


def check_smoke(smoke: SmokePlan, engine: EngineArgs, *, max_concurrency: int, raised_by: str) -> Iterator[Problem]:
    """Check that the benchmark's requests fit the context and the server, and that its limits can be measured.

    Args:
        smoke: the planned check.
        engine: figures of the arguments.
        max_concurrency: concurrent requests that all instances accept.
        raised_by: the setting that raises that number.
    """
    answered = smoke.output_tokens if smoke.pooled_at is None else 0
    tokens = smoke.prompt_tokens + answered
    if tokens > engine.max_model_len:
        yield Problem(
            setting("smoke.prompt_tokens"),
            smoke.prompt_tokens,
            f"with {answered} output tokens a request has {tokens}, above "
            f"max-model-len={engine.max_model_len}: every request would be refused or cut.",
            f"set it to {max(1, engine.max_model_len - answered)} or less.",
        )
    if smoke.concurrency > max_concurrency:
        yield Problem(
            setting("smoke.concurrency"),
            smoke.concurrency,
            f"the service accepts {max_concurrency} requests at a time: the platform's own queue would be measured.",
            f"set it to {max_concurrency} or less, or raise {setting(raised_by)}.",
        )
    if smoke.impersonate is not None and not SERVICE_ACCOUNT.fullmatch(smoke.impersonate):
        yield Problem(
            setting("smoke.impersonate"),
            smoke.impersonate,
            "it is not the e-mail address of a service account: no identity token can be created for it.",
            "write e.g. NAME@PROJECT.iam.gserviceaccount.com, NAME with 6 to 30 characters.",
        )
    if smoke.min_draft_acceptance is not None and not smoke.speculative:
        yield Problem(
            setting("smoke.min_draft_acceptance"),
            f"{smoke.min_draft_acceptance:g}",
            "nothing is drafted: there is no acceptance to measure.",
            "remove it, or set up speculative decoding with spec-method, spec-model and spec-tokens.",
        )


def check_patience(smoke: SmokePlan, probe: ProbeSettings) -> Iterator[Problem]:
    """Check that the smoke check waits as long as the startup probe may."""
    # At most the platform's own limits: values beyond them are reported with the probe.
    start = min(probe.initial_delay_seconds, PROBE_DELAY_SECONDS)
    start += min(probe.period_seconds * probe.failure_threshold, GPU_PROBE_WINDOW_SECONDS)
    if smoke.deadline_seconds < start:
        yield Problem(
            setting("smoke.deadline_seconds"),
            smoke.deadline_seconds,
            f"the startup probe may wait {start} s: the check would fail while the service is still loading.",
            f"set it to {start} or more, or shorten the probe's window.",
        )
