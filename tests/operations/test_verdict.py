"""Verdict of a service to its callers: requests decide, and what the platform says of a revision stands beside it."""

from typing import Any

import pytest

from bezel.leases.clock import rfc3339
from bezel.operations.status.status import StackStatus, Status, StatusArguments, status
from tests.support.operations.deployed import (
    NOW,
    SERVICE,
    Deployed,
    live_service,
    logged_line,
    logged_request,
    service_resource,
    state_of,
)
from tests.support.rest.fake_google import Answer, Call

REVISIONS = f"{SERVICE}/revisions"
WORDS = "The user-provided container failed to start and listen on the port."
REFUSED_NEWEST = {
    "latestCreatedRevision": f"{REVISIONS}/llm-00003-new",
    "terminalCondition": {"type": "Ready", "state": "CONDITION_FAILED", "message": WORDS},
}
DENIED = {"error": {"code": 403, "message": "Permission denied on resource.", "status": "PERMISSION_DENIED"}}


class Cloud:
    """A deployed stack whose callers got these answers; Monitoring has these series, or refuses."""

    def __init__(self, deployed: Deployed) -> None:
        self.held, self.counts, self.refusal = deployed, {}, None
        self.counts: dict[tuple[str, int], int]
        self.refusal: Answer | None
        deployed.keep("dev", state_of(service_resource()))
        deployed.server.routes.insert(0, self._monitoring)

    def _monitoring(self, call: Call) -> Answer | None:
        if not call.path.endswith("/timeSeries"):
            return None
        if self.refusal is not None or "request_count" not in call.query["filter"]:
            return self.refusal or Answer(json={})
        series = [
            {
                "metric": {"labels": {"response_code": str(code), "response_code_class": f"{code // 100}xx"}},
                "resource": {"labels": {"revision_name": revision}},
                "points": [
                    {
                        "interval": {"startTime": rfc3339(NOW - 240), "endTime": rfc3339(NOW - 180)},
                        "value": {"int64Value": str(number)},
                    }
                ],
            }
            for (revision, code), number in self.counts.items()
        ]
        return Answer(json={"timeSeries": series})

    def status(self, *requests: dict[str, Any], **live: Any) -> tuple[StackStatus, str]:
        """The status, and its text."""
        self.held.live[SERVICE] = live_service(**live)
        self.held.requests = list(requests)
        report = status(self.held.context, StatusArguments(stack="dev"))
        return report.stacks[0], "\n".join(" ".join(line.split()) for line in report.text().splitlines()) + "\n"


@pytest.fixture
def service(cloud: Deployed) -> Cloud:
    return Cloud(cloud)


def of(status_: int, number: int, **more: Any) -> list[dict[str, Any]]:
    return [logged_request(status_, **more)] * number


@pytest.mark.slow
@pytest.mark.parametrize(
    ("requests", "verdict"),
    [
        (of(200, 5), "ready"),
        (of(200, 200) + of(503, 2), "ready"),  # one in a hundred
        (of(200, 200) + of(503, 3, ago=300), "degraded"),
        (of(200, 3, ago=10) + of(500, 100, ago=500), "degraded"),  # mended, and the failures are not yet old
        (of(500, 3, ago=10) + of(200, 100, ago=500), "failing"),  # began just now
        (of(429, 1), "failing"),  # few, and all there is
        (of(429, 20), "failing"),
        (of(500, 20), "failing"),  # a full disk, a dead engine
        (of(503, 20), "failing"),  # a crash loop after the start
        (of(504, 20), "failing"),
        (of(200, 3, message="Truncated response body."), "failing"),
        (of(499, 4), "failing"),
        (of(499, 4) + of(200, 1), "degraded"),
        (of(499, 1) + of(200, 4), "ready"),
        (of(403, 4), "refused"),
        (of(404, 4) + of(400, 2), "refused"),
        (of(403, 40) + of(200, 1), "ready"),
        ([], "no-callers"),
        (of(404, 9, path="/.env") + of(200, 9, path="/health"), "no-callers"),
        (of(503, 9, path="/health"), "failing"),
        (of(200, 9, ago=601), "no-callers"),
        (of(503, 9, revision="llm-00001-old"), "no-callers"),  # at the tag of a revision without traffic
        (of(429, 9, revision=""), "failing"),
    ],
)
def test_requests_decide_while_the_platform_says_ready(service: Cloud, requests: Any, verdict: str) -> None:
    stack, text = service.status(*requests)
    assert stack.verdict == verdict
    assert Status(stacks=(stack,)).exit_code == (verdict not in {"ready", "no-callers"})
    assert bool(stack.reasons) == (verdict != "ready")
    shown = {"no-callers": "no callers in 10 minutes"}.get(verdict, verdict)
    assert f"verdict {shown}\n" in text


