"""Revisions that passed their health check, as the outputs of the check keep them for a rollback. Pure.

Cloud Run knows only whether a revision once became ready, and a revision cannot be changed: so the stack's state is the
place that lasts.
"""

from collections.abc import Mapping
from typing import Any

TOKEN = "pulumi-python:dynamic/smoke:HealthCheck"  # noqa: S105 - a type token
TOKENS = (TOKEN, "bezel:smoke:HealthCheck")
"""The same, and that of programs that use the Pulumi package, whose outputs are in camel case."""
PASSED = "passed"
"""Output of a check: the revisions that passed, the newest last; for each its `revision`, `model` and `start`."""
_MOST = 50


def passed_in(outputs: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The revisions that passed, by the outputs of a check; those of before they were kept name the last one alone."""
    if (passed := outputs.get(PASSED)) is not None:
        return [dict(each) for each in passed]
    verdict = outputs.get("verdict")
    return [_entry(outputs)] if outputs.get("revision") and verdict and verdict.get("ok") else []


def with_this(props: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The revisions that passed, after the one of these properties did."""
    this = _entry(props)
    earlier = [dict(each) for each in props.get(PASSED) or () if each.get("revision") != this["revision"]]
    return [*earlier, this][-_MOST:]


def _entry(props: Mapping[str, Any]) -> dict[str, Any]:
    short = str(props.get("revision") or "").rpartition("/")[2]
    entry = {
        "revision": short,
        "model": props.get("served_model") or props.get("servedModel"),
        "start": props.get("start"),
    }
    return {key: value for key, value in entry.items() if value is not None}
