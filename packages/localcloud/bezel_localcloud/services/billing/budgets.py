"""Billing Budgets v1: budgets of the billing account, stored and shown.

Owns what a budget may say and the values that Google fills in. Leaves out spending: nothing is charged here, so no
threshold is ever crossed and no mail is sent. Pub/Sub topics and spend caps are refused as not served.

Google answers a wrong budget with one sentence, whatever is wrong. The text here is the same; the reason stands in the
error's details.
"""

import re
import uuid
from datetime import date

from bezel_localcloud.core.errors import ApiError, invalid, unserved_error
from bezel_localcloud.core.json_types import Json
from bezel_localcloud.core.paths import BILLING_ACCOUNT, PROJECT, PROJECT_NUMBER
from bezel_localcloud.core.store import Store
from bezel_localcloud.http.messages import settable_fields
from bezel_localcloud.http.update_mask import apply_mask
from bezel_localcloud.routing.router import Api, Call
from bezel_localcloud.services.billing.accounts import ACCOUNT_NAME, CURRENCY, check_account
from bezel_localcloud.services.monitoring.channels import find_channel

api = Api("billingbudgets.googleapis.com", "Cloud Billing Budget API")
_ROOT = "/billingbudgets/v1/billingAccounts/{account:id}/budgets"
_ONE = _ROOT + "/{budget:id}"
_MESSAGE = "billingbudgets.GoogleCloudBillingBudgetsV1Budget"
_INVALID = "Request contains an invalid argument."
_MOST_CHANNELS, _MOST_LABELS, _LONGEST_NAME = 5, 1, 60
_SPECIFIED = "INCLUDE_SPECIFIED_CREDITS"


@api.route("POST", _ROOT, needs="billing.budgets.create", on=ACCOUNT_NAME, body="budget")
def create(call: Call) -> Json:
    """Create a budget; Google chooses its id."""
    check_account(call)
    store = call.cloud.store
    with store.transaction():
        budget = _complete_budget(store, {key: value for key, value in call.body.items() if key != "etag"})
        number = store.next_number("budget")
        name = f"{BILLING_ACCOUNT}/budgets/{uuid.uuid5(uuid.NAMESPACE_URL, f'localcloud budget {number}')}"
        return _put(store, name, budget)


@api.route("GET", _ROOT, needs="billing.budgets.list", on=ACCOUNT_NAME, query="scope pageSize pageToken")
def list_budgets(call: Call) -> Json:
    """Budgets of the account, or those of one project."""
    check_account(call)
    scope = call.query("scope")
    if scope and not re.fullmatch(r"projects/[^/]+", scope):
        raise unserved_error(f"the scope {scope!r}", "use projects/ID")
    scoped = [_project(scope)]
    rows = call.cloud.store.rows("budget")
    budgets = [(name, body) for name, body in rows if not scope or body["budgetFilter"].get("projects") == scoped]
    return call.page(budgets, "budgets")


@api.route("GET", _ONE, needs="billing.budgets.get", on=ACCOUNT_NAME)
def get(call: Call) -> Json:
    """One budget."""
    return _budget(call)[1]


@api.route("PATCH", _ONE, needs="billing.budgets.update", on=ACCOUNT_NAME, query="updateMask", body="budget")
def patch(call: Call) -> Json:
    """Change the fields that the mask names; without one those that the body sets."""
    store, body = call.cloud.store, call.body
    with store.transaction():
        name, budget = _budget(call)
        if body.get("etag", "") not in {"", budget["etag"]}:
            raise ApiError("ABORTED", "The etag given is not the current one of the budget: read it again.")
        mask = call.mask() or [key for key, value in body.items() if value and key in settable_fields(_MESSAGE)]
        changed = apply_mask(budget, body, mask, _MESSAGE, settable_fields(_MESSAGE))
        return _put(store, name, _complete_budget(store, changed))


@api.route("DELETE", _ONE, needs="billing.budgets.delete", on=ACCOUNT_NAME)
def delete(call: Call) -> Json:
    """Delete a budget."""
    with call.cloud.store.transaction():
        call.cloud.store.delete("budget", _budget(call)[0])
    return {}


def _budget(call: Call) -> tuple[str, Json]:
    check_account(call)
    name = f"{BILLING_ACCOUNT}/budgets/{call.param('budget')}"
    return name, call.row_of("budget", name, "Requested entity was not found.")


def _put(store: Store, name: str, budget: Json) -> Json:
    stored = {"name": name, **budget, "etag": f"{store.next_number('budget-etag'):016x}"}
    store.put("budget", name, stored)
    return stored