def test_a_failing_service_says_how_many_and_where_to_look(service: Cloud) -> None:
    stack, text = service.status(*of(429, 3), *of(200, 1, ago=200))
    assert stack.reasons[0] == "3 of 4 requests of 10 minutes failed, 3 of the newest 3 (3 x 429)"
    assert "details `bezel logs dev --source requests` lists them" in text
    assert "requests 4 in 10 minutes, 3 failed (3 x 429); newest 30 s ago (request log and Cloud Mon" in text


def test_a_failing_service_says_it_in_the_platforms_words(service: Cloud) -> None:
    aborted = "The request was aborted because there was no available instance. Additional troubleshooting is at https."
    stack, _ = service.status(*of(429, 3, message=aborted), *of(503, 1, message="Malformed."), *of(500, 9))
    platform_words = "Cloud Run's words: The request was aborted because there was no available instance"
    assert stack.reasons[1] == platform_words
    assert not any("Cloud Run's words" in reason for reason in service.status(*of(500, 9))[0].reasons)


@pytest.mark.slow
def test_a_refused_newest_revision_does_not_fail_a_service_that_answers(service: Cloud) -> None:
    pinned = [{"revision": "llm-00002-abc", "percent": 100}]
    stack, text = service.status(*of(200, 5), trafficStatuses=pinned, **REFUSED_NEWEST)
    assert (stack.verdict, stack.reasons) == ("ready", ())
    assert stack.newest is not None
    assert (stack.newest.name, stack.newest.state, stack.newest.reason) == ("llm-00003-new", "failed", WORDS)
    assert f"newest llm-00003-new, failed: {WORDS}" in text
    silent, _ = service.status(trafficStatuses=pinned, **REFUSED_NEWEST)
    assert silent.verdict == "no-callers"
    assert silent.reasons[-1] == "the newest revision failed, and llm-00002-abc has the traffic"
    both, _ = service.status(*of(503, 5), trafficStatuses=pinned, **REFUSED_NEWEST)
    assert both.verdict == "failing"


@pytest.mark.parametrize(
    ("live", "verdict", "newest"),
    [
        ({**REFUSED_NEWEST, "latestReadyRevision": None}, "failed", "failed"),  # the first deploy
        ({"trafficStatuses": []}, "failed", "without traffic"),
        (
            {"latestReadyRevision": None, "terminalCondition": {"state": "CONDITION_RECONCILING"}},
            "deploying",
            "starting",
        ),
    ],
)
def test_a_service_without_a_revision_that_serves_is_the_platforms(
    service: Cloud, live: Any, verdict: str, newest: str
) -> None:
    stack, _ = service.status(*of(200, 5), **live)
    assert (stack.verdict, stack.calls, stack.revisions) == (verdict, None, ())
    assert stack.newest is not None
    assert stack.newest.state == newest


@pytest.mark.slow
def test_traffic_of_an_older_revision_is_judged_by_that_revision(service: Cloud) -> None:
    pinned = [{"revision": "llm-00001-old", "percent": 100}]
    good, bad = of(200, 3, revision="llm-00001-old"), of(503, 9)
    stack, text = service.status(*good, *bad, trafficStatuses=pinned)
    assert (stack.verdict, stack.newest and stack.newest.state) == ("ready", "without traffic")
    assert "newest llm-00002-abc, without traffic\n" in text
    stack, _ = service.status(*of(200, 9), *of(503, 3, revision="llm-00001-old"), trafficStatuses=pinned)
    assert stack.verdict == "failing"


def test_a_split_names_the_revision_that_fails(service: Cloud) -> None:
    split = [{"revision": "llm-00001-old", "percent": 90}, {"revision": "llm-00002-abc", "percent": 10}]
    stack, _ = service.status(*of(503, 2), *of(200, 18, revision="llm-00001-old"), trafficStatuses=split)
    assert stack.verdict == "degraded"
    assert stack.reasons[1] == "llm-00001-old: 0 of 18 failed, llm-00002-abc: 2 of 2 failed"


