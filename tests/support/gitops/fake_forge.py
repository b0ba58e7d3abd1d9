"""A forge on a real socket, with the paths of GitHub and of Gitea that pipelines use, and a record of its requests.

Users are known by their tokens. `permissions` bounds the token of a run as a workflow's `permissions` do. `faults`
answer before anything is done; `after` answers after it was done.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from bench_support.http_server import Answer, Call, serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

REPOSITORY = "team/gemma"
TOKEN = "ghs_plantedTokenOfTheRun0123456789"
BOTS = {"github": "github-actions[bot]", "gitea": "gitea-actions"}
ALL = frozenset({"contents", "issues", "pull-requests", "actions"})


@dataclass
class Fault:
    """An answer in place of the forge's own: status, headers, body; `times` times."""

    method: str
    path: str
    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: str = '{"message": "made to fail"}'
    times: int = 1


@dataclass
class FakeForge:
    kind: str
    users: dict[str, str] = field(default_factory=dict)
    permissions: frozenset[str] = ALL
    page_size: int = 0  # smaller than a client asks for, to make pages
    comments: dict[int, list[dict[str, Any]]] = field(default_factory=dict)
    issues: list[dict[str, Any]] = field(default_factory=list)
    runs: dict[int, dict[str, Any]] = field(default_factory=dict)
    branches: dict[str, dict[str, bytes]] = field(default_factory=lambda: {"main": {}})
    pulls: list[dict[str, Any]] = field(default_factory=list)
    heads: dict[int, str] = field(default_factory=dict)
    objects: dict[str, Any] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    after: list[Fault] = field(default_factory=list)
    on_call: Callable[[Call], None] | None = None
    """Called before each request is served, outside the lock: a barrier for tests of two clients."""
    address: str = ""

    def __post_init__(self) -> None:
        self.users.setdefault(TOKEN, BOTS[self.kind])
        self._lock = threading.RLock()
        self._ids = iter(range(101, 10**6))

    @property
    def api_url(self) -> str:
        return f"{self.address}{'/api/v1' if self.kind == 'gitea' else '/api/v3'}"

    def environ(self, folder: Path | None = None, *, pull: int | None = None, fork: bool = False) -> dict[str, str]:
        """The variables of a run; with `pull`, of that pull request's event, whose file is written to `folder`."""
        values = {
            "GITHUB_API_URL": self.api_url,
            "GITHUB_SERVER_URL": self.address,
            "GITHUB_REPOSITORY": REPOSITORY,
            "GITHUB_TOKEN": TOKEN,
            "GITHUB_RUN_ID": "7",
            "GITHUB_RUN_ATTEMPT": "1",
            "GITHUB_SHA": "c" * 40,
        }
        if self.kind == "gitea":
            values["GITEA_ACTIONS"] = "true"
        if pull is not None and folder is not None:
            head = "someone/gemma" if fork else REPOSITORY
            event = {
                "pull_request": {
                    "number": pull,
                    "head": {"repo": {"full_name": head}, "sha": "a" * 40},
                    "base": {"repo": {"full_name": REPOSITORY}},
                }
            }
            path = folder / "event.json"
            path.write_text(json.dumps(event))
            values |= {"GITHUB_EVENT_PATH": str(path), "GITHUB_REF": f"refs/pull/{pull}/merge"}
        return values

    def add_comment(self, number: int, author: str, body: str) -> dict[str, Any]:
        """A comment that someone wrote."""
        with self._lock:
            comment = {"id": next(self._ids), "user": {"login": author}, "body": body, "html_url": f"{self.address}/c"}
            self.comments.setdefault(number, []).append(comment)
            return comment

    def add_issue(self, author: str, title: str, body: str, *, pull: bool = False) -> dict[str, Any]:
        """An issue that someone wrote; with `pull`, the entry of a pull request among them."""
        with self._lock:
            issue = {"number": len(self.issues) + 1, "user": {"login": author}, "title": title, "body": body}
            issue |= {"state": "open", "html_url": f"{self.address}/{REPOSITORY}/issues/{len(self.issues) + 1}"}
            self.issues.append(issue | ({"pull_request": {"url": ""}} if pull else {}))
            return self.issues[-1]

    def answer(self, call: Call) -> tuple[int, Any, dict[str, str]]:
        """Status, body and headers of the answer to a request."""
        if self.on_call:
            self.on_call(call)
        with self._lock:
            self.calls.append(call)
            if fault := _take_fault(self.faults, call):
                return fault.status, fault.body, fault.headers
            status, body, headers = self._route(call)
            if fault := _take_fault(self.after, call):
                return fault.status, fault.body, fault.headers
            return status, body, headers

    def _route(self, call: Call) -> tuple[int, Any, dict[str, str]]:
        prefix = urlsplit(self.api_url).path
        user = self.users.get(call.headers.get("authorization", "").removeprefix("token "))
        if call.path == "/api/graphql" and self.kind == "github":
            return 200, {"data": {"viewer": {"login": user}}}, {}
        if not call.path.startswith(prefix):
            return 404, {"message": "Not Found"}, {}
        path = call.path.removeprefix(prefix)
        if path == "/user" and self.kind == "gitea":
            return (200, {"login": user}, {}) if user else (401, {"message": "token is required"}, {})
        for method, pattern, permission, kinds, serve in _ROUTES:
            match = re.fullmatch(pattern.replace("REPO", f"/repos/{REPOSITORY}"), path)
            if method != call.method or match is None or self.kind not in kinds:
                continue
            if call.headers.get("authorization") and user is None:
                return 401, {"message": "Bad credentials"}, {}
            if method != "GET" and not user:
                return 401, {"message": "Requires authentication"}, {}
            if user == BOTS[self.kind] and not set(permission.split("|")) & self.permissions:
                return 403, {"message": "Resource not accessible by integration"}, {}
            status, body = serve(self, user or "", call, *match.groups())
            return self._page_of(call, status, body, path)
        return 404, {"message": "Not Found"}, {}

    def _page_of(self, call: Call, status: int, body: Any, path: str) -> tuple[int, Any, dict[str, str]]:
        # Gitea answers with all comments at once.
        if not isinstance(body, list) or (self.kind == "gitea" and path.endswith("/comments")):
            return status, body, {}
        size = int(call.query.get("per_page" if self.kind == "github" else "limit", 30))
        size, page = min(size, self.page_size or size), int(call.query.get("page", 1))
        last = page * size >= len(body)
        # An address that leads elsewhere: no client may send its token there.
        link = {} if last else {"Link": f'<http://elsewhere.invalid/?page={page + 1}>; rel="next"'}
        return status, body[(page - 1) * size : page * size], link

    # What each path does.

    def list_comments(self, _user: str, _call: Call, number: str) -> tuple[int, Any]:
        return 200, list(self.comments.get(int(number), []))

    def create_comment(self, user: str, call: Call, number: str) -> tuple[int, Any]:
        if len(call.json["body"]) > 65536:
            return 422, {"message": "Validation Failed", "errors": [{"message": "body is too long"}]}
        return 201, self.add_comment(int(number), user, call.json["body"])

    def _comment(self, comment_id: str) -> tuple[int, dict[str, Any]] | None:
        for number, comments in self.comments.items():
            for comment in comments:
                if comment["id"] == int(comment_id):
                    return number, comment
        return None

    def edit_comment(self, _user: str, call: Call, comment_id: str) -> tuple[int, Any]:
        if (comment := self._comment(comment_id)) is None:
            return 404, {"message": "Not Found"}
        comment[1]["body"] = call.json["body"]
        return 200, comment[1]

    def delete_comment(self, _user: str, _call: Call, comment_id: str) -> tuple[int, Any]:
        if (comment := self._comment(comment_id)) is None:
            return 404, {"message": "Not Found"}
        self.comments[comment[0]].remove(comment[1])
        return 204, None

    def get_run(self, _user: str, _call: Call, run: str) -> tuple[int, Any]:
        run_state = self.runs.get(int(run))
        return (200, {"id": int(run), **run_state}) if run_state else (404, {"message": "Not Found"})

    def list_issues(self, _user: str, call: Call) -> tuple[int, Any]:
        state = call.query.get("state", "open")
        return 200, [issue for issue in reversed(self.issues) if state in ("all", issue["state"])]

    def create_issue(self, user: str, call: Call) -> tuple[int, Any]:
        return 201, self.add_issue(user, call.json["title"], call.json["body"])

    def edit_issue(self, _user: str, call: Call, number: str) -> tuple[int, Any]:
        if not 0 < int(number) <= len(self.issues):
            return 404, {"message": "Not Found"}
        self.issues[int(number) - 1].update(call.json)
        return 200, self.issues[int(number) - 1]

    def list_pulls(self, _user: str, _call: Call) -> tuple[int, Any]:
        return 200, [pull for pull in self.pulls if pull["state"] == "open"]

    def get_pull(self, _user: str, _call: Call, number: str) -> tuple[int, Any]:
        return 200, {"number": int(number), "head": {"sha": self.heads.get(int(number), "a" * 40)}}

    def create_pull(self, user: str, call: Call) -> tuple[int, Any]:
        head, base = call.json["head"], call.json["base"]
        if any(pull["head"]["ref"] == head and pull["state"] == "open" for pull in self.pulls):
            return (422 if self.kind == "github" else 409), {"message": "pull request already exists"}
        number = len(self.pulls) + 1
        pull = {"number": number, "user": {"login": user}, "state": "open", "base": {"ref": base}, **call.json}
        pull["head"] = {"ref": head, "repo": {"full_name": REPOSITORY}}
        self.pulls.append(pull | {"html_url": f"{self.address}/{REPOSITORY}/pulls/{number}"})
        return 201, self.pulls[-1]

    def edit_pull(self, _user: str, call: Call, number: str) -> tuple[int, Any]:
        self.pulls[int(number) - 1].update(call.json)
        return 200, self.pulls[int(number) - 1]

    def change_files(self, _user: str, call: Call) -> tuple[int, Any]:
        new, base = call.json["new_branch"], call.json["branch"]
        if new in self.branches and not call.json["force_push"]:
            return 422, {"message": f"branch already exists [name: {new}]"}
        written = {entry["path"]: base64.b64decode(entry["content"]) for entry in call.json["files"]}
        self.branches[new] = {**self.branches[base], **written}
        return 201, {}

    def get_ref(self, _user: str, _call: Call, branch: str) -> tuple[int, Any]:
        if unquote(branch) not in self.branches:
            return 404, {"message": "Not Found"}
        return 200, {"object": {"sha": self._store_object(self.branches[unquote(branch)])}}

    def create_object(self, _user: str, call: Call, kind: str) -> tuple[int, Any]:
        document = call.json
        if kind == "blobs":
            made: Any = base64.b64decode(document["content"])
        elif kind == "trees":
            made = {
                **self.objects[document["base_tree"]],
                **{e["path"]: self.objects[e["sha"]] for e in document["tree"]},
            }
        else:
            made = self.objects[document["tree"]]
        return 201, {"sha": self._store_object(made)}

    def _store_object(self, content: Any) -> str:
        sha = hashlib.sha1(repr(content).encode(), usedforsecurity=False).hexdigest()
        self.objects[sha] = content
        return sha

    def create_ref(self, _user: str, call: Call) -> tuple[int, Any]:
        branch = call.json["ref"].removeprefix("refs/heads/")
        if branch in self.branches:
            return 422, {"message": "Reference already exists"}
        self.branches[branch] = self.objects[call.json["sha"]]
        return 201, {}

    def edit_ref(self, _user: str, call: Call, branch: str) -> tuple[int, Any]:
        self.branches[unquote(branch)] = self.objects[call.json["sha"]]
        return 200, {}


