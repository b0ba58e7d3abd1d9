"""Budget of a project, and the e-mail address of its alerts.

Owns the notification channel and the budget. A budget stops nothing: it sends mails, to the billing account's
administrators too. Google names both itself, so ones of an earlier life are found by their display name, which holds
the project's id. Leaves out limits that are enforced (`policies`).

Example:
    ```python
    SpendingAlert(
        "spending",
        SpendingAlertArgs(project="acme-llm", number="123456789012", billing_account="012345-6789AB-CDEF01",
                          budget=500, currency="USD", email="llm@acme.example"),
    )
    ```
"""

import pulumi
from pulumi_gcp.billing import (
    Budget,
    BudgetAllUpdatesRuleArgs,
    BudgetAmountArgs,
    BudgetAmountSpecifiedAmountArgs,
    BudgetBudgetFilterArgs,
    BudgetThresholdRuleArgs,
)
from pulumi_gcp.monitoring import NotificationChannel

from bezel_components.base.arguments import ComponentArgs, child_options

THRESHOLDS = (("CURRENT_SPEND", 0.5), ("CURRENT_SPEND", 0.9), ("CURRENT_SPEND", 1.0), ("FORECASTED_SPEND", 1.0))
"""Shares of the budget, of what was spent and of what the month will probably cost."""


def display_name(project: str) -> str:
    """Display name of the budget and of the channel."""
    return f"Pipelines of {project}"


class SpendingAlertArgs(ComponentArgs):
    """Arguments of `SpendingAlert`."""

    project: str
    number: str
    """Number of the project: Google shows a budget's projects by their numbers."""
    billing_account: str
    budget: int
    """Whole units of the currency, for each month."""
    currency: str
    email: str
    existing_channel: str = ""
    """Id of the channel, if there is one from an earlier life of the project."""
    existing_budget: str = ""
    """Id of the budget, likewise."""


class SpendingAlert(pulumi.ComponentResource):
    """A monthly budget of one project with alerts."""

    def __init__(self, name: str, args: SpendingAlertArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("bezel:bootstrap:SpendingAlert", name, None, opts)
        channel = NotificationChannel(
            f"{name}-channel",
            project=args.project,
            type="email",
            display_name=display_name(args.project),
            labels={"email_address": args.email},
            opts=child_options(self, opts, import_=args.existing_channel or None),
        )
        Budget(
            f"{name}-budget",
            billing_account=args.billing_account,
            display_name=display_name(args.project),
            budget_filter=BudgetBudgetFilterArgs(projects=[f"projects/{args.number}"]),
            amount=BudgetAmountArgs(
                specified_amount=BudgetAmountSpecifiedAmountArgs(currency_code=args.currency, units=str(args.budget))
            ),
            threshold_rules=[
                BudgetThresholdRuleArgs(spend_basis=basis, threshold_percent=share) for basis, share in THRESHOLDS
            ],
            all_updates_rule=BudgetAllUpdatesRuleArgs(monitoring_notification_channels=[channel.id]),
            opts=child_options(self, opts, import_=args.existing_budget or None),
        )
        self.register_outputs({})