def test_a_log_that_may_not_be_read_is_not_judged(service: Cloud) -> None:
    service.counts = {("llm-00002-abc", 200): 7}
    service.held.live[SERVICE] = live_service()
    service.held.requests = Answer(403, DENIED)
    report = status(service.held.context, StatusArguments(stack="dev"))
    (stack,) = report.stacks
    assert (stack.verdict, report.exit_code) == ("not-judged", 1)
    assert "logging.logEntries.list" in stack.reasons[0]
    assert "7 in 10 minutes, none failed; newest 3 min ago (Cloud Monitoring)" in stack.reasons[1]
    assert "verdict not judged\n" in report.text().replace("verdict      ", "verdict ")
    # That requests fail is certain without the log, and how many more were refused is not.
    service.counts = {("llm-00002-abc", 200): 7, ("llm-00002-abc", 500): 7}
    report = status(service.held.context, StatusArguments(stack="dev"))
    assert report.stacks[0].verdict == "failing"
    assert "requests that the platform refused are not among these: " in report.text()
    assert "logging.logEntries.list" in report.text()
    service.held.requests = of(500, 7)
    assert "refused are not among" not in status(service.held.context, StatusArguments(stack="dev")).text()


@pytest.mark.slow
def test_monitoring_that_may_not_be_read_leaves_what_the_log_has(service: Cloud) -> None:
    service.refusal = Answer(403, DENIED)
    stack, text = service.status(*of(200, 2))
    assert stack.verdict == "ready"
    assert "2 in 10 minutes, none failed; newest 30 s ago (request log)" in text
    assert service.status(*of(429, 2))[0].verdict == "failing"
    silent, _ = service.status()
    assert (silent.verdict, len(silent.reasons)) == ("not-judged", 1)
    assert "monitoring.timeSeries.list" in silent.reasons[0]


def test_requests_that_the_log_lacks_are_monitorings(service: Cloud) -> None:
    service.counts = {("llm-00002-abc", 500): 9, ("llm-00001-old", 500): 50}
    stack, _ = service.status(*of(200, 3, ago=400))
    assert (stack.verdict, stack.calls and stack.calls.failed) == ("failing", 9)


@pytest.mark.slow
@pytest.mark.parametrize("skew", [-3600, 3600])
def test_the_window_is_of_googles_clock(service: Cloud, skew: int) -> None:
    service.held.server.set_clock(lambda: NOW + skew)
    stack, _ = service.status(*of(503, 3, ago=30 - skew), *of(200, 50, ago=700 - skew))
    assert stack.verdict == "failing"
    assert stack.calls is not None
    assert (stack.calls.number, stack.calls.age_seconds) == (3, 30)


EXIT = "Container called exit(1)."
STARTED = 'Default STARTUP HTTP probe succeeded after 1 attempt for container "llm-1".'
LIVENESS = "LIVENESS HTTP probe failed 3 times, so the instance has been shut down."
ASKED = "(APIServer pid=1) INFO 11-27 [launcher.py:254] [shutdown] API server: shutdown triggered"


def end_of(number: int, how: str = EXIT, *, ago: float = 60.0, **more: Any) -> list[dict[str, Any]]:
    """Ends of so many instances, a minute apart, each of which had started well; the last one `ago` seconds ago."""
    lines_of_ends = []
    for each in range(number):
        at, instance = ago + 60 * each, f"i{each}{more.get('revision', '')}"
        lines_of_ends += [logged_line(STARTED, at + 40, instance, **more), logged_line(how, at, instance, **more)]
    return lines_of_ends


