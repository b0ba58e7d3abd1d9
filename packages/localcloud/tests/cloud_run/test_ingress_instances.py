"""Instances behind a front: how many, how long a request waits for one, when one ends, and what the log says of it."""

import asyncio
import os
import re
import subprocess
import sys
from dataclasses import replace

import pytest

from bezel_localcloud.core.store import Store
from bezel_localcloud.services.cloud_run.failures import ContainerFailureError
from bezel_localcloud.services.cloud_run.runtime.autoscaler import DEMAND, MINIMUM, Autoscaler, NoInstanceError, Scaling
from bezel_localcloud.services.cloud_run.spec import ProbeSpec, revision_spec
from localcloud_support.client import SERVICES, is_alive, plain, until
from localcloud_support.fake_daemon import FAKE
from localcloud_support.instances import ask_instance, make_instance, start_instance
from localcloud_support.virtual_loop import run_virtually

pytestmark = pytest.mark.slow  # whole processes

BOUNDS = Scaling(concurrency=1, minimum=0, maximum=1, idle_seconds=900.0, queue_seconds=10.0)
MANUAL = {"scalingMode": "MANUAL"}


class Started:
    """An instance of no process, which takes some seconds to start."""

    def __init__(self) -> None:
        self.in_flight, self.idle_since, self.exited, self.is_ready = 0, 0.0, asyncio.Event(), True

    async def stop(self) -> None:
        self.exited.set()


def pool_of(seconds, scaling=BOUNDS, fails=False):
    """A pool whose instances take some seconds to start or fail to, and the reasons why each was started."""
    reasons = []

    async def start(reason):
        reasons.append(reason)
        await asyncio.sleep(seconds)
        if fails:
            raise ContainerFailureError("it does not start")
        return Started()

    return Autoscaler(start, scaling), reasons


async def second_request(pool, busy_for):
    """What becomes of a request while the only place is taken for some seconds more."""
    first = await pool.acquire()
    asyncio.get_running_loop().call_later(busy_for, pool.release, first)
    try:
        return await pool.acquire() is first
    except NoInstanceError as error:
        return error.status


@pytest.mark.parametrize(
    ("start", "busy", "outcome"),
    [(0.0, 9.0, True), (0.0, 11.0, 429), (100.0, 340.0, True), (100.0, 360.0, 429)],
)
def test_a_request_waits_ten_seconds_or_some_starts_and_then_gets_429(start, busy, outcome):
    assert run_virtually(second_request(pool_of(start)[0], busy)) == outcome


def test_a_request_waits_as_long_as_an_instance_is_on_its_way():
    async def wait():
        pool, reasons = pool_of(600.0)
        await pool.acquire()
        return reasons, asyncio.get_running_loop().time()

    assert run_virtually(wait()) == ([DEMAND], pytest.approx(600.0))


def test_a_revision_without_instances_answers_503_and_starts_none():
    """A revision of at most 0 instances answers 503 and starts none."""

    async def outcome():
        pool, reasons = pool_of(0.0, replace(BOUNDS, maximum=0))
        with pytest.raises(NoInstanceError, match="disabled") as caught:
            await pool.acquire()
        return caught.value.status, reasons

    assert run_virtually(outcome()) == (503, [])


def test_an_idle_instance_ends_unless_the_minimum_needs_it():
    """An instance without requests ends after a quarter of an hour unless the minimum needs it."""

    async def ends(least):
        pool, _ = pool_of(0.0, replace(BOUNDS, minimum=least))
        instance = await pool.acquire()
        await asyncio.sleep(5000.0)
        busy = instance.exited.is_set()
        pool.release(instance)
        await asyncio.sleep(899.0)
        early = instance.exited.is_set()
        await asyncio.sleep(2.0)
        return busy, early, instance.exited.is_set()

    assert run_virtually(ends(least=0)) == (False, False, True)
    assert run_virtually(ends(least=1)) == (False, False, False)


def test_a_starting_instance_beyond_the_maximum_ends():
    """A starting instance for which the maximum leaves no room ends, and serves no request later."""

    async def outcome(most):
        pool, reasons = pool_of(1.0, replace(BOUNDS, minimum=2, maximum=2))
        pool.fit()
        waiting = asyncio.ensure_future(pool.acquire())
        await asyncio.sleep(0.5)
        pool.scaling = replace(BOUNDS, maximum=most)
        pool.fit()
        await asyncio.wait([waiting])
        refused = waiting.exception()
        pool.scaling = BOUNDS
        if refused is None:
            pool.release(waiting.result())
        await pool.acquire()
        return refused and refused.status, reasons, asyncio.get_running_loop().time()

    assert run_virtually(outcome(most=0)) == (503, [MINIMUM, MINIMUM, DEMAND], pytest.approx(1.5))
    assert run_virtually(outcome(most=1)) == (None, [MINIMUM, MINIMUM], pytest.approx(1.0))


