"""Cloud Billing v1: the one billing account, its IAM policy, and the project that it pays for.

Owns the account, which is open, in US dollars and linked to the project for good. Leaves out budgets (`budgets`) and
the price list (`catalog`). Nothing is ever charged. The account is not part of the project: an owner of the project has
no right to it but what the account's own policy grants.
"""

from bezel_localcloud.core.errors import ApiError, unserved_error
from bezel_localcloud.core.json_types import Json
from bezel_localcloud.core.paths import BILLING_ACCOUNT, PROJECT
from bezel_localcloud.routing.iam_policies import serve_policy
from bezel_localcloud.routing.router import Api, Call

api = Api("cloudbilling.googleapis.com", "Cloud Billing API")
CURRENCY = "USD"
ACCOUNT_NAME = "billingAccounts/{account}"
_ROOT = "/cloudbilling/v1/billingAccounts"
_ONE = _ROOT + "/{account:id}"
_LISTED = "filter pageSize pageToken"


@api.route("GET", _ROOT, query=_LISTED)
def list_accounts(call: Call) -> Json:
    """The account, if the caller may see it: Google lists what a caller may see and refuses no caller."""
    if call.query("filter"):
        raise unserved_error(f"the filter {call.query('filter')!r}")
    seen = call.cloud.access.allows(call.caller, "billing.accounts.get", BILLING_ACCOUNT)
    return call.page([(BILLING_ACCOUNT, _account())] if seen else [], "billingAccounts", max_size=100)


@api.route("GET", _ONE, needs="billing.accounts.get", on=ACCOUNT_NAME)
def get_account(call: Call) -> Json:
    """The account."""
    check_account(call)
    return _account()


@api.route(
    "GET",
    _ONE + "/projects",
    needs="billing.resourceAssociations.list",
    on=ACCOUNT_NAME,
    query="pageSize pageToken",
)
def list_projects(call: Call) -> Json:
    """The project."""
    check_account(call)
    return call.page([(PROJECT, _billing_info())], "projectBillingInfo", max_size=100)


@api.route("GET", "/cloudbilling/v1/projects/{project:id}/billingInfo", needs="resourcemanager.projects.get")
def get_billing_info(_: Call) -> Json:
    """The account that pays for the project."""
    return _billing_info()


def _policy_name(call: Call) -> str:
    check_account(call)
    return BILLING_ACCOUNT


serve_policy(api, _ONE, ACCOUNT_NAME, "billing.accounts", _policy_name)


def check_account(call: Call) -> None:
    """Check that the path names the account.

    Raises:
        ApiError: PERMISSION_DENIED: Google does not tell a missing account from one of another customer.
    """
    if call.name(ACCOUNT_NAME) != BILLING_ACCOUNT:
        raise ApiError("PERMISSION_DENIED", "The caller does not have permission")


def _account() -> Json:
    return {
        "name": BILLING_ACCOUNT,
        "open": True,
        "displayName": "localcloud",
        "masterBillingAccount": "",
        "parent": "",
        "currencyCode": CURRENCY,
    }


def _billing_info() -> Json:
    return {
        "name": f"projects/{PROJECT}/billingInfo",
        "projectId": PROJECT,
        "billingAccountName": BILLING_ACCOUNT,
        "billingEnabled": True,
    }