def asked_end(number: int, how: str) -> list[dict[str, Any]]:
    """The same of instances that the platform asked to end, in the words of the server."""
    asked = [logged_line(ASKED, 61 + 60 * each, f"i{each}", log="stderr") for each in range(number)]
    return [*end_of(number, how), *asked]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("log", "verdict"),
    [
        # 2 of 6 streams broke, and each has status 200.
        (of(200, 12) + end_of(7), "degraded"),
        (of(200, 12) + end_of(2), "degraded"),
        (of(200, 12) + end_of(2, "Container called exit(0)."), "degraded"),  # an end without a signal
        (of(200, 12) + end_of(2, "Container terminated on signal 9."), "degraded"),
        (of(200, 12) + end_of(2, "Container terminated on signal 6."), "degraded"),
        (of(200, 12) + end_of(2, "Memory limit of 16384 MiB exceeded."), "degraded"),
        (of(200, 12) + end_of(2, LIVENESS), "degraded"),
        (of(200, 1200, ago=20) + end_of(2), "degraded"),  # more requests than a page holds
        (of(200, 12) + end_of(3, ago=400), "degraded"),
        (of(200, 12, ago=500) + end_of(2) + [logged_line(STARTED, 30, "new")], "degraded"),  # not yet well for long
        (of(200, 12) + of(503, 1) + end_of(2), "degraded"),
        (of(503, 12) + end_of(2), "failing"),
        (of(403, 3) + end_of(2), "refused"),
        (end_of(2), "no-callers"),
        # No loop.
        (of(200, 12) + end_of(1), "ready"),
        (of(200, 12) + end_of(2, ago=601), "ready"),
        (of(200, 12) + end_of(2, ago=560), "ready"),  # one of them within the window
        (of(200, 12) + end_of(3, revision="llm-00001-old"), "ready"),  # without traffic
        (of(200, 12) + end_of(3, "Shutting down instance."), "ready"),
        (of(200, 12) + asked_end(1, "Container called exit(0)."), "ready"),
        (of(200, 12) + asked_end(5, "Container called exit(0)."), "ready"),
        (of(200, 12) + asked_end(5, "Container called exit(1)."), "ready"),  # vLLM logs its engine's death then
        (of(200, 12) + end_of(5, "Container terminated on signal 15."), "ready"),
        (of(200, 12) + end_of(5, "Container called exit(143)."), "ready"),
        (of(200, 12) + [logged_line(STARTED, 40 + each, f"i{each}") for each in range(9)], "ready"),
        (of(200, 12) + end_of(5, f'"POST /v1/{EXIT} HTTP/1.1" 404'), "ready"),  # a caller's words
    ],
)
def test_a_server_that_ends_again_and_again_is_never_ready(service: Cloud, log: Any, verdict: str) -> None:
    stack, text = service.status(*log)
    assert stack.verdict == verdict, text
    assert stack.calls is not None
    has_loop = bool(stack.calls.loops)
    assert has_loop == (verdict != "ready")
    assert has_loop == any("ended by themselves in 10 minutes" in reason for reason in stack.reasons)
    assert Status(stacks=(stack,)).exit_code == (verdict not in {"ready", "no-callers"})


@pytest.mark.slow
def test_a_loop_is_counted_and_its_revision_named_in_a_split(service: Cloud) -> None:
    broke_off = "answers that were under way broke off"
    stack, text = service.status(*of(200, 12), *end_of(7))
    assert stack.reasons == (
        f"7 instances ended by themselves in 10 minutes: {broke_off}",
        "`bezel logs dev --source platform` lists them, `bezel advise dev` names causes",
    )
    assert "requests 12 in 10 minutes, none failed" in text
    split = [{"revision": "llm-00001-old", "percent": 90}, {"revision": "llm-00002-abc", "percent": 10}]
    both = [*of(200, 2), *of(200, 18, revision="llm-00001-old")]
    stack, _ = service.status(*both, *end_of(3), trafficStatuses=split)
    assert stack.reasons[0] == f"3 instances ended by themselves in 10 minutes (llm-00002-abc: 3): {broke_off}"
    # One end of each revision is no server that ends again and again.
    each = [*end_of(1), *end_of(1, revision="llm-00001-old")]
    assert service.status(*both, *each, trafficStatuses=split)[0].verdict == "ready"


def test_ends_in_a_log_that_may_not_be_read_are_not_judged(service: Cloud) -> None:
    service.counts = {("llm-00002-abc", 200): 7}
    service.held.live[SERVICE] = live_service()
    service.held.requests = Answer(403, DENIED)
    (stack,) = status(service.held.context, StatusArguments(stack="dev")).stacks
    assert (stack.verdict, stack.calls and stack.calls.loops) == ("not-judged", ())


@pytest.mark.slow
def test_requests_and_ends_are_read_at_once_where_a_page_holds_both(service: Cloud) -> None:
    def reads() -> int:
        return sum(call.path.endswith("entries:list") for call in service.held.server.calls)

    service.status(*of(200, 12), *end_of(2))
    assert reads() == 1
    service.status(*of(200, 1200), *end_of(2))
    assert reads() == 3