_BOTH, _GITHUB, _GITEA = ("github", "gitea"), ("github",), ("gitea",)
_TALK = "pull-requests|issues"
_ROUTES: list[tuple[str, str, str, tuple[str, ...], Callable[..., tuple[int, Any]]]] = [
    ("GET", r"REPO/issues/(\d+)/comments", _TALK, _BOTH, FakeForge.list_comments),
    ("POST", r"REPO/issues/(\d+)/comments", _TALK, _BOTH, FakeForge.create_comment),
    ("PATCH", r"REPO/issues/comments/(\d+)", _TALK, _BOTH, FakeForge.edit_comment),
    ("DELETE", r"REPO/issues/comments/(\d+)", _TALK, _BOTH, FakeForge.delete_comment),
    ("GET", r"REPO/actions/runs/(\d+)", "actions", _BOTH, FakeForge.get_run),
    ("GET", r"REPO/issues", "issues", _BOTH, FakeForge.list_issues),
    ("POST", r"REPO/issues", "issues", _BOTH, FakeForge.create_issue),
    ("PATCH", r"REPO/issues/(\d+)", "issues", _BOTH, FakeForge.edit_issue),
    ("GET", r"REPO/pulls", "pull-requests", _BOTH, FakeForge.list_pulls),
    ("GET", r"REPO/pulls/(\d+)", "pull-requests", _BOTH, FakeForge.get_pull),
    ("POST", r"REPO/pulls", "pull-requests", _BOTH, FakeForge.create_pull),
    ("PATCH", r"REPO/pulls/(\d+)", "pull-requests", _BOTH, FakeForge.edit_pull),
    ("POST", r"REPO/contents", "contents", _GITEA, FakeForge.change_files),
    ("GET", r"REPO/git/ref/heads/(.+)", "contents", _GITHUB, FakeForge.get_ref),
    ("POST", r"REPO/git/(blobs|trees|commits)", "contents", _GITHUB, FakeForge.create_object),
    ("POST", r"REPO/git/refs", "contents", _GITHUB, FakeForge.create_ref),
    ("PATCH", r"REPO/git/refs/heads/(.+)", "contents", _GITHUB, FakeForge.edit_ref),
]


def _take_fault(faults: list[Fault], call: Call) -> Fault | None:
    for fault in faults:
        if fault.times and fault.method == call.method and re.search(fault.path, call.path):
            fault.times -= 1
            return fault
    return None


@contextmanager
def fake_forge(kind: str = "github", **options: Any) -> Iterator[FakeForge]:
    """A running forge of a kind, on loopback."""
    forge = FakeForge(kind, **options)

    def route(call: Call) -> Answer:
        status, content, headers = forge.answer(call)
        is_text = content is None or isinstance(content, str)
        return Answer(status, None if is_text else content, content or "" if is_text else "", headers)

    with serving() as server:
        server.routes.append(route)
        forge.address = server.url
        yield forge
