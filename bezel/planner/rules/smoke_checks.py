"""Feasibility of the smoke check and the short benchmark against the planned server."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from bezel.errors import Problem, shown
from bezel.planner.base.problems import setting
from bezel.planner.rules.platform_checks import GPU_PROBE_WINDOW_SECONDS, PROBE_DELAY_SECONDS

if TYPE_CHECKING:
    from bezel.planner.base.deployment import SmokePlan
    from bezel.planner.base.settings import ProbeSettings
    from bezel.planner.vllm.engine_args import EngineArgs

_ACCOUNT = re.compile(r"[\w.-]+@[\w.-]+\.gserviceaccount\.com")


def check_smoke(smoke: SmokePlan, engine: EngineArgs, *, taken_at_a_time: int, raised_by: str) -> list[Problem]:
    """Check that the benchmark's requests fit the context and the server, and that its limits can be measured.

    Args:
        smoke: the planned check.
        engine: figures of the arguments.
        taken_at_a_time: requests that all instances accept at a time.
        raised_by: the setting that raises that number.
    """
    problems = []
    tokens = smoke.prompt_tokens + smoke.output_tokens
    if tokens > engine.max_model_len:
        problems.append(
            Problem(
                setting("smoke.prompt_tokens"),
                str(smoke.prompt_tokens),
                f"with {smoke.output_tokens} output tokens a request has {tokens}, above "
                f"max-model-len={engine.max_model_len}: every request would be refused or cut.",
                f"set it to {max(1, engine.max_model_len - smoke.output_tokens)} or less.",
            )
        )
    if smoke.concurrency > taken_at_a_time:
        problems.append(
            Problem(
                setting("smoke.concurrency"),
                str(smoke.concurrency),
                f"the service takes {taken_at_a_time} requests at a time: the platform's own queue would be measured.",
                f"set it to {taken_at_a_time} or less, or raise {setting(raised_by)}.",
            )
        )
    if smoke.impersonate is not None and not _ACCOUNT.fullmatch(smoke.impersonate):
        problems.append(
            Problem(
                setting("smoke.impersonate"),
                shown(smoke.impersonate),
                "it is no e-mail address of a service account: no identity token can be made for it.",
                "write e.g. NAME@PROJECT.iam.gserviceaccount.com.",
            )
        )
    if smoke.min_draft_acceptance is not None and not smoke.speculative:
        problems.append(
            Problem(
                setting("smoke.min_draft_acceptance"),
                f"{smoke.min_draft_acceptance:g}",
                "nothing is drafted: there is no acceptance to measure.",
                "remove it, or set up speculative decoding with spec-method, spec-model and spec-tokens.",
            )
        )
    return problems


def check_patience(smoke: SmokePlan, probe: ProbeSettings) -> list[Problem]:
    """Check that the smoke check waits as long as the startup probe may."""
    # At most the platform's own limits: values beyond them are reported with the probe.
    start = min(probe.initial_delay_seconds, PROBE_DELAY_SECONDS)
    start += min(probe.period_seconds * probe.failure_threshold, GPU_PROBE_WINDOW_SECONDS)
    if smoke.deadline_seconds >= start:
        return []
    return [
        Problem(
            setting("smoke.deadline_seconds"),
            str(smoke.deadline_seconds),
            f"the startup probe may wait {start} s: the check would give up on a service that is still loading.",
            f"set it to {start} or more, or shorten the probe's window.",
        )
    ]
