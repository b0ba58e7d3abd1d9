"""Requests for another value of a quota: pending, then granted or denied, and in force where it counts."""

import pytest

from bezel_localcloud.services.cloud_quotas.decisions import DECIDED_AFTER, GRANTED_FACTOR, decide, unsafe
from bezel_localcloud.services.cloud_run.quotas import quota_violations
from localcloud_support.in_process import PARENT, Project

GLOBAL = f"/cloudquotas/v1/{PARENT}/locations/global"
PREFERENCES = f"{GLOBAL}/quotaPreferences"
RUN, TPU = "run.googleapis.com", "tpu.googleapis.com"
L4 = "NvidiaL4GpuAllocNoZonalRedundancyPerProjectRegion"
V6E = "TPUV6EPerProjectPerZoneForTPUAPI"
FAMILY = "TPUS-PER-TPU-FAMILY-per-project-region"


@pytest.fixture
def project(tmp_path):
    made = Project(tmp_path)
    made.cloud.store.put("api", "cloudquotas.googleapis.com", {"state": "ENABLED"})
    yield made
    made.close()


def body(value, quota=L4, service=RUN, **dimensions):
    dimensions = dimensions or {"region": "us-east4"}
    return {"service": service, "quotaId": quota, "dimensions": dimensions, "quotaConfig": {"preferredValue": value}}


def limit(project, place, quota=L4, service=RUN):
    for info in project.ok("GET", f"{GLOBAL}/services/{service}/quotaInfos/{quota}")["dimensionsInfos"]:
        if place in info["applicableLocations"]:
            return int(info["details"]["value"])
    raise AssertionError(place)


def test_an_increase_is_pending_then_in_force_in_its_place_only(project):
    """An increase is pending, then granted and in force in its place only."""
    made = project.ok("POST", PREFERENCES, body("5"), quotaPreferenceId="more")
    assert made["reconciling"]
    assert made["quotaConfig"]["grantedValue"] == "3"
    assert made["quotaConfig"]["traceId"]
    assert limit(project, "us-east4") == 3
    project.clock.time += DECIDED_AFTER
    preference = project.ok("GET", f"{PREFERENCES}/more")
    assert "reconciling" not in preference
    assert preference["quotaConfig"]["grantedValue"] == preference["quotaConfig"]["preferredValue"] == "5"
    assert (limit(project, "us-east4"), limit(project, "europe-west1")) == (5, 3)


def test_what_is_too_much_is_denied_with_the_reason_and_changes_nothing(project):
    project.ok("POST", PREFERENCES, body("100"), quotaPreferenceId="more")
    project.clock.time += DECIDED_AFTER
    config = project.ok("GET", f"{PREFERENCES}/more")["quotaConfig"]
    assert config["grantedValue"] == "3"
    assert "denied" in config["stateDetail"]
    assert limit(project, "us-east4") == 3


def test_a_granted_request_lets_more_machines_run_there(project):
    quota = body("32", V6E, TPU, zone="us-east5-a")
    assert project.cloud.machines.quotas("us-east5-a")[V6E] == 8
    project.ok("POST", PREFERENCES, quota)
    project.clock.time += DECIDED_AFTER
    assert project.cloud.machines.quotas("us-east5-a")[V6E] == 32
    assert project.cloud.machines.quotas("us-east5-b")[V6E] == 8


def test_a_granted_request_lets_a_service_have_more_instances_there(project):
    project.cloud.store.put("api", "run.googleapis.com", {"state": "ENABLED"})
    limits = {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "1"}
    template = {
        "containers": [{"image": "us-docker.pkg.dev/cloudrun/container/hello", "resources": {"limits": limits}}],
        "nodeSelector": {"accelerator": "nvidia-l4"},
        "gpuZonalRedundancyDisabled": True,
        "scaling": {"maxInstanceCount": 6},
    }

    def validate(region):
        services = f"/run/v2/{PARENT}/locations/{region}/services"
        return project.call("POST", services, {"template": template}, serviceId="llm", validateOnly="true")

    assert "requested: 6 allowed: 3" in validate("us-east4").text
    project.ok("POST", PREFERENCES, body("6"))
    project.clock.time += DECIDED_AFTER
    assert validate("us-east4").is_success
    assert "requested: 6 allowed: 3" in validate("europe-west1").text


def test_a_fault_of_the_quota_holds_after_a_request_was_granted(project):
    project.ok("POST", PREFERENCES, body("6"))
    project.clock.time += DECIDED_AFTER
    project.cloud.faults.add("quota-exceeded", {})
    assert (limit(project, "us-east4"), limit(project, "europe-west1")) == (0, 0)


