"""Resources that a later deploy declares: noted by the health check without a run, so that their end is no change."""

from typing import Any

import pytest
from pulumi.output import UNKNOWN

from bezel_smoke.base import SmokeError
from bezel_smoke.health import HealthCheckProvider

BUCKET, JOB, GRANT = ([f"gcp:{name}", {"name": name}] for name in ("bucket", "job", "grant"))
VERDICT = {"ok": True, "checks": {}}
OLDS: dict[str, Any] = {
    "service": "projects/acme/locations/us-east4/services/llm",
    "revision": "llm-00001-abc",
    "served_model": "gemma",
    "deadline_seconds": 5.0,
    "resources": [BUCKET, JOB],
    "verdict": VERDICT,
    "passed": [{"revision": "llm-00001-abc"}],
}
CHECK = HealthCheckProvider()


def news(**changed: Any) -> dict[str, Any]:
    inputs = {key: value for key, value in OLDS.items() if key not in {"verdict", "passed"}}
    return inputs | {"__provider": "pickled"} | changed


def test_further_resources_are_noted_without_a_run() -> None:
    declared = news(resources=[BUCKET, GRANT])
    assert CHECK.diff("id", OLDS, declared).changes
    noted = CHECK.update("id", OLDS, declared).outs
    # The job stays noted: the deploy deletes it after this, and may fail before.
    assert noted == OLDS | {"resources": [BUCKET, JOB, GRANT]}
    assert not CHECK.diff("id", noted, declared).changes


@pytest.mark.parametrize(
    ("earlier", "resources"),
    [([BUCKET, JOB], [JOB]), ([BUCKET, JOB], None), ([BUCKET], UNKNOWN), (None, [BUCKET])],
    ids=["fewer", "none", "not-known-yet", "of-a-check-without-a-list"],
)
def test_nothing_further_is_no_change(earlier: Any, resources: Any) -> None:
    assert not CHECK.diff("id", OLDS | {"resources": earlier}, news(resources=resources)).changes


def test_a_new_revision_is_checked_and_not_only_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/nonexistent.json")
    declared = news(resources=[BUCKET, GRANT], revision="llm-00002-def")
    with pytest.raises(SmokeError, match="cannot be read"):
        CHECK.update("id", OLDS, declared)
