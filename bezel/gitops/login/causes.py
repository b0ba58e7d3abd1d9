"""Cause and repair of a refused login: by the forge, by STS, or by IAM. Pure."""

import base64
from collections.abc import Mapping
from typing import Any

from bezel.gitops.login.settings import LoginSettings
from bezel_base.errors import Problem
from bezel_base.json_documents import read_json
from bezel_base.text.shell import shell_word

# Claims of a job that say why a condition may refuse it; none of them is secret.
_SHOWN_CLAIMS = ("repository", "repository_id", "ref", "event_name", "environment", "workflow_ref")
_GCLOUD_LOGIN = "`gcloud auth application-default login`"


def claims_of(token: str) -> dict[str, Any]:
    """Return the claims of a token, not verified; none where it is of another form."""
    try:
        part = token.split(".")[1]
        claims = read_json(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (ValueError, IndexError):
        return {}
    return claims if isinstance(claims, dict) else {}


def no_job_token(environ: Mapping[str, str]) -> Problem:
    """The job cannot ask its forge for an identity token."""
    key = "ACTIONS_ID_TOKEN_REQUEST_URL"
    if environ.get("GITEA_ACTIONS"):
        text = "is not set: this forge gives its jobs no identity tokens, so there is nothing to exchange."
        repair = "put an account's key into a secret of the environment, and set GOOGLE_APPLICATION_CREDENTIALS to its "
        return Problem(key, None, text, repair + "file in a step of the job.")
    if environ.get("GITHUB_ACTIONS"):
        text = "is not set: the job may not ask for an identity token, so there is nothing to exchange."
        repair = (
            "add `permissions: {id-token: write}` to the job. A pull request from a fork never gets one: rehearse it."
        )
        return Problem(key, None, text, repair)
    text = "is not set: outside of a forge's job there is no token to exchange."
    return Problem(key, None, text, f"log in as yourself: {_GCLOUD_LOGIN}.")


def job_token_refused(status: int) -> Problem:
    """The forge gave no token."""
    text = f"was refused by the forge (HTTP {status}), so there is nothing to exchange."
    return Problem("the forge's token for this job", None, text, "run the job again: its request token ends with it.")


def exchange_refused(settings: LoginSettings, error: str, text: str, subject: str) -> Problem:
    """STS did not exchange the token.

    Args:
        settings: Provider and account.
        error: OAuth's code, or the reason of Google's error.
        text: Google's text.
        subject: The job's token, of which only the claims of `_SHOWN_CLAIMS` are shown.
    """
    describe = (
        f"`gcloud iam workload-identity-pools providers describe {shell_word(settings.provider_id)} "
        f"--project={shell_word(settings.number)} "
        f"--location=global --workload-identity-pool={shell_word(settings.pool)}`"
    )
    consequence = f"refused the job's token ({error}: {text})."
    claims = claims_of(subject)
    shown = ", ".join(f"{name}={claims[name]}" for name in _SHOWN_CLAIMS if name in claims)
    if error == "SERVICE_DISABLED":
        repair = f"enable the API: `gcloud services enable sts.googleapis.com --project={shell_word(settings.number)}`."
    elif error == "invalid_target":
        repair = f"compare the name with {describe}; a disabled one is enabled with `update-oidc --no-disabled`, a "
        repair += "deleted one restored with `undelete`, in place of `describe`."
    elif "attribute condition" in text:
        repair = f"compare the job ({shown}) with the attributeCondition that {describe} shows."
    elif "Could not obtain a value" in text:
        repair = f"compare the claims of the job ({shown}) with the attributeMapping that {describe} shows."
    elif "audience" in text:
        repair = f"remove allowedAudiences of the provider, or add {settings.token_audience}: {describe} shows them."
    elif "issuer" in text:
        repair = f"compare the issuer {claims.get('iss', '')} with the issuerUri that {describe} shows."
    elif "stale" in text:
        repair = "set the clock of the runner, then run the job again."
    else:
        repair = f"look at the provider: {describe}."
    return Problem(settings.provider, None, consequence, repair)


def account_refused(settings: LoginSettings, status: int, text: str, subject: str) -> Problem:
    """IAM gave no token of the account."""
    account, claims = settings.account, claims_of(subject)
    consequence = f"cannot be impersonated by this job (HTTP {status}: {text})."
    if status == 404 or "Unknown service account" in text or "Not found" in text:
        return Problem(
            account, None, consequence, "check the e-mail: `gcloud iam service-accounts list` shows the accounts."
        )
    if "has not been used" in text or "is disabled" in text:
        repair = f"`gcloud services enable iamcredentials.googleapis.com --project={shell_word(settings.project)}`."
        return Problem(account, None, consequence, repair)
    pool = settings.provider.rpartition("/providers/")[0]
    member = f"principal://iam.googleapis.com/{pool}/subject/{claims.get('sub', 'SUBJECT')}"
    repair = (
        "let the job in only if it is meant to have this account (`bezel init` grants sets of jobs): `gcloud iam "
        f"service-accounts add-iam-policy-binding {shell_word(account)} --role=roles/iam.workloadIdentityUser "
        f"--member={shell_word(member)}`."
    )
    return Problem(account, None, consequence, repair)
