"""The provider's process, killed with SIGKILL at every request of every call: the next one goes on."""

import json
import os
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

from pulumi_offline_support.kills import BOUNDARIES, Scene
from pulumi_offline_support.sdk import short
from tests.support.record_results import RESULTS, check_results

# Google chooses the id, so a repeated create meets nothing: what the killed one made stays.
NUMBERED = {
    "gcp:secretmanager/secretVersion:SecretVersion",
    "gcp:billing/budget:Budget",
    "gcp:monitoring/notificationChannel:NotificationChannel",
    "gcp:monitoring/alertPolicy:AlertPolicy",
    "gcp:monitoring/uptimeCheckConfig:UptimeCheckConfig",
    "gcp:monitoring/dashboard:Dashboard",
}
BALANCER_TYPES = {
    f"gcp:compute/{name[0].lower()}{name[1:]}:{name}"
    for name in (
        *("GlobalAddress", "GlobalForwardingRule", "RegionNetworkEndpointGroup", "BackendService", "URLMap"),
        *("TargetHttpProxy", "TargetHttpsProxy", "ManagedSslCertificate", "SSLPolicy", "SecurityPolicy"),
    )
}
RECORDING = os.environ.get("BEZEL_RECORD") == "1"
Boundary = tuple[str, str, int, str]


@pytest.fixture(scope="module")
def scene() -> Iterator[Scene]:
    with Scene() as opened:
        yield opened


@pytest.fixture(scope="module")
def taken_over() -> set[str]:
    """Names of the boundaries after which a repeated create is refused: as recorded, or to be recorded."""
    return set() if RECORDING else set(json.loads((RESULTS / "kills-provider.json").read_text())["taken over at"])


@pytest.fixture(scope="module")
def tried_boundaries() -> set[str]:
    return set()


def name(boundary: Boundary) -> str:
    return "-".join(map(str, boundary))


def case(boundary: Boundary) -> Any:
    """A boundary; of the load balancer's fifteen types, which share their calls, two are for a shorter run."""
    of_balancer = boundary[0].startswith(("gcp:certificatemanager/", "gcp:dns/")) or boundary[0] in BALANCER_TYPES
    is_long = of_balancer and not boundary[0].endswith((":GlobalAddress", ":RecordSet"))
    return pytest.param(boundary, id=name(boundary), marks=[pytest.mark.long] if is_long else [])


@pytest.mark.wide_except("gcp:cloudrunv2/service:Service-*", "*SecretVersion-*")
@pytest.mark.parametrize("boundary", [case(boundary) for boundary in BOUNDARIES])
def test_the_next_provider_goes_on(
    boundary: Boundary, scene: Scene, taken_over: set[str], tried_boundaries: set[str]
) -> None:
    kind, operation, _, _ = boundary
    outcome = scene.kill(*boundary)
    tried_boundaries.add(name(boundary))
    if RECORDING and outcome.taken_over:
        taken_over.add(name(boundary))
    assert outcome.taken_over == (name(boundary) in taken_over)
    assert outcome.taken_over <= (operation == "create")
    assert len(outcome.left) <= (kind in NUMBERED and operation == "create")


def test_the_table_counts_every_boundary(taken_over: set[str], tried_boundaries: set[str]) -> None:
    if RECORDING and len(tried_boundaries) < len(BOUNDARIES):
        pytest.skip("a table is recorded of all boundaries, tried by one worker")
    counts: dict[tuple[str, str], list[bool]] = defaultdict(list)
    for boundary in sorted(BOUNDARIES):
        counts[boundary[0], boundary[1]].append(name(boundary) in taken_over)
    rows = [
        [short(kind), operation, len(refused), refused.count(False), refused.count(True)]
        for (kind, operation), refused in counts.items()
    ]
    assert sum(row[4] for row in rows) == len(taken_over)
    table = {
        "title": "Google provider: SIGKILL at every request",
        "document": "reliability",
        "provider": "the stand-in, with the retries, failures and error texts of the published one",
        "order": 20,
        "about": "The stand-in provider's process is killed at each request of each call, once before Google sees the "
        "request and once after Google has done what it asks for. Then the next process is asked to do the same, and "
        "the resource has to be there once, as wanted, and to go away without a rest. `taken over` counts creates that "
        "Google refuses with 409 because the killed one had made the resource: the refusal names the repair, and "
        "reading the resource by the id that follows from its inputs yields a state that needs an update at most.",
        "command": "pytest tests/e2e/test_provider_kills.py",
        "checked": "make test test-wide",
        "stamp": None,
        "columns": ["resource", "operation", "kill points", "went on", "taken over"],
        "rows": rows,
        "taken over at": sorted(taken_over),
        "notes": [
            {
                "what": "secretmanager.SecretVersion, create: the version of the killed run stays",
                "why": "A version has no name of the program's that a repeated create could meet. It holds the same "
                "value, and goes with its secret; the published provider adds it in the same way.",
                "evidence": "discovery document secretmanager v1: projects.secrets.addVersion has no request id; the "
                "recorded create starts with :addVersion",
            },
            {
                "what": "billing.Budget, monitoring.NotificationChannel, create: that of the killed run stays",
                "why": "Google chooses their ids, so a repeated create makes a second one, as with the published "
                "provider. Nothing is charged for either; the first one is deleted by hand.",
                "evidence": "recorded create of billing.Budget: POST without a name",
            },
        ],
    }
    check_results("kills-provider", table)
