"""Facts of the forge from the environment of a run, by the variables that GitHub, Gitea and Forgejo set.

Owns their names, and the pull request of the event that started the run. Sends no request. A command started by hand
has none of them, unless its user sets GITHUB_API_URL and GITHUB_REPOSITORY.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from urllib.parse import quote, urlsplit

from bezel.forge.errors import ForgeError
from bezel_base.errors import Problem
from bezel_base.json_documents import read_json

Kind = Literal["github", "gitea"]
_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+")
_REF = re.compile(r"refs/pull/(\d+)/\w+")


@dataclass(frozen=True, slots=True)
class Facts:
    """A repository on a forge, and the run that this process is part of.

    Attributes:
        kind: "gitea" for Forgejo too.
        api_url: base address of the REST API, without a slash at the end.
        server_url: address of the forge's pages.
        repository: OWNER/NAME.
        token: of the run; "" without one.
        run_id: of the run; "" outside of one.
        attempt: of the run, from 1.
        sha: commit that the run checks out.
    """

    kind: Kind
    api_url: str
    server_url: str
    repository: str
    token: str = field(repr=False)
    run_id: str = ""
    attempt: int = 1
    sha: str = ""

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> "Facts | None":
        """Read them; None where the environment names no forge.

        Raises:
            ForgeError: a variable has an impossible value.
        """
        api_url = environ.get("GITHUB_API_URL", "").strip().rstrip("/")
        repository = environ.get("GITHUB_REPOSITORY", "").strip()
        if not api_url or not repository:
            return None
        if not _REPOSITORY.fullmatch(repository):
            raise ForgeError(
                Problem("GITHUB_REPOSITORY", repository, "no repository has this name.", "set it to OWNER/NAME.")
            )
        gitea = any(environ.get(f"{name}_ACTIONS") == "true" for name in ("GITEA", "FORGEJO"))
        attempt = environ.get("GITHUB_RUN_ATTEMPT", "")
        return cls(
            kind="gitea" if gitea or urlsplit(api_url).path.endswith("/api/v1") else "github",
            api_url=api_url,
            server_url=environ.get("GITHUB_SERVER_URL", "").strip().rstrip("/"),
            repository=repository,
            token=environ.get("GITHUB_TOKEN", "").strip(),
            run_id=environ.get("GITHUB_RUN_ID", "").strip(),
            attempt=int(attempt) if attempt.isdecimal() else 1,
            sha=environ.get("GITHUB_SHA", "").strip(),
        )

    @property
    def run_url(self) -> str:
        """The run's page; "" outside of a run."""
        if not (self.server_url and self.run_id):
            return ""
        return f"{self.server_url}/{self.repository}/actions/runs/{quote(self.run_id, safe='')}"


@dataclass(frozen=True, slots=True)
class PullRequestEvent:
    """The pull request that a run belongs to.

    Attributes:
        number: of the pull request.
        from_fork: whether its branch is in another repository, so that the run's token may write nothing.
        head_sha: its newest commit; "" where the event does not say.
    """

    number: int
    from_fork: bool
    head_sha: str = ""


def pull_request_of(environ: Mapping[str, str]) -> PullRequestEvent | None:
    """The pull request of the event that started the run; None for any other event.

    Raises:
        ForgeError: the event's file cannot be read.
    """
    event: object = {}
    if path := environ.get("GITHUB_EVENT_PATH", ""):
        try:
            event = read_json(Path(path).read_bytes())
        except (OSError, ValueError) as error:
            consequence = f"the run's event cannot be read ({error}), so its pull request is unknown."
            raise ForgeError(
                Problem("GITHUB_EVENT_PATH", path, consequence, "unset it, or let it name the event's JSON file.")
            ) from None
    pull = _at(event, "pull_request")
    number = _at(pull, "number")
    if isinstance(number, int):
        head, base = (_at(pull, side, "repo", "full_name") for side in ("head", "base"))
        sha = _at(pull, "head", "sha")
        # A deleted fork has no repository.
        return PullRequestEvent(number, head != base or head is None, sha if isinstance(sha, str) else "")
    match = _REF.fullmatch(environ.get("GITHUB_REF", ""))
    return PullRequestEvent(int(match[1]), from_fork=False) if match else None


def _at(value: object, *path: str) -> object:
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value