@pytest.mark.parametrize(("gpus", "fits"), [(4, True), (5, False)])
def test_a_granted_value_in_thousandths_counts_as_gpus(gpus, fits):
    limits = {"cpu": "20", "memory": "80Gi", "nvidia.com/gpu": "1"}
    template = {
        "containers": [{"resources": {"limits": limits}}],
        "nodeSelector": {"accelerator": "nvidia-rtx-pro-6000"},
        "gpuZonalRedundancyDisabled": True,
        "scaling": {"maxInstanceCount": gpus},
    }
    values = {"NvidiaRtxPro6000GpuAllocNoZonalRedundancyPerProjectRegion": 4000}
    problems = list(quota_violations(template, {}, lambda quota, initial: values.get(quota, initial * 10)))
    assert (problems == []) is fits


def test_a_preference_without_a_place_holds_where_no_other_does(project):
    project.ok("POST", PREFERENCES, body("6") | {"dimensions": {}}, quotaPreferenceId="all")
    project.ok("POST", PREFERENCES, body("9"), quotaPreferenceId="one")
    project.clock.time += DECIDED_AFTER
    assert (limit(project, "us-east4"), limit(project, "europe-west1")) == (9, 6)


def test_the_quota_of_a_family_has_the_family_among_its_dimensions(project):
    compute = "compute.googleapis.com"
    (row,) = project.ok("GET", f"{GLOBAL}/services/{compute}/quotaInfos/{FAMILY}")["dimensionsInfos"]
    assert row["dimensions"] == {"tpu_family": "CT6E"}
    project.ok("POST", PREFERENCES, body("64", FAMILY, compute, region="us-east5", tpu_family="CT6E"))
    answer = project.call("POST", PREFERENCES, body("64", FAMILY, compute, region="us-east5", tpu_family="CT5LP"))
    assert answer.status_code == 400


def test_a_decrease_is_checked_and_immediate(project):
    """A request can be changed in any state and a decrease is checked and immediate."""
    project.ok("POST", PREFERENCES, body("5"), quotaPreferenceId="more")
    patched = project.ok(
        "PATCH", f"{PREFERENCES}/more", {"quotaConfig": {"preferredValue": 8}}, updateMask="quotaConfig"
    )
    assert (patched["quotaConfig"]["preferredValue"], patched["quotaConfig"]["grantedValue"]) == ("8", "3")
    less = {"quotaConfig": {"preferredValue": 1}}
    answer = project.call("PATCH", f"{PREFERENCES}/more", less, updateMask="quotaConfig")
    assert answer.status_code == 400
    assert "QUOTA_DECREASE_PERCENTAGE_TOO_HIGH" in answer.text
    ignored = {"updateMask": "quotaConfig", "ignoreSafetyChecks": "QUOTA_DECREASE_PERCENTAGE_TOO_HIGH"}
    preference = project.ok("PATCH", f"{PREFERENCES}/more", less, **ignored)
    assert "reconciling" not in preference
    assert "traceId" not in preference["quotaConfig"]
    assert limit(project, "us-east4") == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"quotaId": "RequestsPerMinute"}, 404),
        ({"dimensions": {"region": "us-west1"}}, 400),
        ({"dimensions": {"colour": "red"}}, 400),
        ({"quotaConfig": {}}, 400),
        ({"quotaConfig": {"preferredValue": "-2"}}, 400),
        ({"service": ""}, 400),
    ],
)
def test_a_request_that_names_nothing_is_refused(project, change, status):
    assert project.call("POST", PREFERENCES, body("5") | change).status_code == status
    assert project.ok("GET", PREFERENCES) == {}


def test_a_preference_of_the_same_quota_and_place_exists_once(project):
    project.ok("POST", PREFERENCES, body("5"))
    assert project.call("POST", PREFERENCES, body("6")).status_code == 409
    project.ok("POST", PREFERENCES, body("6", region="europe-west1"))
    assert len(project.ok("GET", PREFERENCES)["quotaPreferences"]) == 2


def test_requests_and_their_states_outlive_a_restart(project):
    project.ok("POST", PREFERENCES, body("5"), quotaPreferenceId="more")
    project.close()
    project.start()
    assert project.ok("GET", f"{PREFERENCES}/more")["reconciling"]
    project.clock.time += DECIDED_AFTER
    assert limit(project, "us-east4") == 5


@pytest.mark.parametrize(
    ("preferred", "present", "initial", "grants"),
    [(4, 3, 3, 4), (3 * GRANTED_FACTOR, 3, 3, 12), (13, 3, 3, None), (-1, 3, 3, None), (1, 0, 0, None), (2, 3, 3, 2)],
)
def test_a_decision_follows_the_initial_value(preferred, present, initial, grants):
    assert decide(preferred, present, initial).grants == grants


@pytest.mark.parametrize(
    ("preferred", "present", "used", "checks"),
    [
        (95, 100, 10, set()),
        (80, 100, 10, {"QUOTA_DECREASE_PERCENTAGE_TOO_HIGH"}),
        (95, 100, 96, {"QUOTA_DECREASE_BELOW_USAGE"}),
        (200, 100, 300, set()),
        (-1, 100, 300, set()),
    ],
)
def test_a_decrease_is_safe_above_the_usage_and_by_a_tenth(preferred, present, used, checks):
    assert set(unsafe(preferred, present, used)) == checks
