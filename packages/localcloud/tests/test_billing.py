"""Cloud Billing on localcloud: the account, budgets and the channels that they notify."""

import pytest

from bezel_localcloud.core.paths import BILLING_ACCOUNT, DEPLOYER
from localcloud_support.client import PARENT
from localcloud_support.in_process import SCOPE, Project

ACCOUNT = f"/cloudbilling/v1/{BILLING_ACCOUNT}"
BUDGETS = f"/billingbudgets/v1/{BILLING_ACCOUNT}/budgets"
CHANNELS = f"/monitoring/v3/{PARENT}/notificationChannels"
MAIL = {"type": "email", "displayName": "Owners", "labels": {"email_address": "team@example.com"}}
MONEY = {"specifiedAmount": {"currencyCode": "USD", "units": "100"}}


@pytest.fixture
def project(tmp_path):
    new_project = Project(tmp_path)
    for api in ("cloudbilling", "billingbudgets"):
        new_project.cloud.store.put("api", f"{api}.googleapis.com", {"state": "ENABLED"})
    yield new_project
    new_project.close()


def as_account(project, email, role, *, on="project"):
    """Calls are from now on those of another account, with one role."""
    project.cloud.store.put("account", email, {"email": email, "uniqueId": "1"})
    path = {"project": f"/crm/v1/{PARENT}", "account": ACCOUNT}[on]
    policy = project.ok("GET" if on == "account" else "POST", f"{path}:getIamPolicy")
    binding = {"role": role, "members": [f"serviceAccount:{email}"]}
    project.ok("POST", f"{path}:setIamPolicy", {"policy": policy | {"bindings": [*policy["bindings"], binding]}})
    project.token = project.cloud.tokens.access_token(email, SCOPE, 1e7)[0]


def why(refusal):
    """The reasons in a refusal's details."""
    return " ".join(f"{one['field']} {one['description']}" for one in refusal["details"][0]["fieldViolations"])


def test_one_account_pays_for_the_project(project):
    info = project.ok("GET", f"/cloudbilling/v1/{PARENT}/billingInfo")
    assert (info["billingAccountName"], info["billingEnabled"]) == (BILLING_ACCOUNT, True)
    (account,) = project.ok("GET", "/cloudbilling/v1/billingAccounts")["billingAccounts"]
    assert account == project.ok("GET", ACCOUNT)
    assert account["currencyCode"] == "USD"
    (paid,) = project.ok("GET", f"{ACCOUNT}/projects")["projectBillingInfo"]
    assert paid == info


def test_another_account_is_refused_and_not_said_to_be_missing(project):
    other = BILLING_ACCOUNT.replace("BE2E10", "000000")
    for path in (f"/cloudbilling/v1/{other}", f"/billingbudgets/v1/{other}/budgets"):
        refusal = project.refusal(403, "GET", path)
        assert "may not exist" in refusal["message"] or "does not have permission" in refusal["message"]


@pytest.mark.slow
def test_an_owner_of_the_project_has_no_right_to_the_account(project):
    email = f"owner@{PARENT.partition('/')[2]}.iam.gserviceaccount.com"
    as_account(project, email, "roles/owner")
    assert "billing.budgets.create" in project.refusal(403, "POST", BUDGETS, {"amount": MONEY})["message"]
    assert "billingAccounts" not in project.ok("GET", "/cloudbilling/v1/billingAccounts")
    assert project.ok("GET", f"/cloudbilling/v1/{PARENT}/billingInfo")["billingAccountName"] == BILLING_ACCOUNT


def test_a_role_on_the_account_allows_a_budget_and_nothing_of_the_project(project):
    email = f"costs@{PARENT.partition('/')[2]}.iam.gserviceaccount.com"
    as_account(project, email, "roles/billing.costsManager", on="account")
    assert project.ok("POST", BUDGETS, {"amount": MONEY})["name"].startswith(f"{BILLING_ACCOUNT}/budgets/")
    project.refusal(403, "POST", CHANNELS, MAIL)
    project.refusal(403, "POST", f"{ACCOUNT}:setIamPolicy", {"policy": {}})