def test_the_minimum_is_restored_at_once_but_slowly_in_a_crash_loop():
    """Lost instances of the minimum are replaced at once, in a crash loop after growing pauses."""

    async def starts_after_a_loss():
        """An instance of the least number that is lost once, after it has run for long."""
        pool, reasons = pool_of(1.0, replace(BOUNDS, minimum=1))
        pool.fit()
        (await pool.acquire()).exited.set()
        await asyncio.sleep(1.5)
        return len(reasons)

    async def looping():
        pool, reasons = pool_of(1.0, replace(BOUNDS, minimum=1), fails=True)
        pool.fit()
        await asyncio.sleep(600.0)
        return len(reasons), set(reasons)

    assert run_virtually(starts_after_a_loss()) == 2
    # At 0, 1, 3, 6, 11, 20, 37 and 70 seconds, then once a minute.
    assert run_virtually(looping()) == (16, {MINIMUM})


@pytest.mark.parametrize(
    ("cpu", "requested", "concurrency"),
    [("1", None, 80), ("4", None, 80), ("0.5", None, 1), ("500m", 7, 7), ("8", 7, 7)],
)
def test_the_concurrency_that_nobody_gave_is_80_and_1_below_one_cpu(cpu, requested, concurrency):
    template = {"containers": [{"resources": {"limits": {"cpu": cpu}}}]}
    asked = {"maxInstanceRequestConcurrency": requested} if requested else {}
    assert revision_spec(template | asked, {}).concurrency == concurrency


def count_starts(cloud, service):
    return len(cloud.log(service, 'AND textPayload="container begins"'))


def scale(cloud, service, scaling):
    cloud.finish("run/v2", cloud.patch(f"{SERVICES}/{service}", {"scaling": scaling}, updateMask="scaling"))


def test_manual_scaling_keeps_the_number_it_names_whatever_comes_in(cloud):
    cloud.create("manual", cloud.template(), scaling=MANUAL | {"manualInstanceCount": 2})
    until(lambda: count_starts(cloud, "manual") == 2)
    front = cloud.front("manual")
    pid = front.get("/").json()["pid"]
    scale(cloud, "manual", MANUAL)
    until(lambda: not is_alive(pid))
    refused = front.get("/")
    assert (refused.status_code, "disabled" in refused.text) == (503, True)
    assert count_starts(cloud, "manual") == 2
    scale(cloud, "manual", {})
    assert front.get("/").status_code == 200
    reasons = [e["textPayload"].split()[4] for e in cloud.log("manual", 'AND textPayload:"Starting new instance"')]
    assert reasons == ["DEPLOYMENT_ROLLOUT", "MANUAL_OR_CUSTOMER_MIN_INSTANCE", "AUTOSCALING"]
    cloud.remove("manual")


@pytest.fixture(scope="module")
def service(cloud):
    """One service for the tests that leave it running."""
    cloud.create("watched", cloud.template())
    yield cloud.service("watched")
    cloud.remove("watched")


def test_a_request_that_takes_too_long_ends_and_its_instance_goes_on(cloud, tmp_path):
    cloud.create("hasty", cloud.template(timeout="1s"))
    front = cloud.front("hasty")

    def instance():
        return until(lambda: (answer := front.get("/")).is_success and answer.json()["pid"])

    pid = instance()
    os.mkfifo(tmp_path / "never-written")
    assert front.get(f"/read={tmp_path / 'never-written'}").status_code == 504
    assert instance() == pid
    entry = until(lambda: cloud.log("hasty", 'AND httpRequest.status=504 AND httpRequest.requestUrl:"/read"'))[0]
    assert (entry["severity"], "maximum request timeout" in entry["textPayload"]) == ("ERROR", True)
    cloud.remove("hasty")


