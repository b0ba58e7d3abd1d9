"""The forge's client and the sticky comment on a real Gitea: with a user's token, and with that of a job."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from bezel.forge import ForgeError, forge_of
from bezel.gitops.comment.body import MARKER, sections_in, sections_of
from bezel.gitops.comment.sticky import StickyComment
from tests.gitops.test_comment import COMMIT, document
from tests.support.gitops.forge import OWNER, REPOSITORY, add_user
from tests.support.gitops.machine import runner_of
from tests.support.gitops.working_copy import WorkingCopy

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.gitops]

BEZEL = Path(sys.executable).parent / "bezel"
WORKFLOW = f"""\
name: comment
on: {{pull_request: {{}}}}
permissions: {{}}
jobs:
  comment:
    runs-on: ubuntu-24.04
    permissions: {{contents: read, pull-requests: write, actions: read}}
    steps:
      - uses: actions/checkout@08c6903cd8c0fde910a37f88322edcfb5dd907a8
      - env: {{GITHUB_TOKEN: "${{{{ github.token }}}}"}}
        run: {BEZEL} ci comment report.json
"""


@pytest.fixture(scope="module")
def copy(forge, tmp_path_factory):
    made = WorkingCopy.of(tmp_path_factory.mktemp("copy") / "tree", forge.address(), [])
    made.write("prices.csv", "1\n")
    made.commit("Add a price")
    made.push("main")
    return made


def client(forge, user=OWNER):
    environ = {
        "GITHUB_API_URL": f"{forge.url}/api/v1",
        "GITHUB_SERVER_URL": forge.url,
        "GITHUB_REPOSITORY": f"{OWNER}/{REPOSITORY}",
        "GITHUB_TOKEN": forge.tokens[user],
        "GITEA_ACTIONS": "true",
    }
    return forge_of(environ)


@pytest.mark.usefixtures("copy")
def test_issues_changes_and_comments_with_a_users_token(forge) -> None:
    add_user(forge, "mallory", "A-long-enough-passw0rd")
    with client(forge) as owners_client, client(forge, "mallory") as other:
        assert (owners_client.own_login, other.own_login) == (OWNER, "mallory")
        forged = other.create_issue("Forged", "<!-- drift -->")
        issues = [owners_client.create_issue(f"Drift {number}", "<!-- drift -->") for number in range(53)]
        assert owners_client.find_issues("<!-- drift -->") == issues
        assert owners_client.update_issue(issues[0].number, body="<!-- drift --> new").body == "<!-- drift --> new"
        assert owners_client.close_issue(issues[1].number).state == "closed"
        assert len(owners_client.find_issues("<!-- drift -->")) == 52
        for content in (b"2\n", b"3\n"):
            owners_client.push_files(
                "bezel/prices", base="main", files={"prices.csv": content, "a/b.txt": b"x"}, message="Refresh"
            )
            pull = owners_client.open_pull_request("bezel/prices", base="main", title="Prices", body=content.decode())
        assert forge.repository("GET", "/contents/prices.csv?ref=bezel/prices")["content"] == "Mwo="
        (pull_request,) = forge.repository("GET", "/pulls?state=open")
        assert (pull_request["number"], pull_request["body"]) == (pull.number, "3\n")
        assert owners_client.head_of(pull.number) == pull_request["head"]["sha"]
        other.create_comment(pull.number, f"{MARKER}\nforged")
        sticky = StickyComment(owners_client, pull.number, sleep=lambda _: None)
        assert [sticky.keep(sections_of([document(verdict=v)], COMMIT)).action for v in ("allowed", "refused")] == [
            "created",
            "updated",
        ]
        assert [comment.author for comment in owners_client.comments(pull.number)] == ["mallory", OWNER]
        extra = owners_client.create_comment(pull.number, "x")
        owners_client.delete_comment(extra.id)
        owners_client.delete_comment(extra.id)
        assert len(owners_client.comments(pull.number)) == 2
        assert owners_client.run_state(999_999) == "unknown"
        with pytest.raises(ForgeError) as refused:
            other.update_issue(issues[0].number, body="taken over")
        assert refused.value.status == 403
        assert forged.author == "mallory"


def test_a_job_keeps_one_comment_by_its_own_token(forge, act, copy, tmp_path) -> None:
    copy.branch("change")
    copy.write(".github/workflows/comment.yml", WORKFLOW)
    copy.write("report.json", json.dumps(document()))
    head = copy.commit("Show a report")
    copy.push("change")
    with runner_of(forge, tmp_path / "runner", act, os.environ):
        content = {"title": "Change", "head": "change", "base": "main", "body": ""}
        pull = forge.repository("POST", "/pulls", content)["number"]
        run = forge.wait_for_end("comment.yml", 120, head_sha=head)
        assert run["conclusion"] == "success", forge.log_of(run["id"])
        copy.write("report.json", json.dumps(document(verdict="refused")))
        head = copy.commit("Show another report")
        copy.push("change")
        run = forge.wait_for_end("comment.yml", 120, head_sha=head)
        assert run["conclusion"] == "success", forge.log_of(run["id"])
    with client(forge) as forge_client:
        assert forge_client.run_state(run["id"]) == "ended"
        (comment,) = forge_client.comments(pull)
    assert comment.author == "gitea-actions"
    assert "**refused**" in comment.body
    assert [key.commit for key in sections_in(comment.body)] == [head]
