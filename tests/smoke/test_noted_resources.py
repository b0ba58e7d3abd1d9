"""Resources that a later deploy declares: noted by the health check without a run, so that their end is no change."""

from typing import Any

import pytest
from pulumi.output import UNKNOWN

from bezel_components.base.dynamic import Progress
from bezel_smoke.base import SmokeError
from bezel_smoke.health import HealthCheckProvider

OF_SERVICE = {"project": "acme", "location": "us-east4", "name": "llm"}
OF_OTHER = {**OF_SERVICE, "location": "europe-west4"}
DEVELOPER = {"role": "roles/run.developer", "member": "serviceAccount:scale@acme.iam.gserviceaccount.com"}
MEMBER, MINIMUM = (
    "gcp:cloudrunv2/serviceIamMember:ServiceIamMember",
    "pulumi-python:dynamic/components:ScheduledMinimum",
)
SERVICE: list[Any] = ["gcp:cloudrunv2/service:Service", OF_SERVICE]
JOB: list[Any] = ["gcp:cloudscheduler/job:Job", {"project": "acme", "region": "us-east4", "name": "llm-scaling-0"}]
GRANT: list[Any] = [MEMBER, OF_SERVICE | DEVELOPER]
VERDICT = {"ok": True, "checks": {}}
OLDS: dict[str, Any] = {
    "service": "projects/acme/locations/us-east4/services/llm",
    "revision": "llm-00001-abc",
    "served_model": "gemma",
    "deadline_seconds": 5.0,
    "resources": [SERVICE, JOB],
    "verdict": VERDICT,
    "passed": [{"revision": "llm-00001-abc"}],
}
CHECK = HealthCheckProvider()


def news(**changed: Any) -> dict[str, Any]:
    inputs = {key: value for key, value in OLDS.items() if key not in {"verdict", "passed"}}
    return inputs | {"__provider": "pickled"} | changed


def test_further_resources_are_noted_without_a_run() -> None:
    declared = news(resources=[SERVICE, GRANT])
    assert CHECK.diff("id", OLDS, declared).changes
    noted = CHECK.update("id", OLDS, declared).outs
    # The job stays noted: the deploy deletes it after this, and may fail before.
    assert noted == OLDS | {"resources": [SERVICE, JOB, GRANT]}
    assert not CHECK.diff("id", noted, declared).changes


@pytest.mark.parametrize(
    "further",
    [
        JOB,
        [MINIMUM, {"service": OLDS["service"], "entries": []}],
        ["gcp:projects/iAMMember:IAMMember", {"project": "acme", **DEVELOPER}],
        ["gcp:compute/firewall:Firewall", {"project": "acme", "name": "ssh"}],
    ],
    ids=["job", "minimum", "grant-on-the-project", "rule"],
)
def test_what_a_check_reads_of_the_program_is_noted(further: list[Any]) -> None:
    assert CHECK.diff("id", OLDS | {"resources": [SERVICE]}, news(resources=[SERVICE, further])).changes


@pytest.mark.parametrize(
    ("earlier", "resources"),
    [
        ([SERVICE, JOB], [JOB]),
        ([SERVICE, JOB], None),
        ([SERVICE], [SERVICE, UNKNOWN]),
        (None, [SERVICE, GRANT]),
        ([SERVICE], [SERVICE, [SERVICE[0], OF_OTHER], [MEMBER, OF_OTHER | DEVELOPER]]),
        ([SERVICE], [SERVICE, ["gcp:storage/bucketIAMMember:BucketIAMMember", {"bucket": "new", **DEVELOPER}]]),
        ([SERVICE], [SERVICE, [MINIMUM, {"service": "projects/acme/locations/europe-west4/services/llm"}]]),
    ],
    ids=["fewer", "none", "not-known-yet", "of-a-check-without-a-list", "another-region", "a-bucket", "its-minimum"],
)
def test_nothing_further_is_no_change(earlier: Any, resources: Any) -> None:
    assert not CHECK.diff("id", OLDS | {"resources": earlier}, news(resources=resources)).changes


def test_a_new_revision_is_checked_and_not_only_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/nonexistent.json")
    declared = news(resources=[SERVICE, GRANT], revision="llm-00002-def")
    with pytest.raises(SmokeError, match="cannot be read"):
        CHECK.update("id", OLDS, declared)


class PassingCheck(HealthCheckProvider):
    """A check that passes, and remembers what it took as declared before."""

    earlier: list[Any]

    def run(self, props: dict[str, Any], progress: Progress) -> dict[str, Any]:  # noqa: ARG002 - as it is called
        self.earlier = props["earlier"]
        return {"verdict": VERDICT, "passed": []}


def test_what_a_deploy_deletes_last_is_known_to_one_more_check() -> None:
    """A deploy that is killed after its check and before its deletions leaves it, and the next one deletes it."""
    check = PassingCheck()
    first = check.update("id", OLDS, news(resources=[SERVICE], revision="llm-00002-def")).outs
    assert (first["resources"], first["earlier"]) == ([SERVICE], [JOB])
    noted = CHECK.update("id", first, news(resources=[SERVICE, GRANT], revision="llm-00002-def")).outs
    assert (noted["resources"], noted["earlier"]) == ([SERVICE, GRANT], [JOB])
    second = check.update("id", first, news(resources=[SERVICE], revision="llm-00003-ghi")).outs
    assert check.earlier == [JOB, SERVICE]
    assert "earlier" not in second
    third = check.update("id", second, news(resources=[SERVICE], revision="llm-00004-jkl")).outs
    assert (check.earlier, "earlier" in third) == ([SERVICE], False)
