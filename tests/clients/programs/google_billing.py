"""Calls of google-cloud-billing and google-cloud-billing-budgets over REST; Monitoring's client speaks gRPC only."""

from google.cloud import billing_v1 as billing
from google.cloud.billing import budgets_v1 as budgets
from google.iam.v1 import iam_policy_pb2
from google_calls import PARENT, PROJECT, Report, options

COMPUTE = "services/6F81-5844-456A"


def accounts() -> str:
    """The account, its policy and its project; returns the account's name."""
    report = Report("google-cloud-billing")
    client = billing.CloudBillingClient(transport="rest", client_options=options("CLOUD_BILLING"))
    info = report.call(
        "get_project_billing_info",
        lambda: client.get_project_billing_info({"name": PARENT}),
        lambda got: got.billing_enabled and got.project_id == PROJECT,
    )
    name = str(info.billing_account_name)
    report.call("get_billing_account", lambda: client.get_billing_account({"name": name}), lambda got: got.open_)
    report.call(
        "list_billing_accounts",
        lambda: list(client.list_billing_accounts()),
        lambda got: [a.name for a in got] == [name],
    )
    report.call(
        "list_project_billing_info",
        lambda: list(client.list_project_billing_info({"name": name})),
        lambda got: [one.project_id for one in got] == [PROJECT],
    )
    policy = report.call("get_iam_policy", lambda: client.get_iam_policy({"resource": name}), lambda got: got.bindings)
    replace = iam_policy_pb2.SetIamPolicyRequest(resource=name, policy=policy)
    report.call("set_iam_policy", lambda: client.set_iam_policy(replace), lambda got: got.bindings)
    report.raises("set_iam_policy with an old etag", "ABORTED", lambda: client.set_iam_policy(replace))
    asked = ["billing.budgets.create"]
    report.call(
        "test_iam_permissions",
        lambda: client.test_iam_permissions({"resource": name, "permissions": asked}),
        lambda got: list(got.permissions) == asked,
    )
    other = "billingAccounts/000000-000000-000000"
    report.raises(
        "get_billing_account of another", "PERMISSION_DENIED", lambda: client.get_billing_account({"name": other})
    )
    report.call("update_project_billing_info", lambda: client.update_project_billing_info({"name": PARENT}))
    return name


def price_list() -> None:
    """Services and SKUs, in pages."""
    report = Report("google-cloud-billing")
    client = billing.CloudCatalogClient(transport="rest", client_options=options("CLOUD_BILLING"))
    report.call(
        "list_services", lambda: list(client.list_services()), lambda got: COMPUTE in {service.name for service in got}
    )
    report.call(
        "list_skus, pages of 3",
        lambda: list(client.list_skus({"parent": COMPUTE, "page_size": 3})),
        lambda got: len(got) > 6 and any(sku.pricing_info[0].pricing_expression.tiered_rates for sku in got),
    )
    report.call(
        "list_skus in euros",
        lambda: list(client.list_skus({"parent": COMPUTE, "currency_code": "EUR"})),
        lambda got: got[0].pricing_info[0].pricing_expression.tiered_rates[0].unit_price.currency_code == "EUR",
    )
    report.raises("list_skus of no service", "NOT_FOUND", lambda: list(client.list_skus({"parent": "services/0-0-0"})))


def budget(account: str) -> None:
    """A budget's life."""
    report = Report("google-cloud-billing-budgets")
    client = budgets.BudgetServiceClient(transport="rest", client_options=options("BILLING_BUDGETS"))
    wanted = budgets.Budget(
        display_name="tried",
        amount=budgets.BudgetAmount(specified_amount={"currency_code": "USD", "units": 10}),
        budget_filter=budgets.Filter(projects=[PARENT]),
        threshold_rules=[budgets.ThresholdRule(threshold_percent=0.9)],
    )
    made = report.call(
        "create_budget",
        lambda: client.create_budget({"parent": account, "budget": wanted}),
        lambda got: got.budget_filter.projects == ["projects/123456789012"] and got.etag,
    )
    report.call("get_budget", lambda: client.get_budget({"name": made.name}), lambda got: got == made)
    report.call(
        "list_budgets",
        lambda: list(client.list_budgets({"parent": account})),
        lambda got: made.name in {b.name for b in got},
    )
    made.amount.specified_amount.units = 20
    change = {"budget": made, "update_mask": {"paths": ["amount"]}}
    report.call(
        "update_budget", lambda: client.update_budget(change), lambda got: got.amount.specified_amount.units == 20
    )
    report.raises("update_budget with an old etag", "ABORTED", lambda: client.update_budget(change))
    wanted.amount.specified_amount.currency_code = "EUR"
    report.raises(
        "create_budget in another currency",
        "INVALID_ARGUMENT",
        lambda: client.create_budget({"parent": account, "budget": wanted}),
    )
    report.call("delete_budget", lambda: client.delete_budget({"name": made.name}))
    report.raises("get_budget of a deleted one", "NOT_FOUND", lambda: client.get_budget({"name": made.name}))


if __name__ == "__main__":
    account_names = accounts()
    price_list()
    budget(account_names)
