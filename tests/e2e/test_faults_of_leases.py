"""Faults of leases: each is told with cause, consequence and repair, leaves no more than one machine, and is mended."""

import re
import time
from collections.abc import Callable, Iterator

import pytest

from bezel_localcloud.faults.kinds import KINDS
from tests.support.e2e.fault_harness import check_golden, error_text, normalize, without_preview
from tests.support.e2e.lease_harness import STACK, LeaseFaultHarness
from tests.support.e2e.rehearsal import SECONDS as RUN_SECONDS
from tests.support.e2e.rehearsal import Run

AGAIN = "once it is mended the next `up` leases one machine, and is green"
RENEWED = "each `up` says so and buys nothing; with `lease.renew: true` the next one leases one machine and checks it"
SECONDS = 60


@pytest.fixture(scope="module")
def leased_stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LeaseFaultHarness]:
    with LeaseFaultHarness.deploy(tmp_path_factory.mktemp("leased")) as made:
        yield made


@pytest.fixture
def stage(leased_stage: LeaseFaultHarness) -> Iterator[LeaseFaultHarness]:
    yield leased_stage
    leased_stage.reset()
    if not leased_stage.one_lease():
        leased_stage.deploy_one()


def until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"never: {what}"
        time.sleep(0.1)


@pytest.mark.wide
@pytest.mark.parametrize(
    "kinds",
    [
        ("lease-stock-out", "lease-never-active"),
        pytest.param(("lease-quota", "lease-zone-refused"), marks=pytest.mark.long),
    ],
)
def test_where_no_zone_gives_a_machine_nothing_is_left(stage: LeaseFaultHarness, kinds: tuple[str, ...]) -> None:
    stage.need_a_lease()
    seen = []
    for kind in kinds:
        command = stage.add(kind)
        text, state = error_text(stage.up()), stage.state()
        assert "none of 2 zones granted it" in text
        assert "in the cloud no request and no machine in any zone" in state
        seen.append((kind, command, text, state))
        stage.clear()
    stage.deploy_one()
    for kind, command, text, state in seen:
        check_golden(kind, command, text, state, AGAIN)


@pytest.mark.wide
def test_a_long_deletion_is_waited_for_before_a_request(stage: LeaseFaultHarness) -> None:
    stage.need_a_lease()
    command, before = stage.add("lease-slow-delete"), stage.request_count()
    stage.add("lease-slow-delete", seconds=10**9)  # until somebody waits
    process = stage.rehearsal.start("up", STACK, *without_preview())
    assert process.stdout is not None
    waiting = r"waiting for the deletion: us-east5-a DELETING; \d+ (s|min), \d+ min left"
    waits = next((match for line in process.stdout if (match := re.search(waiting, line))), None)
    stage.clear()
    rest, _ = process.communicate(timeout=RUN_SECONDS)
    assert (process.returncode, stage.request_count(), stage.one_lease()) == (0, before + 1, True), rest
    assert waits, "it waits for no deletion"
    text = f"the deploy is green, and shows what it waits for:\n{re.sub(r'[0-9]+ (s|min)', 'N min', waits[0])}"
    check_golden(
        "lease-slow-delete", command, normalize(text), stage.state(), "there is nothing to mend: the deploy was green"
    )


@pytest.mark.wide
def test_a_request_stored_after_its_time_out_is_found_and_not_repeated(stage: LeaseFaultHarness) -> None:
    stage.need_a_lease()
    command = stage.add("lease-late-fill")
    stage.add("lease-late-fill", seconds=20_000)  # ten of this machine's: not before a busy one has given up
    text = error_text(stage.up())
    assert "the last request may have taken effect" in text
    stage.clear()
    until(lambda: stage.leases()["queuedResources"] != [], "the request is stored")
    until(lambda: stage.request()["state"]["state"] == "ACTIVE", "it is granted")
    state = stage.state()
    asked, stored = stage.request_count(), stage.request()["createTime"]
    stage.deploy_one()
    assert (stage.request_count(), stage.request()["createTime"]) == (asked, stored)
    stage.nothing_left()
    following = "the next `up` finds the request that was stored meanwhile, asks for no other, and is green; "
    check_golden("lease-late-fill", command, text, state, f"{following}then nothing is left to do")


@pytest.mark.wide
@pytest.mark.parametrize("kind", ["lease-preempted", pytest.param("lease-ends", marks=pytest.mark.long)])
def test_a_lease_that_is_over_is_bought_again_only_when_that_is_set(stage: LeaseFaultHarness, kind: str) -> None:
    invoker = stage.invoker()
    assert invoker.get("/v1/models").status_code == 200
    command, before = stage.add(kind), stage.request_count()
    # At first it only fails to connect; then its checks have failed, which is what it says for good.
    until(lambda: "0 of 1 passed" in invoker.get("/v1/models").text, "the gateway sees that no machine is there")
    answer = invoker.get("/v1/models").json()
    assert answer["error"]["code"] == 503, answer
    run, state = stage.up(), stage.state()
    # The engine has nothing to do, and nothing serves all the same.
    assert (run.code, stage.request_count()) == (1, before), run.text
    assert "is deployed on localcloud and not in service: HTTP 503" in run.text
    assert "renew: true" in run.text
    warning = run.text.partition("\nDiagnostics:\n")[2].partition("warning: ")[2].partition("\n")[0]
    assert "another one costs 5.40 USD for 4 h; set lease.renew: true to buy it" in warning

    stage.rehearsal.set("lease.renew", True, "v6e1-12b")
    renewed = stage.deploy_one()
    assert stage.request_count() == before + 1
    assert re.search(r"smoke:HealthCheck vllm-health updated", renewed.text), renewed.text
    assert invoker.get("/v1/models").status_code == 200
    warning = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "TIME", warning)
    text = f"the deploy warns, and the gateway answers 503 ({answer['error']['message']}):\nwarning: {warning}"
    check_golden(kind, command, normalize(text), state, RENEWED)


@pytest.mark.long
def test_a_lease_that_ends_under_the_benchmark_is_red_until_renewed(
    stage: LeaseFaultHarness,
) -> None:
    stage.rehearsal.set("smoke.requests", 100, "v6e1-12b")
    before = stage.request_count()
    process = stage.rehearsal.start("up", "v6e1-12b", "--deadline", "5", *without_preview())
    stage.rehearsal.wait_for(process, "of 100 requests answered")
    stage.add("lease-ends")
    struck = Run(process.wait(SECONDS), process.stdout.read() if process.stdout else "")
    again = stage.up("--deadline", "5")
    for run in (struck, again):
        text = error_text(run)
        assert "its lease has ended or was preempted" in text
        assert "`renew: true` under `bezel:lease`" in text
        assert "in service" not in run.text
        assert "all passed" not in run.text
    assert "the lease bezel-v6e1-12b ended before its planned end" in again.text
    assert stage.request_count() == before

    stage.rehearsal.set("lease.renew", True, "v6e1-12b")
    stage.deploy_one()
    assert stage.request_count() == before + 1
    stage.add("lease-ends")
    down = stage.rehearsal.local("down", "v6e1-12b")
    assert down.code == 0, down.text
    stage.rehearsal.start_cloud()
    assert stage.there() == "no request and no machine in any zone"


def test_every_kind_of_a_lease_is_tried_here() -> None:
    tried = {"lease-stock-out", "lease-zone-refused", "lease-quota", "lease-never-active", "lease-slow-delete"}
    tried |= {"lease-late-fill", "lease-preempted", "lease-ends"}
    assert tried == {kind for kind in KINDS if kind.startswith("lease-")}
