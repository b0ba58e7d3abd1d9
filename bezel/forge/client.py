"""A repository on a forge: comments, runs, issues, branches, pull requests, commit statuses.

Owns the paths of GitHub's REST API, which Gitea's and Forgejo's share but for a few, named where they differ. What an
object's text says is never trusted: who wrote it is (`own_login`).
"""

import base64
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Literal, Self
from urllib.parse import quote

from bezel.forge.environment import Facts
from bezel.forge.errors import ForgeError
from bezel.forge.objects import Comment, Issue, PullRequest, RunState, branch_of, run_state_of, sha_of
from bezel.forge.transport import Transport

_PULLS = "pull-requests: write"
_ISSUES = "issues: write"
_CONTENTS = "contents: write"


def forge_of(environ: Mapping[str, str]) -> "Forge | None":
    """The forge of the environment; None where it names none, as in a command started by hand.

    Raises:
        ForgeError: a variable has an impossible value.
    """
    facts = Facts.of(environ)
    return Forge(facts) if facts else None


class Forge:
    """One repository on GitHub, Gitea or Forgejo; closed by `close` or as a context manager.

    Each method raises ForgeError where the forge refuses or does not answer.
    """

    def __init__(self, facts: Facts, transport: Transport | None = None) -> None:
        self.facts = facts
        self._transport = transport or Transport(facts)
        self._base = f"/repos/{facts.repository}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._transport.close()

    @cached_property
    def own_login(self) -> str:
        """Name of the user that the token acts as: the author of all that this run writes."""
        if self.facts.kind == "gitea":
            user = self._transport.request("GET", "/user", needs="issues: read")
            login = user.get("login") if isinstance(user, dict) else None
        else:
            # The token of a run is an app's, which may not read /user; GraphQL names it.
            api = self.facts.api_url
            url = (api.removesuffix("/v3") if api.endswith("/api/v3") else api) + "/graphql"
            body = {"query": "{viewer{login}}"}
            answer = self._transport.request("POST", "", url=url, body=body, needs="pull-requests: read")
            viewer = (answer.get("data") or {}).get("viewer") if isinstance(answer, dict) else None
            login = viewer.get("login") if isinstance(viewer, dict) else None
        if not login:
            raise ForgeError("the forge does not say which user the token GITHUB_TOKEN belongs to.")
        return str(login)

    def comments(self, number: int) -> list[Comment]:
        """All comments of a pull request or issue, oldest first, of any author."""
        path = f"{self._base}/issues/{number}/comments"
        unsorted = [Comment.of(entry) for entry in self._transport.pages(path, needs="pull-requests: read")]
        return sorted(unsorted, key=lambda comment: comment.id)

    def create_comment(self, number: int, body: str) -> Comment:
        """Add a comment to a pull request or issue."""
        path = f"{self._base}/issues/{number}/comments"
        return Comment.of(self._transport.request("POST", path, needs=_PULLS, body={"body": body}))

    def update_comment(self, comment_id: int, body: str) -> Comment:
        """Replace the text of a comment."""
        path = f"{self._base}/issues/comments/{comment_id}"
        return Comment.of(self._transport.request("PATCH", path, needs=_PULLS, body={"body": body}))

    def delete_comment(self, comment_id: int) -> None:
        """Delete a comment, if it is still there."""
        self._delete(f"{self._base}/issues/comments/{comment_id}", needs=_PULLS)

    def run_state(
        self, run_id: str | int, *, attempt: int | None = None, repository: str | None = None, server_url: str = ""
    ) -> RunState:
        """The state of a run of the forge's actions; "unknown" where the forge does not know the run.

        Args:
            run_id: its GITHUB_RUN_ID.
            attempt: its GITHUB_RUN_ATTEMPT; an attempt has ended once there is a later one.
            repository: OWNER/NAME, where it is another one than this run's.
            server_url: its GITHUB_SERVER_URL; the runs of another forge are unknown here.
        """
        if server_url and server_url.rstrip("/") != self.facts.server_url:
            return "unknown"
        place = repository or self.facts.repository
        is_own_run = (place, str(run_id)) == (self.facts.repository, self.facts.run_id)
        if is_own_run and attempt is not None and attempt < self.facts.attempt:
            return "ended"  # a run has one attempt at a time, and this is a later one
        path = f"/repos/{quote(place)}/actions/runs/{quote(str(run_id), safe='')}"
        try:
            answer = self._transport.request("GET", path, needs="actions: read")
        except ForgeError as error:
            if error.status in (404, 410):
                return "unknown"
            raise
        return run_state_of(answer, attempt) if isinstance(answer, dict) else "unknown"

    def find_issues(self, marker: str, *, state: Literal["open", "closed", "all"] = "open") -> list[Issue]:
        """Issues that this run's user wrote and whose text holds a marker, oldest first.

        A marker in another author's issue counts for nothing.
        """
        path, query = f"{self._base}/issues", {"state": state, **self._only_issues}
        issues = [
            Issue.of(entry)
            for entry in self._transport.pages(path, needs="issues: read", params=query)
            if not entry.get("pull_request")
        ]
        own_issues = [issue for issue in issues if issue.author == self.own_login and marker in issue.body]
        return sorted(own_issues, key=lambda issue: issue.number)

    def create_issue(self, title: str, body: str) -> Issue:
        """Open an issue."""
        content = {"title": title, "body": body}
        return Issue.of(self._transport.request("POST", f"{self._base}/issues", needs=_ISSUES, body=content))

    def update_issue(self, number: int, *, body: str) -> Issue:
        """Replace an issue's text."""
        return self._edit_issue(number, {"body": body})

    def close_issue(self, number: int) -> Issue:
        """Close an issue."""
        return self._edit_issue(number, {"state": "closed"})

    def push_files(self, branch: str, *, base: str, files: Mapping[str, bytes], message: str) -> None:
        """Let a branch be its base and one commit that writes files; an older branch of that name is replaced.

        Args:
            branch: name of the branch, which belongs to the pipeline alone.
            base: name of the branch that it starts from.
            files: path in the repository -> whole content.
            message: of the commit.
        """
        encoded = {path: base64.b64encode(content).decode() for path, content in files.items()}
        if self.facts.kind == "gitea":
            self._push_to_gitea(branch, base, encoded, message)
        else:
            self._push_to_github(branch, base, encoded, message)

    def open_pull_request(self, branch: str, *, base: str, title: str, body: str) -> PullRequest:
        """Open a pull request from a branch of this repository, or update the one that is open."""
        query = {"state": "open", "base": base, "base_branch": base, "head": f"{self._owner}:{branch}"}
        path = f"{self._base}/pulls"
        for entry in self._transport.pages(path, needs="pull-requests: read", params=query):
            if branch_of(entry) == (self.facts.repository, branch):
                content = {"title": title, "body": body}
                pull_path = f"{path}/{PullRequest.of(entry).number}"
                return PullRequest.of(self._transport.request("PATCH", pull_path, needs=_PULLS, body=content))
        content = {"title": title, "body": body, "head": branch, "base": base}
        return PullRequest.of(self._transport.request("POST", path, needs=_PULLS, body=content))

    def head_of(self, number: int) -> str:
        """The newest commit of a pull request; "" where the forge does not say."""
        pull_request = self._transport.request("GET", f"{self._base}/pulls/{number}", needs="pull-requests: read")
        head = pull_request.get("head") if isinstance(pull_request, dict) else None
        return str(head.get("sha") or "") if isinstance(head, dict) else ""

    @property
    def _owner(self) -> str:
        return self.facts.repository.partition("/")[0]

    @property
    def _only_issues(self) -> dict[str, str]:
        return {"type": "issues"} if self.facts.kind == "gitea" else {}

    def _edit_issue(self, number: int, changes: Mapping[str, str | None]) -> Issue:
        content = {name: value for name, value in changes.items() if value is not None}
        path = f"{self._base}/issues/{number}"
        return Issue.of(self._transport.request("PATCH", path, needs=_ISSUES, body=content))

    def _delete(self, path: str, *, needs: str) -> None:
        try:
            self._transport.request("DELETE", path, needs=needs)
        except ForgeError as error:
            if error.status != 404:
                raise

    def _push_to_gitea(self, branch: str, base: str, files: Mapping[str, str], message: str) -> None:
        content = {
            "branch": base,
            "new_branch": branch,
            "force_push": True,
            "message": message,
            "files": [{"operation": "upload", "path": path, "content": text} for path, text in files.items()],
        }
        self._transport.request("POST", f"{self._base}/contents", needs=_CONTENTS, body=content)

    def _push_to_github(self, branch: str, base: str, files: Mapping[str, str], message: str) -> None:
        def post(path: str, content: object) -> str:
            created = self._transport.request("POST", f"{self._base}/git/{path}", needs=_CONTENTS, body=content)
            return sha_of(created)

        ref: Any = self._transport.request("GET", f"{self._base}/git/ref/heads/{quote(base)}", needs=_CONTENTS)
        parent = sha_of(ref.get("object") if isinstance(ref, dict) else ref)
        blobs = {path: post("blobs", {"content": text, "encoding": "base64"}) for path, text in files.items()}
        entries = [{"path": path, "mode": "100644", "type": "blob", "sha": blob} for path, blob in blobs.items()]
        tree = post("trees", {"base_tree": parent, "tree": entries})
        commit = post("commits", {"message": message, "tree": tree, "parents": [parent]})
        refs = f"{self._base}/git/refs"
        try:
            self._transport.request("POST", refs, needs=_CONTENTS, body={"ref": f"refs/heads/{branch}", "sha": commit})
        except ForgeError as error:
            if error.status != 422:  # the branch is there already
                raise
            content = {"sha": commit, "force": True}
            self._transport.request("PATCH", f"{refs}/heads/{quote(branch)}", needs=_CONTENTS, body=content)
