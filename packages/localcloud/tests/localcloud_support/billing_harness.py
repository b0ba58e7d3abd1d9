"""Calls of Cloud Billing, Billing Budgets and of the channels that budgets notify, for `ApiHarness`."""

from bezel_localcloud.core.paths import BILLING_ACCOUNT
from localcloud_support.client import PARENT

ACCOUNT = f"/cloudbilling/v1/{BILLING_ACCOUNT}"
PRICES = "/cloudbilling/v1/services"


def billing(trial, policies):
    """Every method once; `policies` are the three of a policy."""
    trial.owner.enable("cloudbilling", "billingbudgets")
    trial("GET", "/cloudbilling/v1/billingAccounts", pageSize=1)
    trial.refuse(400, "GET", "/cloudbilling/v1/billingAccounts", filter="open=true", says="does not serve the filter")
    trial("GET", ACCOUNT)
    trial("GET", f"{ACCOUNT}/projects", pageSize=1)
    trial("GET", f"/cloudbilling/v1/{PARENT}/billingInfo")
    policies(trial, ACCOUNT, "")
    trial("GET", PRICES, pageSize=1)
    month = {"startTime": "2026-08-03T00:00:00Z", "endTime": "2026-08-04T00:00:00Z"}
    run = f"{PRICES}/152E-C115-5142/skus"
    trial("GET", run, pageSize=1, currencyCode="EUR", missing=f"{PRICES}/0000-0000-0000/skus", **month)
    channel = channels(trial)
    budgets(trial, channel)
    trial("DELETE", f"/monitoring/v3/{channel}", force="true", missing=f"/monitoring/v3/{channel}0")


def channels(trial):
    path = f"/monitoring/v3/{PARENT}/notificationChannels"
    mail = {"type": "email", "labels": {"email_address": "team@example.com"}}
    name = trial("POST", path, mail)["name"]
    one, none = f"/monitoring/v3/{name}", f"{path}/0"
    trial("GET", one, missing=none)
    trial("GET", path, pageSize=1)
    trial.refuse(400, "GET", path, filter="type=email", says="query parameter 'filter'")
    trial("PATCH", one, {"enabled": False}, updateMask="enabled", missing=none)
    trial.refuse(400, "PATCH", one, {}, updateMask="name", says="cannot be updated")
    return name


def budgets(trial, channel):
    path = f"/billingbudgets/v1/{BILLING_ACCOUNT}/budgets"
    rule = {"monitoringNotificationChannels": [channel]}
    body = {"amount": {"specifiedAmount": {"units": "10"}}, "notificationsRule": rule}
    made = trial("POST", path, body)
    one, none = f"/billingbudgets/v1/{made['name']}", f"{path}/0"
    trial("GET", one, missing=none)
    trial("GET", path, pageSize=1, scope=PARENT)
    trial.refuse(400, "GET", path, scope="folders/1", says="does not serve the scope")
    trial("PATCH", one, {"displayName": "dev"}, updateMask="displayName", missing=none)
    trial.refuse(409, "PATCH", one, {"etag": made["etag"]}, says="etag")
    trial("DELETE", one, missing=none)
