"""Expiry: a stack is over after its last day in UTC; only stacks of dev, unprotected, may be destroyed."""

import json
from contextlib import nullcontext
from datetime import UTC, date, datetime

import pytest

from bezel.engine.outcomes import Exit
from bezel.gitops.upkeep.expiry_run import destroy
from bezel.planner.base.expiry import has_expired
from bezel.rest import Credentials, GoogleClient
from bezel.upkeep.expiry_plan import ExpiryPlan, labelled_leftovers
from bezel.upkeep.expiry_report import ExpiryReport
from bezel.upkeep.findings import Finding, StackState, labelled_finding, stack_finding
from tests.support.clock import Clock
from tests.support.rest.fake_google import Answer, serving

TODAY = date(2026, 11, 24)
URN = "urn:pulumi:old::bezel::gcp:storage/bucket:Bucket::data"


@pytest.mark.parametrize(
    ("moment", "expected"),
    [
        ("2026-11-22T23:59:59Z", False),
        ("2026-11-23T00:00:00Z", False),  # its last day begins
        ("2026-11-23T23:59:59Z", False),
        ("2026-11-24T00:00:00Z", True),
        ("2026-11-23T23:59:59-01:00", True),  # the next day in UTC
        ("2026-11-24T00:30:00+01:00", False),  # still the last day in UTC
        ("2028-02-29T00:00:00Z", True),
    ],
)
def test_the_last_day_is_over_at_midnight_in_utc(moment, expected):
    today = datetime.fromisoformat(moment).astimezone(UTC).date()
    assert has_expired("2026-11-23", today) is expected
    assert has_expired("never", today) is False


@pytest.mark.parametrize("text", ["", "soon", "2026-13-01", "2027-02-29", "23.11.2026", "Never"])
def test_what_is_neither_a_date_nor_never_is_refused(text):
    with pytest.raises(ValueError):  # noqa: PT011 - of the standard library
        has_expired(text, TODAY)


def resource(labels=None, **more):
    inputs = {"labels": {"environment": "dev"} | (labels or {})} | more.pop("inputs", {})
    return {"urn": URN, "type": "gcp:storage/bucket:Bucket", "custom": True, "id": "data", "inputs": inputs} | more


def stack(expires=None, *, settings=None, resources=None):
    labels = {} if expires is None else {"labels": {"expires-at": expires}}
    return StackState("old", {"environment": "dev"} | labels | (settings or {}), resources or [resource()])


def test_a_stack_of_dev_that_is_over_may_be_destroyed():
    finding = stack_finding(stack("2026-11-23"), TODAY)
    assert finding.may_destroy
    assert "2026-11-23 is over: today is 2026-11-24 in UTC" in finding.why


@pytest.mark.parametrize("expires", ["2026-11-24", "2027-01-01", "never", None])
def test_a_stack_that_is_needed_or_has_no_date_is_no_finding(expires):
    assert stack_finding(stack(expires), TODAY) is None


def test_a_stack_of_a_protected_environment_is_reported_only():
    assert stack_finding(stack("2026-11-23"), TODAY, ["prod"]).may_destroy
    kept = stack_finding(stack("2026-11-23"), TODAY, ["prod", "dev"])
    assert (kept.may_destroy, kept.kept_because) == (False, "its environment is dev, which bezel.toml protects")


@pytest.mark.parametrize(
    ("settings", "resources", "reason"),
    [
        ({"environment": "prod"}, [resource()], "its environment is dev, prod"),
        ({}, [resource({"environment": "prod"})], "its environment is dev, prod"),
        ({"environment": ""}, [resource({"environment": ""})], "its environment is unknown"),
        ({}, [resource(protect=True)], "protected from deletion: data"),
        ({}, [resource(inputs={"deletionProtection": True})], "protected from deletion: data"),
    ],
)
def test_a_stack_of_another_environment_or_protected_is_reported_only(settings, resources, reason):
    finding = stack_finding(stack("2026-11-23", settings=settings, resources=resources), TODAY)
    assert finding.kept_because == reason


