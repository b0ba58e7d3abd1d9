"""The pull request with refreshed prices: one branch of the pipeline's own, replaced with each run.

Owns the names of branch and base. The forge's API writes the commit, so no token is ever part of a command line, and no
branch but this one is written.
"""

from collections.abc import Mapping
from pathlib import Path

from bezel.forge import Forge, PullRequest, forge_of
from bezel.gitops.prices.price_update import PriceUpdate
from bezel.gitops.prices.stack_effects import PRICE_FILE
from bezel_base.errors import NOT_SET, Problem, UserError
from bezel_base.json_documents import read_json

BRANCH = "bezel/prices"


def forge_for(environ: Mapping[str, str]) -> Forge:
    """The forge that the pull request goes to.

    Raises:
        UserError: The environment names none.
    """
    forge = forge_of(environ)
    if forge is None:
        consequence = "no forge is known, so no pull request can be opened."
        repair = "use --dry-run, or set GITHUB_API_URL, GITHUB_REPOSITORY and GITHUB_TOKEN."
        raise UserError(Problem("GITHUB_API_URL", NOT_SET, consequence, repair))
    return forge


def base_branch(choice: str, environ: Mapping[str, str]) -> str:
    """The branch that the pull request is to be merged into.

    Args:
        choice: The user's choice; "" for the branch of the run, else the default branch of the run's event.
        environ: Of the run.

    Raises:
        UserError: It is unknown, or the branch of the pull request itself.
    """
    ref = environ.get("GITHUB_REF", "")
    branch = choice or (ref.removeprefix("refs/heads/") if ref.startswith("refs/heads/") else _default_branch(environ))
    if not branch:
        consequence = "the branch that the prices belong to is unknown."
        raise UserError(Problem("--into", NOT_SET, consequence, "name it with `--into BRANCH`."))
    if branch == BRANCH:
        consequence = "this branch is replaced by each run, so it cannot be merged into itself."
        raise UserError(Problem("--into", branch, consequence, "run this on the branch that is deployed."))
    return branch


def send(forge: Forge, update: PriceUpdate, content: str, base: str) -> PullRequest:
    """Write the branch, then open the pull request, or update the open one.

    Raises:
        ForgeError: The forge refuses or does not answer.
    """
    forge.push_files(BRANCH, base=base, files={PRICE_FILE: content.encode()}, message=f"{update.title}\n")
    return forge.open_pull_request(BRANCH, base=base, title=update.title, body=update.body())


def _default_branch(environ: Mapping[str, str]) -> str:
    path = environ.get("GITHUB_EVENT_PATH", "")
    try:
        event = read_json(Path(path).read_bytes()) if path else {}
    except (OSError, ValueError):
        return ""
    repository = event.get("repository") if isinstance(event, Mapping) else None
    return str(repository.get("default_branch") or "") if isinstance(repository, Mapping) else ""