def test_the_account_of_an_older_directory_gets_its_policy(project):
    """The account of an older directory gets its policy with the next start."""
    project.cloud.store.delete_policy(BILLING_ACCOUNT)
    project.refusal(403, "GET", ACCOUNT)
    project.restart()
    assert project.ok("GET", ACCOUNT)["open"]


def test_a_new_budget_has_the_values_that_google_fills_in(project):
    channel = project.ok("POST", CHANNELS, MAIL)["name"]
    sent = {
        "displayName": "dev",
        "amount": {"specifiedAmount": {"units": "100"}},
        "budgetFilter": {"projects": [PARENT]},
        "thresholdRules": [{"thresholdPercent": 0.5}, {"thresholdPercent": 1, "spendBasis": "FORECASTED_SPEND"}],
        "notificationsRule": {"monitoringNotificationChannels": [channel], "schemaVersion": "1.0"},
    }
    made = project.ok("POST", BUDGETS, sent)
    assert made["budgetFilter"] == {
        "projects": ["projects/123456789012"],
        "calendarPeriod": "MONTH",
        "creditTypesTreatment": "INCLUDE_ALL_CREDITS",
    }
    assert made["amount"] == MONEY
    assert [rule["spendBasis"] for rule in made["thresholdRules"]] == ["CURRENT_SPEND", "FORECASTED_SPEND"]
    assert made["notificationsRule"] == sent["notificationsRule"]
    assert project.ok("GET", f"/billingbudgets/v1/{made['name']}") == made
    assert project.ok("GET", BUDGETS)["budgets"] == [made]
    assert project.ok("GET", BUDGETS, scope="projects/bezel-local")["budgets"] == [made]
    project.ok("POST", BUDGETS, {"amount": MONEY})
    assert project.ok("GET", BUDGETS, scope="projects/123456789012")["budgets"] == [made]


def test_a_change_is_that_of_the_mask_and_needs_the_current_etag(project):
    made = project.ok("POST", BUDGETS, {"displayName": "dev", "amount": MONEY, "budgetFilter": {"projects": [PARENT]}})
    path = f"/billingbudgets/v1/{made['name']}"
    more = {"amount": {"specifiedAmount": {"units": "200"}}, "displayName": "ignored"}
    changed = project.ok("PATCH", path, more, updateMask="amount.specifiedAmount.units")
    assert changed == made | {"amount": {"specifiedAmount": {"currencyCode": "USD", "units": "200"}}} | {
        "etag": changed["etag"]
    }
    project.refusal(409, "PATCH", path, {"etag": made["etag"], "displayName": "x"})
    renamed = project.ok("PATCH", path, {"etag": changed["etag"], "displayName": "prod"})
    assert (renamed["displayName"], renamed["amount"]) == ("prod", changed["amount"])
    quarter = project.ok("PATCH", path, {"budgetFilter": {"calendarPeriod": "QUARTER"}}, updateMask="budgetFilter")
    assert quarter["budgetFilter"] == {"calendarPeriod": "QUARTER", "creditTypesTreatment": "INCLUDE_ALL_CREDITS"}


def test_a_deleted_budget_is_gone_and_another_one_has_another_name(project):
    first = project.ok("POST", BUDGETS, {"amount": MONEY})["name"]
    assert project.ok("DELETE", f"/billingbudgets/v1/{first}") == {}
    project.refusal(404, "DELETE", f"/billingbudgets/v1/{first}")
    assert project.ok("POST", BUDGETS, {"amount": MONEY})["name"] != first


