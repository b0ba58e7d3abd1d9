"""Budget of one stack: what carries its label, in a month. A budget stops nothing: it sends mails."""

from collections.abc import Sequence

import pulumi
from pulumi_gcp import billing

from bezel_base.errors import Problem
from bezel_base.text.shell import shell_word
from bezel_components.base.arguments import ComponentArgs, child_options
from bezel_components.base.explained_errors import REFUSED, explaining

THRESHOLDS = (("CURRENT_SPEND", 0.5), ("CURRENT_SPEND", 0.9), ("CURRENT_SPEND", 1.0), ("FORECASTED_SPEND", 1.0))
"""Shares of the budget, of what was spent and of what the month will probably cost."""
LABEL = "stack"
"""The one label that a budget can be filtered by."""


class StackBudgetArgs(ComponentArgs):
    """Arguments of `StackBudget`."""

    number: str
    """Number of the project: Google shows a budget's projects by their numbers."""
    stack: str
    """Value of the label `stack` on the stack's resources."""
    billing_account: str
    amount: int
    """Whole units of the currency, for each month."""
    currency: str


class StackBudget(pulumi.ComponentResource):
    """A monthly budget. The billing account's administrators get its mails too."""

    def __init__(
        self,
        name: str,
        args: StackBudgetArgs,
        channels: Sequence[pulumi.Input[str]] = (),
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("bezel:observability:StackBudget", name, None, opts)
        mailed = billing.BudgetAllUpdatesRuleArgs(monitoring_notification_channels=list(channels))
        amount = billing.BudgetAmountSpecifiedAmountArgs(currency_code=args.currency, units=str(args.amount))
        billing.Budget(
            f"{name}-budget",
            billing_account=args.billing_account,
            display_name=f"Stack {args.stack}"[:60],
            budget_filter=billing.BudgetBudgetFilterArgs(
                projects=[f"projects/{args.number}"], labels={LABEL: args.stack}
            ),
            amount=billing.BudgetAmountArgs(specified_amount=amount),
            threshold_rules=[
                billing.BudgetThresholdRuleArgs(spend_basis=basis, threshold_percent=share)
                for basis, share in THRESHOLDS
            ],
            all_updates_rule=mailed if channels else None,
            opts=child_options(self, opts, hooks=explaining(f"{name}-refused-budget", REFUSED, _refusal(args))),
        )
        self.register_outputs({})


def _refusal(args: StackBudgetArgs) -> Problem:
    return Problem(
        f"budget of the stack {args.stack}",
        "cannot be made",
        f"the account that deploys may not write to the billing account {args.billing_account}.",
        "an administrator of it runs `gcloud billing accounts add-iam-policy-binding "
        f"{shell_word(args.billing_account)} "
        "--member=serviceAccount:ACCOUNT --role=roles/billing.costsManager`; or remove `bezel:observability.budget`.",
    )
