"""The very workflow files on a forge: a change from its branch to its deploy, and a stack's end.

The tests are one life: each begins with what those before it left.
"""

import json
import re
import shutil

import httpx
import pytest

from bezel.localcloud import control
from tests.support.gitops import team as teams
from tests.support.gitops.issuer import Issuer

PROBE = """\
import json, os, urllib.error, urllib.request

def status(path, body=None):
    data = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": "token " + os.environ["FORGE_TOKEN"], "Content-Type": "application/json"}
    request = urllib.request.Request(os.environ["PLACE"] + path, data, headers)
    try:
        return urllib.request.urlopen(request, timeout=30).status
    except urllib.error.HTTPError as error:
        return error.code

found = {
    "secret": len(os.environ["PASSPHRASE"]),
    "identity": [name for name in os.environ if name.startswith("ACTIONS_ID_TOKEN")],
    "account": [name for name in os.environ if name.startswith(("GOOGLE_APPLICATION", "GOOGLE_OAUTH"))],
    "reads": status("/branches/main"),
    "verdict": status("/statuses/" + os.environ["HEAD"], {"state": "success", "context": "forged"}),
    "branch": status("/branches", {"new_branch_name": os.environ["OWN"], "old_ref_name": "main"}),
}
print("FOUND " + json.dumps(found))
"""
EDITED = """\
name: preview
on: pull_request
permissions: {contents: write, id-token: write, issues: write, pull-requests: write}
jobs:
  verdict:
    name: verdict
    runs-on: ubuntu-24.04
    permissions: {contents: write, id-token: write, issues: write, pull-requests: write}
    steps:
      - uses: actions/checkout@08c6903cd8c0fde910a37f88322edcfb5dd907a8
      - env:
          PASSPHRASE: ${{ secrets.PULUMI_CONFIG_PASSPHRASE }}
          FORGE_TOKEN: ${{ github.token }}
          PLACE: ${{ github.api_url }}/repos/${{ github.repository }}
          HEAD: ${{ github.event.pull_request.head.sha }}
          OWN: made-by-${{ github.event.pull_request.user.login }}
        run: python3 probe.py
"""

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.gitops]


@pytest.fixture(scope="module")
def team(forge, act, tmp_path_factory):
    with Issuer() as issuer:
        made = teams.found(forge, tmp_path_factory.mktemp("team"), act, issuer)
        try:
            with made.runners:
                made.start_runner()
                yield made
        finally:
            made.pipeline.stop()


def test_a_change_is_refused_mended_approved_merged_and_deployed(team):
    forge = team.forge
    team.copy.branch("more-users")
    team.set("scaling", {"max_instances": 3})
    team.set("cost", {"max_hourly_usd": 9})
    commit = team.push("more-users", "Serve more users")
    number = team.open("more-users", "Serve more users")
    run = team.previewed(commit)
    assert run["conclusion"] == "failure"
    jobs = {name: job["conclusion"] for name, job in forge.jobs(run["id"]).items()}
    assert jobs["changed stacks"] == "success", team.log(run)
    assert jobs["verdict"] == "failure", team.log(run)
    team.approve(number)
    assert team.merge(number).status_code == 405

    team.set("scaling", {"max_instances": 2})
    team.set("cost", {"max_hourly_usd": 3})
    commit = team.push("more-users", "Two are enough")
    run = team.previewed(commit)
    assert run["conclusion"] == "success", team.log(run)
    comments = forge.repository("GET", f"/issues/{number}/comments")
    assert len(comments) == 1
    assert "USD/h" in comments[0]["body"]
    team.approve(number)
    merged = team.merge(number)
    assert merged.status_code == 200, merged.text
    run = forge.ended("deploy.yml", teams.RUN_SECONDS, event="push")
    assert run["conclusion"] == "success", team.log(run)
    assert [name for name in control.inventory(team.pipeline.endpoint)["services"] if "l4-qat" in name]


def test_an_outside_change_is_one_issue_in_the_morning(team):
    forge, cloud = team.forge, team.pipeline.cloud
    (name,) = [name for name in control.inventory(team.pipeline.endpoint)["services"] if "l4-qat" in name]
    assert cloud.delete(f"/run/v2/{name}").is_success
    forge.repository("POST", "/actions/workflows/nightly.yml/dispatches", {"ref": "main"})
    run = forge.ended("nightly.yml", teams.RUN_SECONDS)
    jobs = {job: facts["conclusion"] for job, facts in forge.jobs(run["id"]).items()}
    assert jobs["drift"] == "failure", team.log(run)
    (issue,) = forge.repository("GET", "/issues?type=issues&state=open")
    assert "l4-qat" in issue["body"]


def edited_workflow(team, branch):
    """A branch whose preview workflow shows what its job was given; its commit."""
    team.copy.branch(branch)
    workflows = team.copy.folder / ".github" / "workflows"
    shutil.rmtree(workflows)
    team.copy.write(".github/workflows/preview.yml", EDITED)
    team.copy.write("probe.py", PROBE)
    return team.copy.commit(f"Look around: {branch}")


def found_by(team, run):
    log = team.log(run)
    assert run["conclusion"] == "success", log
    return json.loads(re.search(r"FOUND (\{.*\})", log)[1])


def exchanged(team, **claims):
    """The answer to the exchange of a job's identity token for Google's."""
    audience = f"//iam.googleapis.com/{teams.POOL}/providers/forge"
    fields = {
        "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
        "requested_token_type": "urn:ietf:params:oauth:token-type:access_token",
        "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
        "audience": audience,
        "scope": "https://www.googleapis.com/auth/cloud-platform",
        "subject_token": team.issuer.token(audience, **claims),
    }
    url = f"{team.pipeline.endpoint.base}/sts/v1/token"
    return httpx.post(url, data=fields, timeout=30, trust_env=False).json()


def test_a_fork_that_edits_the_workflow_gets_no_secret_no_identity_and_no_right_to_write(team):
    forge = team.forge
    forge.repository("POST", "/forks", {}, user=teams.STRANGER)
    fork = f"{teams.STRANGER}/gemma"
    forge.wait_for("the fork", lambda: forge.call("GET", f"/repos/{fork}/branches/main", ok=False).is_success)
    commit = edited_workflow(team, "from-outside")
    address = forge.address(teams.STRANGER, owner=teams.STRANGER)
    team.copy.git("push", "--quiet", address, "HEAD:refs/heads/from-outside")
    head = f"{teams.STRANGER}:from-outside"
    team.open("from-outside", "Help", user=teams.STRANGER, head=head)
    (run,) = forge.wait_for("the fork's run", lambda: forge.runs("preview.yml", head_sha=commit))
    assert {job["status"] for job in forge.jobs(run["id"]).values()} <= {"blocked", "waiting"}
    team.press("approve", run)
    found = found_by(team, team.previewed(commit))
    assert found == {"secret": 0, "identity": [], "account": [], "reads": 200, "verdict": 403, "branch": 403}
    refused = exchanged(team, repository=fork, sub=f"repo:{fork}:pull_request")
    assert refused["error"] == "unauthorized_client"
    assert "attribute condition" in refused["error_description"]

    # The same from a branch of the team's own, whom it trusts.
    commit = edited_workflow(team, "from-inside")
    team.copy.push("from-inside")
    team.open("from-inside", "Look")
    found = found_by(team, team.previewed(commit))
    assert found["secret"] == len(teams.PASSPHRASE)
    assert len(found["identity"]) == 2
    assert (found["verdict"], found["branch"]) == (201, 201)
    assert exchanged(team)["token_type"] == "Bearer"