def _complete_budget(store: Store, budget: Json) -> Json:
    """A budget with the values that Google fills in.

    Raises:
        ApiError: INVALID_ARGUMENT for a budget that cannot be; NotServedError for some parts.
    """
    rule = budget.get("notificationsRule") or {}
    if budget.get("spendCap"):
        raise unserved_error("spendCap of a budget")
    if rule.get("pubsubTopic"):
        raise unserved_error("notificationsRule.pubsubTopic of a budget", "use monitoringNotificationChannels")
    filled = {key: value for key, value in budget.items() if value not in ("", None)}
    filled["amount"] = _amount(budget.get("amount") or {})
    filled["budgetFilter"] = _filter(budget.get("budgetFilter") or {})
    rules = [{"spendBasis": "CURRENT_SPEND", **threshold} for threshold in budget.get("thresholdRules") or []]
    for index, threshold in enumerate(rules):
        _expect(threshold.get("thresholdPercent", 0) >= 0, f"threshold_rules[{index}].threshold_percent", "is negative")
    if rules:
        filled["thresholdRules"] = rules
    else:
        filled.pop("thresholdRules", None)
    name = budget.get("displayName", "")
    _expect(len(name) <= _LONGEST_NAME, "display_name", f"has more than {_LONGEST_NAME} characters")
    _check_channels(store, rule.get("monitoringNotificationChannels") or [])
    if not _without_empty(rule):
        filled.pop("notificationsRule", None)
    else:
        filled["notificationsRule"] = _without_empty(rule)
    return filled


def _amount(amount: Json) -> Json:
    specified, last = amount.get("specifiedAmount"), amount.get("lastPeriodAmount")
    _expect((specified is None) != (last is None), "amount", "must hold one of specified_amount, last_period_amount")
    if specified is None:
        return {"lastPeriodAmount": {}}
    currency, units, nanos = (specified.get(key) for key in ("currencyCode", "units", "nanos"))
    field = "amount.specified_amount"
    _expect(currency in {None, "", CURRENCY}, f"{field}.currency_code", f"the account's currency is {CURRENCY}")
    _expect(int(units or 0) >= 0 <= int(nanos or 0), field, "is negative")
    return {"specifiedAmount": {**_without_empty(specified), "currencyCode": CURRENCY}}


def _filter(sent: Json) -> Json:
    filled = _without_empty(sent)
    if filled.get("customPeriod"):
        _expect("calendarPeriod" not in filled, "budget_filter", "has both calendar_period and custom_period")
        _check_period(filled["customPeriod"])
    else:
        filled.setdefault("calendarPeriod", "MONTH")
    treatment = filled.setdefault("creditTypesTreatment", "INCLUDE_ALL_CREDITS")
    named, needed = bool(filled.get("creditTypes")), treatment == _SPECIFIED
    _expect(named == needed, "budget_filter.credit_types", f"goes with {_SPECIFIED} and only with it")
    _expect(len(filled.get("labels", {})) <= _MOST_LABELS, "budget_filter.labels", "has more than one entry")
    if "projects" in filled:
        filled["projects"] = sorted({_project(name) for name in filled["projects"]})
    return filled


def _project(name: str) -> str:
    """The name of the project with its number, as Google shows it whatever was sent."""
    names = {f"projects/{PROJECT}", f"projects/{PROJECT_NUMBER}", ""}
    _expect(name in names, "budget_filter.projects", f"{name} is not a project that the account pays for")
    return f"projects/{PROJECT_NUMBER}"


def _check_period(period: Json) -> None:
    for field, required in (("startDate", True), ("endDate", False)):
        value = period.get(field)
        _expect(bool(value) or not required, "budget_filter.custom_period.start_date", "is required")
        try:
            day = date(*(value[part] for part in ("year", "month", "day"))) if value else None
        except (KeyError, ValueError):
            day = date.min
        _expect(
            day is None or day > date(2017, 1, 1),
            "budget_filter.custom_period",
            f"{field} must be a day after 2017-01-01",
        )


def _check_channels(store: Store, channels: list[str]) -> None:
    field = "notifications_rule.monitoring_notification_channels"
    _expect(len(channels) <= _MOST_CHANNELS, field, f"has more than {_MOST_CHANNELS} channels")
    for name in channels:
        _expect(find_channel(store, name) is not None, field, f"{name} does not exist")


def _without_empty(message: Json) -> Json:
    """A message without empty fields, as JSON of protobuf leaves them out."""
    return {key: value for key, value in message.items() if value not in ("", None, [], {}, False, 0, "0")}


def _expect(fulfilled: bool, field: str, why: str) -> None:
    if not fulfilled:
        raise invalid(_INVALID, (field, why))
