"""Number of a repository at its forge: looked up where it is not given."""

import os
from collections.abc import Mapping

from bezel.rest.endpoints import url_for_token
from bezel.rest.errors import AddressError
from bezel_base.errors import NOT_SET, Problem, UserError
from bezel_base.text.shell import shell_word

_SECONDS = 20.0
_API = {"github": "https://api.github.com"}


def repository_id(forge: str, repository: str, environ: Mapping[str, str] = os.environ) -> str:
    """Look a repository's number up.

    Args:
        forge: `github` or `gitea`.
        repository: OWNER/NAME.
        environ: GITHUB_API_URL names another server than github.com, GITHUB_TOKEN lets a private one be seen.

    Raises:
        UserError: The forge does not tell it.
    """
    base = environ.get("GITHUB_API_URL") or _API.get(forge, "")
    if not base:
        raise _unknown(repository, "GITHUB_API_URL, the address of your server's API, is not set")
    import httpx  # late: most runs are given the number

    from bezel.rest.transport import new_client, reason_of

    token = environ.get("GITHUB_TOKEN", "")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        url = f"{url_for_token(base, 'GITHUB_API_URL').rstrip('/')}/repos/{repository}"
        with new_client(_SECONDS) as client:
            answer = client.get(url, headers=headers)
        if answer.is_success:
            return str(int(answer.json()["id"]))
    except httpx.HTTPError as error:
        raise _unknown(repository, f"{base} does not answer ({reason_of(error)})") from None
    except (ValueError, KeyError, TypeError, AddressError) as error:
        raise _unknown(repository, f"{base} answers something else ({error})") from None
    hint = "" if token else "; a private one is shown only with GITHUB_TOKEN"
    raise _unknown(repository, f"{base} answers {answer.status_code}{hint}")


def _unknown(repository: str, why: str) -> UserError:
    consequence = f"the number of {repository} is not known: {why}. Its name alone could be taken by another owner."
    repair = f"correct --repository, or add the number: `gh api {shell_word(f'repos/{repository}')} --jq .id`."
    return UserError(Problem("--repository-id", NOT_SET, consequence, repair))