@pytest.mark.parametrize(
    ("file", "state", "is_over"),
    [
        (None, ["2026-11-23"], True),
        (None, ["2026-11-23", "2026-11-30"], False),
        (None, ["2026-11-23", "never"], False),
        ("2026-11-30", ["2026-11-23"], False),  # not deployed yet
        ("2026-11-23", ["2026-11-23"], True),
        ("2026-11-23", ["2026-11-30"], False),  # deployed from a newer commit than this checkout
        ("2026-11-23", ["never"], False),
    ],
)
def test_a_stack_is_over_when_its_file_and_all_its_resources_say_so(file, state, is_over):
    resources = [resource({"expires-at": day}) for day in state]
    assert (stack_finding(stack(file, resources=resources), TODAY) is not None) is is_over


def test_a_stack_without_a_file_is_reported_with_how_to_destroy_it():
    finding = stack_finding(StackState("old", None, [resource({"expires-at": "2020-01-01"})]), TODAY)
    assert not finding.may_destroy
    assert "`pulumi destroy --stack old`" in finding.repair


LABELS = {"managed-by": "bezel", "stack": "old"}
ID = "projects/demo/locations/us-east4/services/llm"


@pytest.mark.parametrize(
    ("labels", "stacks", "is_found"),
    [
        (LABELS, {}, True),
        (LABELS, {"old": {"us-east4/repositories/llm"}}, True),
        (LABELS, {"old": {"us-east4/services/llm"}}, False),
        ({**LABELS, "managed-by": "terraform"}, {}, False),
        ({"stack": "old"}, {}, False),
        ({"managed-by": "bezel"}, {}, False),
        ({}, {}, False),
    ],
)
def test_only_what_has_our_labels_and_no_stack_is_a_leftover(labels, stacks, is_found):
    finding = labelled_finding("service", "llm", "us-east4", labels, ID, stacks)
    assert (finding is not None) is is_found
    assert finding is None or not finding.may_destroy


@pytest.fixture
def cloud(monkeypatch):
    """A Google that serves the lists of a project, and its client."""
    with serving() as server:
        yield from lists_of(server, monkeypatch)


def lists_of(server, monkeypatch):
    apis = {"STORAGE": "storage/v1", "CLOUD_RUN_V2": "run/v2", "ARTIFACT_REGISTRY": "ar/v1", "SECRET_MANAGER": "sm/v1"}
    for api, path in apis.items():
        monkeypatch.setenv(f"GOOGLE_{api}_CUSTOM_ENDPOINT", f"{server.url}/{path}/")
    credentials, clock = Credentials(environ={"GOOGLE_OAUTH_ACCESS_TOKEN": "t"}), Clock()
    with GoogleClient(credentials, clock=clock, sleep=clock.sleep) as client:
        yield server, client


GPU = {
    "gpuZonalRedundancyDisabled": True,
    "nodeSelector": {"accelerator": "nvidia-l4"},
    "scaling": {"maxInstanceCount": 1},
    "containers": [{"resources": {"limits": {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "1"}}}],
}


def test_leftovers_have_their_price_and_unreadable_ones_are_a_problem(cloud):
    server, client = cloud
    service = {"name": ID, "labels": LABELS, "template": GPU}
    lists = {
        "/storage/v1/b": Answer(json={"items": [{"name": "data", "labels": LABELS | {"stack": "unread"}}]}),
        "/sm/v1/projects/demo/secrets": Answer(json={}),
        "/run/v2/projects/demo/locations/us-east4/services": Answer(json={"services": [service]}),
        "/ar/v1/projects/demo/locations/us-east4/repositories": Answer(403, {"error": {"message": "denied"}}),
    }
    server.routes.append(lambda call: lists.get(call.path))
    plan = ExpiryPlan(unread={"unread"})
    (finding,) = labelled_leftovers(client, "demo", ["us-east4"], {}, plan)
    assert (finding.kind, finding.name, finding.hourly_usd) == ("service", "llm", "1.04652")
    (problem,) = plan.problems
    assert "repository" in problem
    assert ExpiryReport.of(plan).exit_code == Exit.FAILED


EMAIL = "llm-door@demo.iam.gserviceaccount.com"