def test_refused_and_broken_requests_are_logged_as_the_platform_does(cloud, service):
    """What the front refuses and what breaks is logged in the platform's words."""
    plain.get(service["uri"])
    cloud.front("watched").get("/die")
    entries = {e["httpRequest"]["status"]: e for e in cloud.log("watched", "AND httpRequest.status>=403")}
    assert (entries[403]["severity"], "instanceId" in entries[403].get("labels", {})) == ("WARNING", False)
    assert entries[503]["textPayload"].startswith("The request failed because either the HTTP response was malformed")
    ended = until(lambda: cloud.log("watched", 'AND textPayload="Container called exit(7)."'))
    assert ended[0]["severity"] == "WARNING"


@pytest.mark.parametrize(
    ("kind", "parameters", "status", "severity", "text"),
    [
        ("rate-limited", {}, 429, "WARNING", "The request was aborted because there was no available instance."),
        ("server-errors", {"status": 500}, 500, "ERROR", "The request was aborted because there was no available"),
        ("server-errors", {"status": 503}, 503, "ERROR", "The request failed because either the HTTP response was"),
        ("server-errors", {"status": 504}, 504, "ERROR", "The request has been terminated because it has reached"),
    ],
)
@pytest.mark.usefixtures("service")
def test_a_refusal_by_a_fault_is_logged_as_the_platforms_own(cloud, kind, parameters, status, severity, text):
    path = f"/struck-{status}"
    fault = {"kind": kind, "parameters": {"at": "service", "path": path, "count": 1, **parameters}}
    assert cloud.post("/localcloud/faults", fault).status_code == 200
    front = cloud.front("watched")
    assert front.get(path).status_code == status
    front.get(path)
    struck, passed = until(lambda: (e := cloud.log("watched", f'AND httpRequest.requestUrl:"{path}"'))[1:] and e)
    assert (struck["httpRequest"]["status"], struck["severity"]) == (status, severity)
    assert struck["textPayload"].startswith(text)
    assert struck["resource"] == passed["resource"]
    # No instance saw it, and the next request passed.
    assert ("labels" in struck, "labels" in passed, "textPayload" in passed) == (False, True, False)


def test_every_entry_carries_the_labels_and_the_log_of_its_kind(cloud, service):
    cloud.front("watched").get("/say?it", headers={"traceparent": f"00-{'a1' * 16}-{'b2' * 8}-01"})
    request = until(lambda: cloud.log("watched", 'AND httpRequest.requestUrl:"/say"'))[-1]
    kinds = {"stdout", "stderr", "requests", "system"}
    instance = f'AND labels.instanceId="{request["labels"]["instanceId"]}"'
    # What the container wrote takes its own way: it may come after the request's entry.
    until(lambda: kinds <= {e["logName"].rpartition("%2F")[2] for e in cloud.log("watched", instance)})
    entries = cloud.log("watched")
    assert {e["logName"].rpartition("%2F")[2] for e in entries} == kinds
    assert {e["logName"].rpartition("/")[0] for e in entries} == {"projects/bezel-local/logs"}
    labels = {
        "project_id": "bezel-local",
        "location": "us-east4",
        "service_name": "watched",
        "configuration_name": "watched",
        "revision_name": service["latestReadyRevision"].rpartition("/")[2],
    }
    assert {e["resource"]["type"] for e in entries} == {"cloud_run_revision"}
    # What the front refuses itself, here by other tests, is of no revision.
    passed = [entry for entry in entries if entry.get("httpRequest", {}).get("status") not in {403, 413}]
    assert all(entry["resource"]["labels"] == labels for entry in passed)
    assert request["trace"] == f"projects/bezel-local/traces/{'a1' * 16}"
    assert request["labels"]["instanceId"] in {
        e["labels"]["instanceId"] for e in entries if e["logName"].endswith("stdout")
    }
    texts = [e["textPayload"] for e in entries if e["logName"].endswith("varlog%2Fsystem")]
    assert texts[0].startswith("Starting new instance. Reason: DEPLOYMENT_ROLLOUT - ")
    assert re.fullmatch(
        r'STARTUP HTTP probe succeeded after \d+ attempts? for container "watched-1" on port 8080 path "/health"\.',
        texts[1],
    )


@pytest.mark.usefixtures("service")
def test_the_front_adds_itself_to_the_way_a_request_came(cloud):
    headers = {"X-Forwarded-For": "192.0.2.1", "X-Forwarded-Proto": "gopher", "traceparent": "nonsense"}
    seen = cloud.front("watched").get("/", headers=headers).json()["headers"]
    assert (seen["x-forwarded-for"], seen["x-forwarded-proto"]) == ("192.0.2.1, 127.0.0.1", "http")
    assert seen["traceparent"].split("-")[1] == seen["x-cloud-trace-context"].split("/")[0] != "nonsense"