WEEK = {"startDate": {"year": 2026, "month": 1, "day": 1}, "endDate": {"year": 2026, "month": 2, "day": 31}}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        ({}, "amount must hold one"),
        ({"amount": {}}, "amount must hold one"),
        ({"amount": MONEY | {"lastPeriodAmount": {}}}, "amount must hold one"),
        ({"amount": {"specifiedAmount": {"currencyCode": "EUR", "units": "1"}}}, "the account's currency is USD"),
        ({"amount": {"specifiedAmount": {"units": "-1"}}}, "is negative"),
        ({"amount": MONEY, "thresholdRules": [{"thresholdPercent": -0.1}]}, "threshold_rules[0]"),
        ({"amount": MONEY, "displayName": "x" * 61}, "display_name"),
        ({"amount": MONEY, "budgetFilter": {"projects": ["projects/other"]}}, "projects/other is not a project"),
        ({"amount": MONEY, "budgetFilter": {"labels": {"a": ["1"], "b": ["2"]}}}, "more than one entry"),
        ({"amount": MONEY, "budgetFilter": {"creditTypes": ["PROMOTION"]}}, "goes with INCLUDE_SPECIFIED_CREDITS"),
        ({"amount": MONEY, "budgetFilter": {"customPeriod": WEEK}}, "endDate must be a day"),
        ({"amount": MONEY, "budgetFilter": {"customPeriod": {}, "calendarPeriod": "WEEK"}}, "calendar_period"),
        (
            {"amount": MONEY, "notificationsRule": {"monitoringNotificationChannels": [f"{PARENT}/x/1"]}},
            "does not exist",
        ),
        ({"amount": MONEY, "notificationsRule": {"monitoringNotificationChannels": ["x"] * 6}}, "more than 5 channels"),
    ],
)
def test_a_budget_that_cannot_be_is_refused_with_its_reason(project, wrong, word):
    assert word in why(project.refusal(400, "POST", BUDGETS, wrong))
    assert project.ok("GET", BUDGETS) == {}


@pytest.mark.parametrize(
    ("beyond", "word"),
    [
        ({"notificationsRule": {"pubsubTopic": "projects/p/topics/t"}}, "pubsubTopic"),
        ({"spendCap": {"inputState": "CONFIGURED"}}, "spendCap"),
    ],
)
def test_what_a_budget_has_here_no_use_for_is_not_served(project, beyond, word):
    assert word in project.refusal(400, "POST", BUDGETS, {"amount": MONEY} | beyond)["message"]


def test_a_channel_is_made_changed_and_deleted(project):
    made = project.ok("POST", CHANNELS, MAIL)
    path = f"/monitoring/v3/{made['name']}"
    assert made["enabled"] is True
    assert made["creationRecord"]["mutatedBy"] == DEPLOYER
    assert project.ok("GET", CHANNELS) == {"notificationChannels": [made], "totalSize": 1}
    quiet = project.ok("PATCH", path, {"enabled": False}, updateMask="enabled")
    assert (quiet["enabled"], quiet["displayName"], len(quiet["mutationRecords"])) == (False, "Owners", 2)
    whole = project.ok("PATCH", path, MAIL | {"displayName": "Others"})
    assert (whole["displayName"], whole["enabled"], whole["name"]) == ("Others", True, made["name"])
    assert project.ok("DELETE", path, force="false") == {}
    assert made["name"] in project.refusal(404, "GET", path)["message"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wrong", "status", "word"),
    [
        ({}, 400, "is not the type of a channel descriptor"),
        ({"type": "telegram"}, 400, "'telegram' is not the type"),
        ({"type": "email"}, 400, "email_address must be"),
        ({"type": "email", "labels": {"email_address": "nobody"}}, 400, "email_address must be"),
        (MAIL | {"labels": {"email_address": "a@b.de", "password": "p"}}, 400, "no label password"),
        (MAIL | {"displayName": "x" * 513}, 400, "displayName"),
        (MAIL | {"userLabels": {"Team": "a"}}, 400, "userLabels"),
        ({"type": "slack", "labels": {"auth_token": "t"}}, 400, "notification channels of the type slack"),
    ],
)
def test_a_channel_that_cannot_be_is_refused(project, wrong, status, word):
    assert word in project.refusal(status, "POST", CHANNELS, wrong)["message"]
    assert project.ok("GET", CHANNELS) == {}


@pytest.mark.parametrize("verb", ["sendVerificationCode", "getVerificationCode", "verify"])
def test_verification_is_refused_by_its_name(project, verb):
    made = project.ok("POST", CHANNELS, MAIL)
    refusal = project.refusal(400, "POST", f"/monitoring/v3/{made['name']}:{verb}", {})
    assert f"monitoring.projects.notificationChannels.{verb}" in refusal["message"]
