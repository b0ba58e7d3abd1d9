"""A lease with a fallback under the real engine: not granted, granted, ended under its users, granted again, gone."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import httpx
import pytest

from bezel.planner.fallback.gateway_checks import RETURN, detection_seconds
from bezel_components.config.gateway_fallback import SERVED_BY
from localcloud_support.client import plain
from tests.support.e2e.rehearsal import BOTH_PACKS, Rehearsal, Run
from tests.support.localcloud.gateway_harness import missing_proxy
from tests.support.localcloud.streaming_users import Users

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.skipif(bool(missing_proxy()), reason=missing_proxy())]
STACK, NAME = "v6e1-12b", "bezel-v6e1-12b"
FALLBACK = {"accelerator": "nvidia-l4", "region": "us-east4", "model": "gemma-4-12b-it-qat-w4a16"}
BODY = {"model": "gemma-4-12b-it", "prompt": "Hello", "max_tokens": 8, "stream": True}
KINDS = ("queuedResources", "nodes", "accounts", "services", "networks", "subnetworks")


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Rehearsal]:
    made = Rehearsal.new(tmp_path / "checkout", tmp_path / "cloud")
    made.set("smoke", {"requests": 2, "concurrency": 2, "output_tokens": 4, "prompt_tokens": 32}, STACK)
    made.set("cost", None, STACK)
    made.set("lease", {"zones": [{"zone": "us-east5-a"}]}, STACK)
    made.set("fallback", FALLBACK | {"vllm": {"max-num-seqs": 32}}, STACK)
    yield made
    made.stop_cloud()


def up(stage: Rehearsal) -> Run:
    run = stage.local("up", STACK, "--", *BOTH_PACKS)
    assert run.code == 0, run.text
    return run


def fault(stage: Rehearsal, *arguments: str) -> None:
    run = stage.bezel("local", "fault", *arguments, "--dir", str(stage.cloud))
    assert run.code == 0, run.text


def state_of(stage: Rehearsal) -> str:
    return str(stage.outputs(STACK)["leases"][NAME]["state"])


def completion(stage: Rehearsal, part: str = "") -> tuple[int, str]:
    """Status of a completion at the gateway, and what has served it."""
    url = stage.outputs(STACK)["url"]
    headers = {"Authorization": f"Bearer {stage.token(url)}"}
    response = httpx.post(f"{url}{part}/v1/completions", json=BODY, headers=headers, timeout=60)
    return response.status_code, response.headers.get(SERVED_BY, "")


def check_callers_of_fallback(stage: Rehearsal) -> None:
    """The fallback's own URL admits the gateway's account alone."""
    path = f"/run/v2/projects/bezel-local/locations/us-east4/services/{NAME}-fallback"
    with stage.api() as api:
        (binding,) = api.get(f"{path}:getIamPolicy").json()["bindings"]
        url = api.get(path).json()["uri"]
    gateway = f"serviceAccount:{NAME}-gw@bezel-local.iam.gserviceaccount.com"
    assert (binding["role"], binding["members"]) == ("roles/run.invoker", [gateway])
    assert plain.get(f"{url}/v1/models").status_code == 403


def check_nothing_left(stage: Rehearsal) -> None:
    gone = stage.local("down", STACK)
    assert gone.code == 0, gone.text
    stage.start_cloud()
    left = {kind: [one for one in names if NAME in str(one)] for kind, names in stage.exists().items()}
    assert not {kind: names for kind, names in left.items() if names and kind in KINDS}, left


@pytest.mark.wide
def test_a_refused_lease_stops_no_deploy_and_the_next_requests_it(stage: Rehearsal) -> None:
    stage.start_cloud()
    fault(stage, "add", "lease-stock-out")
    first = up(stage)
    assert "The fallback serves until then; the next deploy requests it" in first.text
    assert state_of(stage) == "not granted"
    assert completion(stage) == (200, "fallback")
    assert completion(stage, "/lease")[0] == 503
    check_callers_of_fallback(stage)
    status = stage.bezel("status", STACK, **stage.variables()).text
    assert f"the fallback {NAME}-fallback serves" in status
    assert f"lease {NAME} was not granted" in " ".join(status.split())
    assert "running " in status

    fault(stage, "clear")
    assert "was not granted: this deploy requests it again" in up(stage).text
    assert state_of(stage) == "active"
    assert completion(stage, "/lease") == (200, "lease")
    assert completion(stage, "/fallback") == (200, "fallback")
    unchanged = stage.local("preview", STACK, "--", "--expect-no-changes")
    assert unchanged.code == 0, unchanged.text
    check_nothing_left(stage)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_users_lose_only_streams_on_a_lease_that_ends(stage: Rehearsal) -> None:
    up(stage)
    url = stage.outputs(STACK)["url"]
    headers = {"Authorization": f"Bearer {stage.token(url)}", "Content-Type": "application/json"}
    body = json.dumps(BODY | {"max_tokens": 32}).encode()
    detection = detection_seconds()["machine gone"]
    with Users(httpx.URL(url).port or 0, 64, "/v1/completions", body, headers, b"data: [DONE]\n\n") as users:
        users.wait_for_streams("lease", 0, 2 * RETURN)
        died = time.monotonic()
        fault(stage, "add", "lease-preempted")
        users.wait_for_streams("fallback", died + detection, 60)
        assert stage.bezel("status", STACK, **stage.variables()).text.count("serves") >= 1
        stage.set("lease.renew", True, STACK)
        up(stage)
        returned = time.monotonic()
        users.wait_for_streams("lease", returned, 2 * RETURN)
    users.check_lost_streams(died, detection)
    check_nothing_left(stage)
