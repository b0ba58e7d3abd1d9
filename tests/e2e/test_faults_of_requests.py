"""Faults of the wire and of the clock: what a deploy, or its check, or the provider behind it says of them.

One run of the engine for each class (an API, the service, its streams, the tokens); the other kinds of a class are held
by the very code that the engine runs, asked directly.
"""

import re
from typing import Any

import pytest

from bezel_components.base.dynamic import Progress
from bezel_localcloud import control
from bezel_pulumi_offline.google.cloud import Cloud
from bezel_pulumi_offline.google.errors import ProviderError
from bezel_pulumi_offline.lifecycle.resource_calls import ResourceCalls
from bezel_pulumi_offline.resources import TYPES
from bezel_smoke.base import SmokeError
from bezel_smoke.health import HealthCheckProvider
from tests.support.e2e.fault_harness import SERVICE, FaultHarness, check_golden, error_text, normalize

SERVICES = TYPES["gcp:cloudrunv2/service:Service"]
NAMES = {"project": "bezel-local", "location": "us-east4", "name": "bezel-l4-qat"}
PLAIN = "once it is mended the next `up` is green, then nothing is left to do"
NOTHING = "once it is mended there is nothing to do: nothing was changed"


@pytest.fixture
def at_home(stage: FaultHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the engine's plugins have in their environment."""
    for name, value in control.environment(stage.endpoint()).items():
        monkeypatch.setenv(name, value)


def read_the_service(stage: FaultHarness) -> None:
    """What the provider does for a refresh.

    Raises:
        ProviderError: As the engine shows it.
    """
    resource = ResourceCalls(Cloud({}, control.environment(stage.endpoint()))).read(SERVICES, SERVICE, NAMES, NAMES)
    assert resource is not None


def check_the_service(stage: FaultHarness, seconds: float) -> None:
    """What the check of a deploy does.

    Raises:
        SmokeError: As the engine shows it.
    """
    check(stage.service().json(), seconds)


def check(service: dict[str, Any], seconds: float) -> None:
    """The same of a service that may be gone meanwhile."""
    props = {
        "service": SERVICE,
        "url": service["uri"],
        "revision": service["latestCreatedRevision"],
        "served_model": "gemma-4-12b-it-qat-w4a16",
        "deadline_seconds": seconds,
    }
    HealthCheckProvider().run(props, Progress(None))


@pytest.mark.wide
def test_an_api_that_fails_is_named_and_a_short_burst_is_borne(stage: FaultHarness) -> None:
    stage.settle()
    stage.add("server-errors", path="/run/*", count=3)
    assert stage.rehearsal.local("refresh", "l4-qat").code == 0
    command = stage.add("server-errors", path="/run/*", count=0)
    text = error_text(stage.rehearsal.local("refresh", "l4-qat"))
    stage.clear()
    state = stage.state()
    stage.nothing_left()
    check_golden("server-errors", command, text, state, NOTHING)


@pytest.mark.parametrize(("kind", "borne"), [("rate-limited", 5), ("dropped-connections", 0)])
def test_the_provider_bears_a_burst_of_refusals_but_no_dropped_connection(
    stage: FaultHarness, kind: str, borne: int
) -> None:
    if borne:
        stage.add(kind, path="/run/*", count=borne)
        read_the_service(stage)
    command = stage.add(kind, path="/run/*", count=0)
    with pytest.raises(ProviderError) as caught:
        read_the_service(stage)
    stage.clear()
    read_the_service(stage)
    text = normalize(f"error: {caught.value}\n{caught.value.advice}")
    check_golden(kind, command, text, stage.state(), NOTHING)


@pytest.mark.wide
def test_a_lost_answer_fails_the_deploy_and_the_next_one_finds_the_effect(stage: FaultHarness) -> None:
    before = int(stage.service().json()["generation"])
    stage.need_a_revision()
    stage.add("dropped-connections", when="after", method="PATCH", path="/run/*", count=1)
    assert "the API did not confirm the change: Patch " in error_text(stage.up())
    stage.in_service()
    # As with the published provider the change is not sent again, and the run after it reads that it was made.
    assert int(stage.service().json()["generation"]) == before + 1


@pytest.mark.long
def test_a_refused_change_stays_red_until_a_refresh_shows_what_is_there(stage: FaultHarness) -> None:
    stage.need_a_revision()
    stage.add("server-errors", status=400, method="PATCH", path="/run/*", count=0)
    refused, red, again = (error_text(stage.pulumi_up()) for _ in range(3))
    assert "the API did not confirm the change (HTTP 400)" in refused
    # The state has what was asked for, and nothing is sent: without the check this run would be green.
    assert f"--max-num-seqs={stage.seats} is planned" in red
    assert "googleapi" not in red
    assert all("`pulumi up --refresh`" in text for text in (refused, red, again))
    assert again == refused
    stage.clear()
    repaired = stage.pulumi_up("--refresh")
    assert repaired.code == 0, repaired.text
    stage.nothing_left()


@pytest.mark.parametrize(
    ("kind", "parameters", "seconds"),
    [("slow-connections", {"seconds": 60}, 3), ("malformed-json", {"at": "service", "count": 0}, 20)],
)
@pytest.mark.usefixtures("at_home")
def test_the_check_says_what_stands_between_it_and_the_server(
    stage: FaultHarness, kind: str, parameters: dict[str, object], seconds: float
) -> None:
    check_the_service(stage, 20)
    command = stage.add(kind, **parameters)
    with pytest.raises(SmokeError) as caught:
        check_the_service(stage, seconds)
    stage.clear()
    check_the_service(stage, 20)
    check_golden(
        kind, command, normalize(f"error: smoke: {caught.value}"), stage.state(), "once it is mended the check passes"
    )


@pytest.mark.wide
@pytest.mark.usefixtures("at_home")
def test_a_deleted_service_is_reported_and_created_by_the_next_deploy(
    stage: FaultHarness,
) -> None:
    stage.settle()
    service = stage.service().json()
    command = stage.add("service-deleted")
    with pytest.raises(SmokeError) as caught:
        check(service, 20)
    # Where it was once another attempt at a failed revision, the update meets a 404 before the check does.
    assert "`pulumi up --refresh`" in error_text(stage.up())
    state = stage.state()
    stage.in_service()
    following = "a deploy says so and has read what is there, so the one after it is green, then nothing is left to do"
    check_golden("service-deleted", command, normalize(f"error: smoke: {caught.value}"), state, following)


@pytest.mark.wide_except("rate-limited-*", "dropped-connections-parameters2-*")
@pytest.mark.usefixtures("at_home")
@pytest.mark.parametrize(
    ("kind", "parameters", "reason"),
    [
        ("server-errors", {"at": "service", "count": 0, "status": 502}, "refuses every request (HTTP 502)"),
        ("rate-limited", {"at": "service", "count": 0}, "raise scaling.max_instances"),
        ("dropped-connections", {"at": "service", "count": 0}, "break or time out"),
        ("dropped-connections", {"at": "service", "count": 0, "when": "body"}, "break or time out"),
    ],
)
def test_the_check_tells_a_service_that_refuses_from_one_that_breaks(
    stage: FaultHarness, kind: str, parameters: dict[str, object], reason: str
) -> None:
    stage.add(kind, **parameters)
    with pytest.raises(SmokeError, match=re.escape(reason)):
        check_the_service(stage, 8)  # its last attempt, after 3.5 s, has all that is left, on a busy machine too


@pytest.mark.wide
def test_streams_that_end_early_fail_the_benchmark(stage: FaultHarness) -> None:
    stage.rehearsal.set("smoke.requests", 5)
    stage.keep()
    command = stage.add("truncated-streams")
    text, state = error_text(stage.up()), stage.state()
    stage.clear()
    stage.in_service()
    check_golden("truncated-streams", command, text, state, PLAIN)


@pytest.mark.wide
def test_a_clock_that_is_off_is_named(stage: FaultHarness) -> None:
    stage.settle()
    stage.add("clock-skew", seconds=200)
    stage.nothing_left()
    command = stage.add("clock-skew")
    text = error_text(stage.rehearsal.local("refresh", "l4-qat"), of=r"cloudrunv2|ModelFiles")
    state = stage.state()
    stage.clear()
    stage.nothing_left()
    check_golden("clock-skew", command, text, state, NOTHING)
