"""`bezel tpu find` against localcloud's own APIs at the wire: what each zone offers, and a probe that leaves nothing.

The embedded cloud runs in this process; its platform's waits pass thousands of times as fast as the clock.
"""

import shutil
from pathlib import Path

import pytest
import yaml

from tests.support.cli.tpu_cloud import EMPTY, OTHER, PARENT, ZONE, Cloud, ProgressLog
from tests.support.rest.fake_google import Answer

pytestmark = pytest.mark.slow  # a whole cloud each


def rows(result: ProgressLog) -> dict[str, dict[str, str]]:
    assert result.code == 0, result.error
    return {row["zone"]: row for row in result.json}


def test_each_zone_has_its_hardware_quota_and_price_or_unknown(cloud: Cloud) -> None:
    rows_by_zone = rows(cloud.tpu("find", "v6e4-moe", "--json"))
    assert cloud.changing_calls == []
    assert rows_by_zone[ZONE] == {
        "zone": ZONE,
        "hardware": "yes",
        "provisioning model": "accepted",
        "quota": "32",
        "USD per hour": "5.40",
        "capacity now": "not probed (--probe)",
    }
    assert rows_by_zone["us-central1-b"]["provisioning model"] == "refused"
    assert rows_by_zone["southamerica-west1-a"]["USD per hour"] == "unknown"
    other = rows(cloud.tpu("find", "v6e4-moe", "--json", "--zone", "us-west1-c"))["us-west1-c"]
    assert (other["hardware"], other["provisioning model"], other["quota"]) == ("no", "unknown", "unknown")


def test_a_question_that_is_not_answered_leaves_the_other_columns(cloud: Cloud) -> None:
    error = {"error": {"code": 403, "message": "ask somebody else", "status": "PERMISSION_DENIED"}}
    cloud.server.routes.insert(0, lambda call: Answer(403, error) if "quotaInfos" in call.path else None)
    result = cloud.tpu("find", "v6e4-moe", "--json", "--zone", ZONE, "--zone", OTHER)
    row = rows(result)[ZONE]
    assert row["quota"] == "? (403 PERMISSION_DENIED)"
    assert result.error == "bezel: ask somebody else\n"
    assert (row["hardware"], row["USD per hour"]) == ("yes", "5.40")


def test_a_probe_tells_capacity_is_bounded_and_leaves_nothing(cloud: Cloud) -> None:
    cloud.project.network("default")
    cloud.project.subnetwork(f"{PARENT}/global/networks/default", "asia-northeast1", "10.70.0.0/20")
    result = cloud.tpu("find", "v6e4-moe", "--probe", "--wait", "2h", "--json", "--zone", ZONE, "--zone", EMPTY)
    rows_by_zone = rows(result)
    assert "granted after" in rows_by_zone[ZONE]["capacity now"]
    assert "not granted within" in rows_by_zone[EMPTY]["capacity now"]
    assert f"{ZONE}: requests one real v6e-4 that ends by itself after 10 min; USD at most: 0.90" in result.error
    assert cloud.remaining_names() == set()
    (asked,) = [call for call in cloud.server.calls if call.method == "POST" and ZONE in call.path]
    assert asked.json["runDuration"] == {"maxRunDuration": "600s"}
    assert asked.json["queueingPolicy"] == {"validUntilDuration": "7200s"}


def test_a_probe_uses_the_stacks_own_network_before_the_default_one(cloud: Cloud) -> None:
    cloud.project.network("default", cidr="10.70.0.0/20")
    cloud.project.network("bezel-v6e4-moe", cidr="10.71.0.0/20")
    row = rows(cloud.tpu("find", "v6e4-moe", "--probe", "--wait", "2h", "--json", "--zone", ZONE))[ZONE]
    assert "granted after" in row["capacity now"]
    (asked,) = [call for call in cloud.server.calls if call.method == "POST"]
    network = asked.json["tpu"]["nodeSpec"][0]["node"]["networkConfig"]
    assert network["subnetwork"] == f"{PARENT}/regions/us-east5/subnetworks/bezel-v6e4-moe-us-east5"


def test_a_machine_of_compute_engine_is_probed_likewise(
    cloud: Cloud, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clone, root = tmp_path / "clone", Path(__file__).parents[2]
    clone.mkdir()
    shutil.copy(root / "Pulumi.yaml", clone)
    stack = yaml.safe_load((root / "Pulumi.v6e1-12b.yaml").read_text())
    stack["config"]["bezel:lease"]["back_end"] = "flex_start_vm"
    stack["config"]["bezel:network"] = {"nat": True}
    stack["config"]["gcp:project"] = PARENT.partition("/")[2]
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "the-stack-file-goes-first")
    (clone / "Pulumi.vm.yaml").write_text(yaml.safe_dump(stack))
    monkeypatch.chdir(clone)
    cloud.project.network("default", cidr="10.70.0.0/20")
    row = rows(cloud.tpu("find", "vm", "--probe", "--wait", "2h", "--json", "--zone", ZONE))[ZONE]
    assert (row["hardware"], row["quota"]) == ("yes", "32")
    assert "granted after" in row["capacity now"]
    assert cloud.remaining_names() == set()
    (asked,) = [call for call in cloud.server.calls if call.method == "POST"]
    assert asked.json["scheduling"]["maxRunDuration"] == {"seconds": "600"}
    assert asked.json["params"] == {"requestValidForDuration": {"seconds": "7200"}}


@pytest.mark.parametrize(("zone", "most"), [(ZONE, "0.23"), ("southamerica-west1-a", "unknown")])
def test_a_probe_of_a_fleet_is_one_machine_and_its_price_that_of_the_zone(cloud: Cloud, zone: str, most: str) -> None:
    region = zone.rpartition("-")[0]
    cloud.project.network("default", region=region, cidr="10.70.0.0/20")
    result = cloud.tpu("find", "v6e1-fleet", "--probe", "--wait", "2h", "--json", "--zone", zone)
    assert "granted after" in rows(result)[zone]["capacity now"]
    assert f"USD at most: {most}\n" in result.error


def test_without_any_network_nothing_is_asked_for_and_it_says_why(cloud: Cloud) -> None:
    result = cloud.tpu("find", "v6e4-moe", "--probe", "--wait", "2h", "--json", "--zone", ZONE)
    assert rows(result)[ZONE]["capacity now"].startswith("? (no network for a probe")
    assert "Repair: probe while v6e4-moe is deployed" in result.error
    assert cloud.changing_calls == []


@pytest.mark.parametrize("wait", ["2x", "0s", "3h"])
def test_a_wait_that_is_none_is_refused_before_anything_is_asked(cloud: Cloud, wait: str) -> None:
    result = cloud.tpu("find", "v6e4-moe", "--probe", "--wait", wait)
    assert result.code == 1
    assert f"--wait = {wait}\n   a probe waits from 1s to 2h" in result.error
    assert cloud.server.calls == []


def test_a_stack_of_cloud_run_is_reported_to_lease_nothing(cloud: Cloud) -> None:
    result = cloud.tpu("find", "l4-qat")
    assert result.code == 1
    assert "the stack leases nothing" in result.error
    assert cloud.server.calls == []
