"""Checks before anything is created: the project is billed, and the caller may create a budget.

What cannot be asked counts as unknown, and is left to the creation: the APIs may not be enabled yet. Leaves out the
settings' own problems (`bezel.foundation.settings`).
"""

from bezel.foundation.settings import Settings
from bezel.rest import ApiError, GoogleClient, RestError, endpoint
from bezel_base.errors import Problem, UserError
from bezel_base.text.shell import shell_word

_BUDGETS = ("billing.budgets.create", "billing.budgets.get", "billing.budgets.list", "billing.budgets.update")


def check(settings: Settings, project: str) -> None:
    """Refuse a set-up that would stop half-way.

    Raises:
        UserError: It holds every problem.
    """
    with GoogleClient(deadline_seconds=30) as client:
        account = settings.billing_account
        problems = [*(_of_account(client, account) if account else []), *_of_project(client, settings, project)]
    if problems:
        raise UserError(*problems, title="The project cannot be set up")


def _of_account(client: GoogleClient, account: str) -> list[Problem]:
    url = f"{endpoint('CLOUD_BILLING')}billingAccounts/{account}:testIamPermissions"
    try:
        permissions = client.post(url, {"permissions": list(_BUDGETS)}, idempotent=True).get("permissions") or []
    except ApiError as error:
        if error.status == 404 or (error.status == 403 and "has not been used" not in error.message):
            consequence = f"it does not exist, or you may not see it: {error.message}"
            return [Problem("--billing-account", account, consequence, _LIST)]
        return []
    except RestError:
        return []
    missing = sorted({*_BUDGETS} - {*permissions})
    if not missing:
        return []
    consequence = (
        f"you may not create budgets on it ({', '.join(missing)}), so no alert would follow when spending grows."
    )
    repair = (
        "have an administrator of the account grant you roles/billing.costsManager: `gcloud billing accounts "
        f"add-iam-policy-binding {shell_word(account)} --member=user:YOU --role=roles/billing.costsManager`."
    )
    return [Problem("--billing-account", account, consequence, repair)]


_LIST = "name one that `gcloud billing accounts list` shows."


def _of_project(client: GoogleClient, settings: Settings, project: str) -> list[Problem]:
    try:
        billing = client.get(f"{endpoint('CLOUD_BILLING')}projects/{project}/billingInfo")
    except RestError:
        return []
    account = str(billing.get("billingAccountName") or "").removeprefix("billingAccounts/")
    if billing.get("billingEnabled") and settings.billing_account in {account, ""}:
        return []
    billed_to = settings.billing_account or "ID"
    link = f"`gcloud billing projects link {shell_word(project)} --billing-account={shell_word(billed_to)}`"
    if account and billing.get("billingEnabled"):
        consequence = f"the project is billed to {account}: a budget of another account would see none of its costs."
        return [Problem("--billing-account", settings.billing_account, consequence, f"name {account}, or {link}.")]
    consequence = "it is not linked to a billing account: nothing that costs can be created in it."
    return [Problem("--project", project, consequence, f"{link}.")]
