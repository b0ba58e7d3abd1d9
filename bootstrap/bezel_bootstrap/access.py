"""Access of the forge's tokens to the accounts, as expressions that Google evaluates. Pure.

A token is judged twice. The provider's condition lets in the jobs of one repository, by its number. Then one attribute
says what the job may do, because a binding can name only one: `deploy` for a job of the main branch that names one of
the environments, `preview` for a job of a pull request or of the main branch without an environment (the nightly
report of drift), else `nothing`.

Facts: a job names its environment in a workflow file, which every author of a branch can edit, so the environment
counts only on the main branch. `pull_request_target` runs with the main branch as its ref, so the events that may
deploy are listed. GitHub gives a pull request from a fork no token (docs of GitHub Actions, November 2026). The claim
`environment` is absent without an environment, and an expression that reads an absent claim fails the exchange. The
claim `job_workflow_ref` names the file that holds the job's steps, with its commit where a caller pins one: what a
merge changes in the caller changes no step of it.
"""

from collections.abc import Iterable

from bezel.foundation.settings import Settings
from bezel.planner.team.series_labels import SECRETS_OF_STACKS

DEPLOY, PREVIEW = "deploy", "preview"
NONE = "none"
"""Environment of a job that names none."""
DEPLOYING_EVENTS = ("push", "schedule", "workflow_dispatch")


def attribute_condition(settings: Settings) -> str:
    """Condition of the provider: the token is of a job of the repository."""
    return f"assertion.repository_id == {_text(settings.repository_id)}"


def attribute_mapping(settings: Settings) -> dict[str, str]:
    """Attributes of an identity, each an expression over the token's claims."""
    environment = f"('environment' in assertion ? assertion.environment : '{NONE}')"
    on_main = (
        f"assertion.ref == {_text(f'refs/heads/{settings.main_branch}')} "
        f"&& assertion.event_name in {_texts(DEPLOYING_EVENTS)}"
    )
    deploys = f"{on_main} && {environment} in {_texts(settings.environments)}"
    if settings.deploy_workflows:
        deploys += f" && assertion.job_workflow_ref in {_texts(settings.deploy_workflows)}"
    previews = f"assertion.event_name == 'pull_request' || ({on_main} && {environment} == '{NONE}')"
    return {
        "google.subject": "assertion.sub",
        "attribute.repository": "assertion.repository",
        "attribute.repository_id": "assertion.repository_id",
        "attribute.ref": "assertion.ref",
        "attribute.event": "assertion.event_name",
        "attribute.environment": environment,
        "attribute.access": f"{deploys} ? '{DEPLOY}' : ({previews} ? '{PREVIEW}' : 'nothing')",
    }


def principals(pool: str, access: str) -> str:
    """Member that stands for all identities of a pool with that access.

    Args:
        pool: `projects/NUMBER/locations/global/workloadIdentityPools/POOL`.
        access: `DEPLOY` or `PREVIEW`.
    """
    return f"principalSet://iam.googleapis.com/{pool}/attribute.access/{access}"


def below(bucket: str, *folders: str) -> str:
    """Condition of a binding: the resource is an object in one of these folders of a bucket."""
    return " || ".join(
        f'resource.name.startsWith("projects/_/buckets/{bucket}/objects/{folder}")' for folder in folders
    )


def one_of_buckets(buckets: Iterable[str]) -> str:
    """Condition of a binding: the resource is one of these buckets, or an object in one."""
    return " || ".join(
        f'resource.name == "projects/_/buckets/{name}" || resource.name.startsWith("projects/_/buckets/{name}/")'
        for name in buckets
    )


def one_of_secrets(projects: Iterable[str], secrets: Iterable[str]) -> str:
    """Condition of a binding: the resource is one of these secrets, in a project named by its number or its id."""
    names = [f"projects/{project}/secrets/{name}" for name in secrets for project in projects]
    return " || ".join(f'resource.name == "{name}"' for name in names)


def secrets_of_stacks(projects: Iterable[str]) -> str:
    """Condition of a binding: the resource is a secret that a stack makes for itself, or a version of one."""
    return " || ".join(
        f'resource.name.startsWith("projects/{project}/secrets/{SECRETS_OF_STACKS}")' for project in projects
    )


def records_of(domains: Iterable[str]) -> str:
    """Condition of a binding: a record set is the address of one of these domains, or the proof of its certificate.

    Cloud DNS asks for a permission on a record set on its zone as well, so zones pass.
    """
    records = [f"{name}./{kind}" for domain in domains for name, kind in _records(domain)]
    listed = "".join(f' || resource.name.endsWith("/rrsets/{record}")' for record in records)
    return f'resource.type != "dns.googleapis.com/ResourceRecordSet"{listed}'


def _records(domain: str) -> Iterable[tuple[str, str]]:
    return ((domain, "A"), (f"_acme-challenge.{domain}", "CNAME"))


def only_roles(roles: Iterable[str]) -> str:
    """Condition of a binding: a change of a policy grants and takes these roles only, and none in other requests."""
    return f"api.getAttribute('iam.googleapis.com/modifiedGrantsByRole', []).hasOnly({_texts(roles)})"


def both(*conditions: str) -> str:
    """Condition of a binding: all of these hold."""
    return " && ".join(f"({condition})" for condition in conditions)


def _text(value: str) -> str:
    return f"'{value}'"


def _texts(values: Iterable[str]) -> str:
    return f"[{', '.join(map(_text, values))}]"
