"""Number of a project, under which Google shows it in budgets and in the names of its own accounts."""

from bezel.rest import ApiError, GoogleClient, endpoint
from bezel_base.errors import Problem, UserError
from bezel_base.text.shell import shell_word

_SECONDS = 30.0
_ABSENT = (403, 404)


def project_number(project: str) -> str:
    """Number of a project.

    Raises:
        UserError: It does not exist, or the caller may not see it.
    """
    try:
        with GoogleClient(deadline_seconds=_SECONDS) as client:
            answer = client.get(f"{endpoint('RESOURCE_MANAGER')}projects/{project}")
    except ApiError as error:
        if error.status not in _ABSENT:
            raise
        problem = Problem(
            "project",
            project,
            f"it does not exist, or you may not see it ({error.status} {error.reason}: {error.message}).",
            "correct its ID (`gcloud projects list`), or have its owner grant you roles/owner on it. Where the Cloud "
            f"Resource Manager API is off: `gcloud services enable cloudresourcemanager.googleapis.com "
            f"--project={shell_word(project)}`.",
        )
        raise UserError(problem) from None
    return str(answer["projectNumber"])
