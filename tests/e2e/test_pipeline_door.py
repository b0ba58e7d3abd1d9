"""A stack's door by a pipeline's account: refused while `bezel init` names no bucket of it, and made once it does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.e2e.test_pipeline_identity import (
    DESTROY,
    SERVICE,
    jobs,  # noqa: F401 - the fixture
    preview,
    run_step,
    text_of_success,
)
from tests.support.bootstrap.jobs import DEPLOYS, MERGE, NIGHT

if TYPE_CHECKING:
    from tests.support.bootstrap.jobs import Jobs

pytestmark = [pytest.mark.slow, pytest.mark.long]
BUCKETS = ("--weights-bucket", "bezel-local-models", "--weights-bucket", f"bezel-local-bezel-{SERVICE}-door")
ASKED = ("doctor", SERVICE)


def test_pipeline_makes_a_door_once_its_bucket_is_named(jobs: Jobs) -> None:  # noqa: F811
    text_of_success(jobs.init())
    jobs.seed(SERVICE)
    jobs.pipeline.set("bezel:cost", {"max_hourly_usd": 2}, SERVICE)
    jobs.pipeline.set("bezel:access", {"keys": True}, SERVICE)
    jobs.pipeline.commit()
    assert f"run `bezel init` again, as before, with {' '.join(BUCKETS)}." in checkup_text(jobs)
    preview(jobs, SERVICE)
    refused = run_step(jobs, DEPLOYS, MERGE, "ci", "deploy", SERVICE)
    assert (refused.code, "--weights-bucket NAME" in refused.text) == (1, True), refused.text
    assert "storage.buckets." in refused.text

    text_of_success(jobs.init(*BUCKETS))
    assert "run `bezel init` again" not in checkup_text(jobs)
    preview(jobs, SERVICE)
    text_of_success(run_step(jobs, DEPLOYS, MERGE, "ci", "deploy", SERVICE))
    claims = NIGHT | {"environment": "dev"}
    text_of_success(run_step(jobs, DEPLOYS, claims, "ci", "lock", SERVICE, "--", *DESTROY, "--stack", SERVICE))


def checkup_text(jobs: Jobs) -> str:  # noqa: F811
    """What the owner's check-up shows, its lines joined."""
    return " ".join(jobs.pipeline.bezel(*ASKED).text.split())