def leftovers_of_a_door(cloud, stacks, account=EMAIL, secret="bezel-stack-llm-door-program"):  # noqa: S107 - a name
    """Names by kind of what is left of a door whose bucket, service and secret are there."""
    server, client = cloud
    service = {"name": f"{ID}-door", "labels": LABELS, "template": {"serviceAccount": account}}
    lists = {
        "/storage/v1/b": {"items": [{"name": "demo-llm-door", "labels": LABELS}]},
        "/sm/v1/projects/demo/secrets": {"secrets": [{"name": f"projects/7/secrets/{secret}", "labels": LABELS}]},
        "/run/v2/projects/demo/locations/us-east4/services": {"services": [service]},
    }
    server.routes[:] = [lambda call: Answer(json=lists.get(call.path, {}))]
    plan = ExpiryPlan()
    items = {item.kind: item for item in labelled_leftovers(client, "demo", ["us-east4"], stacks, plan)}
    assert plan.problems == []
    assert not any(item.may_destroy for item in items.values())
    assert all(item.hourly_usd is None for item in items.values() if item.kind == "service")
    assert all(item.name in item.repair for item in items.values())
    return {kind: item.name for kind, item in items.items()}


def test_what_a_door_left_is_found_with_its_account_and_secret(cloud):
    assert leftovers_of_a_door(cloud, {}) == {
        "bucket": "demo-llm-door",
        "secret": "bezel-stack-llm-door-program",
        "service": "llm-door",
        "account": EMAIL,
    }


def test_a_door_that_a_stack_holds_is_no_leftover(cloud):
    ids = {
        "demo-llm-door",
        "projects/demo/secrets/bezel-stack-llm-door-program",
        f"{ID}-door",
        f"projects/demo/serviceAccounts/{EMAIL}",
    }
    stack = StackState("old", {}, [resource(id=id_) for id_ in ids])
    assert leftovers_of_a_door(cloud, {"old": stack.ids}) == {}


def test_a_user_s_secret_and_an_account_of_others_are_no_leftovers(cloud):
    others = {"other": {f"serviceAccounts/{EMAIL}"}}
    assert set(leftovers_of_a_door(cloud, others, secret="hf-token")) == {"bucket", "service"}
    default = "7-compute@developer.gserviceaccount.com"
    assert set(leftovers_of_a_door(cloud, {}, account=default)) == {"bucket", "service", "secret"}


def test_an_api_that_is_not_enabled_has_no_leftovers(cloud):
    server, client = cloud
    text = "Cloud Run Admin API has not been used in project demo before or it is disabled."
    disabled = Answer(403, {"error": {"code": 403, "message": text, "status": "PERMISSION_DENIED"}})
    server.routes.append(lambda call: Answer(json={}) if call.path.endswith("/b") else disabled)
    plan = ExpiryPlan()
    assert list(labelled_leftovers(client, "demo", ["us-east4"], {}, plan)) == []
    assert plan.problems == []


def finding(**more):
    return Finding(**{"kind": "stack", "name": "old", "why": "over", "repair": "`pulumi destroy --stack old`"} | more)


def test_what_may_not_be_destroyed_is_left_alone():
    plan = ExpiryPlan([finding(kept_because="its environment is prod"), finding(kind="bucket", kept_because="foreign")])
    destroy(plan, None, None, lambda _: nullcontext(), TODAY)
    assert all(item.outcome == "" for item in plan.findings)


@pytest.mark.parametrize(
    ("items", "problems", "code", "is_well"),
    [
        ([], (), Exit.DONE, True),
        ([finding()], (), Exit.DONE, False),
        ([finding(outcome="destroyed")], (), Exit.DONE, True),
        ([finding(outcome="403: denied")], (), Exit.FAILED, False),
        ([], ("leases were not looked at",), Exit.FAILED, False),
    ],
)
def test_the_report_says_what_is_left_and_what_was_not_looked_at(items, problems, code, is_well):
    report = ExpiryReport(tuple(items), {"l4-qat": "2026-12-01", "x": "never"}, problems)
    assert (report.exit_code, report.is_well) == (code, is_well)
    assert json.loads(json.dumps(report.as_json()))["problems"] == list(problems)
    for form in (report.text(), report.markdown()):
        assert "2026-12-01" in form
        assert "never" not in form
        assert all(problem in form for problem in problems)