@pytest.mark.usefixtures("service")
def test_a_body_beyond_the_platforms_bound_is_refused(cloud):
    """A body beyond the platform's bound is refused and one below it arrives."""
    front = cloud.front("watched")
    assert front.post("/", content=b"x" * (32 * 1024**2 + 1)).status_code == 413
    assert len(front.post("/", content=b"x" * 100_000).json()["body"]) == 100_000
    sizes = {413: str(32 * 1024**2 + 1), 200: "100000"}  # as the client gave them, not what was read before a refusal
    for status, size in sizes.items():
        entry = until(
            lambda s=status: cloud.log("watched", f'httpRequest.status={s} AND httpRequest.requestMethod="POST"')
        )
        assert entry[-1]["httpRequest"]["requestSize"] == size


@pytest.mark.usefixtures("service")
def test_the_logged_url_keeps_its_escapes_and_query(cloud):
    """The URL in the log is the requested one with its escapes and query."""
    cloud.front("watched").get("/a%20b/%C3%A4%3F?x=%26")
    entry = until(lambda: cloud.log("watched", 'httpRequest.requestUrl:"/a"'))[-1]
    assert entry["httpRequest"]["requestUrl"].partition("/a")[2] == "%20b/%C3%A4%3F?x=%26"


def test_a_deployment_without_health_check_waits_for_no_container(cloud):
    assert cloud.create("unchecked", cloud.template("--silent", healthCheckDisabled=True)).get("error") is None
    assert cloud.service("unchecked")["terminalCondition"]["state"] == "CONDITION_SUCCEEDED"
    assert count_starts(cloud, "unchecked") == 0
    cloud.remove("unchecked")


def test_a_probe_of_a_port_that_is_not_the_containers_finds_nobody(cloud):
    template = cloud.template()
    template["containers"][0]["startupProbe"] = {"tcpSocket": {"port": 9000}, "failureThreshold": 2}
    assert cloud.create("elsewhere", template)["error"]["code"] == 9
    text = cloud.log("elsewhere", "AND severity=ERROR")[0]["textPayload"]
    assert text.splitlines()[0].endswith('for container "elsewhere-1" on port 9000. The instance was not started.')
    cloud.remove("elsewhere")


@pytest.mark.usefixtures("service")
def test_the_processes_of_a_container_end_with_it(cloud):
    front = cloud.front("watched")
    child = front.get("/child").json()["children"][-1]
    assert is_alive(child)
    front.get("/die")
    until(lambda: not is_alive(child))


# Runs an instance of the fake container and tells the ids of its processes; then waits to be killed.
OWNER = """
import asyncio, os, sys
from pathlib import Path
from localcloud_support.instances import ask_instance, make_instance, start_instance

async def main():
    instance = make_instance(Path(sys.argv[1]))
    await start_instance(instance)
    seen = await ask_instance(instance, "/child")
    print(seen["pid"], seen["children"][0], flush=True)
    await asyncio.sleep(60)

asyncio.run(main())
"""


def test_no_process_of_an_instance_outlives_the_daemon_that_is_killed(tmp_path):
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(tmp_path)],
        cwd=FAKE.parent,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        text=True,
    )
    pids = [int(pid) for pid in owner.stdout.readline().split()]
    assert [is_alive(pid) for pid in pids] == [True, True]
    owner.kill()
    owner.wait()
    until(lambda: not any(map(is_alive, pids)))


def test_a_liveness_probe_gives_up_on_unhealthy_instances_only(tmp_path):
    """A liveness probe gives up on the unhealthy and never on the healthy."""

    async def outcomes():
        instance = make_instance(tmp_path)
        await start_instance(instance)
        lost = asyncio.ensure_future(instance.alive(ProbeSpec("/health", 0, 0.0, 60.0, 0.02, 2)))
        await asyncio.wait([lost], timeout=0.3)
        healthy = not lost.done()
        await ask_instance(instance, "/hang-up")
        await asyncio.wait([lost], timeout=60)
        gave_up = lost.done()
        await instance.stop()
        return healthy, gave_up

    assert asyncio.run(outcomes()) == (True, True)
    store = Store(tmp_path / "cloud.db")
    texts = [entry["textPayload"] for _, entry in store.log_slice(newest_first=False)]
    text = 'LIVENESS HTTP probe failed 2 times consecutively for container "s-1" on port 8080 path "/health".'
    assert f"{text} The instance has been shut down." in texts
    store.close()
