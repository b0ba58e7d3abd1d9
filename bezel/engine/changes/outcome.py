"""Outcome of a deploy, entered into the report of its preview: the address, the smoke check, the verdict. Pure."""

import re
from collections.abc import Mapping
from typing import Any

from bezel.engine.changes.preview import with_one_repair
from bezel.engine.changes.report import ChangeReport
from bezel.engine.run.engine import EngineRun


def finish(report: ChangeReport, run: EngineRun) -> None:
    """Complete a report after the deploy: what changed, the policies, the address, the smoke check, the verdict."""
    report.changes, report.violations = run.changes, with_one_repair(run.violations)
    report.problems += [f"{change.name}: {change.op} failed" for change in run.changes if change.failed]
    outputs = run.events.outputs or {}
    smoke, report.url = smoke_of(outputs), url_of(outputs)
    report.more["smoke"] = smoke
    unable, refusing = run.packs_unable, [item for item in run.violations if item.refuses]
    if unable or refusing:
        report.verdict = "refused"
        report.problems += [f"a policy pack did not evaluate the stack: {text}" for text in unable]
    elif not run.ok:
        report.verdict = "failed"
        report.problems += run.errors or [f"the engine ended with exit code {run.end.code}"]
    elif smoke and smoke["ok"] is False:
        report.verdict = "failed"
        report.problems.append(f"the smoke check failed: {smoke['detail']}")
    else:
        report.verdict = "deployed"


def url_of(outputs: Mapping[str, Any]) -> str | None:
    """The address of the service or the gateway among a stack's outputs; None where it is not known."""
    url: Any = outputs.get("url")
    return url if isinstance(url, str) and re.match(r"https?://[^\s/]", url) else None


def smoke_of(outputs: Mapping[str, Any]) -> dict[str, Any] | None:
    """The smoke check's verdict and figures among a stack's outputs; None where it has none."""
    smoke: Any = outputs.get("smoke")
    verdict: Any = smoke.get("verdict") if isinstance(smoke, Mapping) else None
    if not isinstance(verdict, Mapping):
        return None
    checks: Any = verdict.get("checks")
    rows = checks if isinstance(checks, Mapping) else {}
    failed = {name: row for name, row in rows.items() if isinstance(row, Mapping) and row.get("ok") is False}
    ok = verdict.get("ok")
    return {
        "ok": ok if isinstance(ok, bool) else None,
        "checks": {name: row.get("ok") for name, row in rows.items() if isinstance(row, Mapping)},
        "detail": "; ".join(f"{name}: {row.get('detail', 'failed')}" for name, row in sorted(failed.items())),
        "figures": smoke.get("figures") or {},
        "simulated": bool(outputs.get("simulated")),
    }
