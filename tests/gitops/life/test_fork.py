"""Pull requests that edit the workflow: what a fork's gets, and what a branch of the team gets."""

import json
import re
import shutil

import httpx

from tests.support.gitops import team as teams
from tests.support.gitops.forge import OWNER, REPOSITORY
from tests.support.gitops.foundation import PROVIDER

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


def edited_workflow(team, branch):
    """A branch whose preview workflow shows what its job was given; its commit."""
    team.copy.branch(branch)
    shutil.rmtree(team.copy.folder / ".github" / "workflows")
    team.copy.write(".github/workflows/preview.yml", EDITED)
    team.copy.write("probe.py", PROBE)
    return team.copy.commit(f"Look around: {branch}")


def found_by(team, run):
    log = team.log(run)
    assert run["conclusion"] == "success", log
    return json.loads(re.search(r"FOUND (\{.*\})", log)[1])


def exchange_token(team, **claims):
    """The answer to the exchange of a job's identity token for Google's."""
    audience = f"//iam.googleapis.com/{PROVIDER}"
    token = {"event_name": "pull_request", "ref": "refs/pull/7/merge", **claims}
    fields = {
        "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
        "requested_token_type": "urn:ietf:params:oauth:token-type:access_token",
        "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
        "audience": audience,
        "scope": "https://www.googleapis.com/auth/cloud-platform",
        "subject_token": team.issuer.token(audience, **token),
    }
    url = f"{team.pipeline.endpoint.base}/sts/v1/token"
    return httpx.post(url, data=fields, timeout=30, trust_env=False).json()


def test_a_forks_pull_request_gets_no_secret_no_identity_and_no_write(team):
    forge = team.forge
    forge.repository("POST", "/forks", {}, user=teams.STRANGER)
    fork = f"{teams.STRANGER}/{REPOSITORY}"
    forge.wait_for("the fork", lambda: forge.call("GET", f"/repos/{fork}/branches/main", ok=False).is_success)
    commit = edited_workflow(team, "from-outside")
    address = forge.address(teams.STRANGER, owner=teams.STRANGER)
    team.copy.git("push", "--quiet", address, "HEAD:refs/heads/from-outside")
    head = f"{teams.STRANGER}:from-outside"
    team.open("from-outside", "Help", user=teams.STRANGER, head=head)
    (run,) = forge.wait_for("the fork's run", lambda: forge.runs("preview.yml", head_sha=commit))
    assert {job["status"] for job in forge.jobs(run["id"]).values()} <= {"blocked", "waiting"}
    team.press("approve", run)
    gains = found_by(team, team.wait_for_preview(commit))
    assert gains == {"secret": 0, "identity": [], "account": [], "reads": 200, "verdict": 403, "branch": 403}
    number = str(forge.call("GET", f"/repos/{fork}")["id"])
    refused = exchange_token(team, repository=fork, repository_id=number, sub=f"repo:{fork}:pull_request")
    assert refused["error"] == "unauthorized_client"
    assert "attribute condition" in refused["error_description"]


def test_a_branch_of_the_team_gets_all_of_these(team):
    commit = edited_workflow(team, "from-inside")
    team.copy.push("from-inside")
    team.open("from-inside", "Look")
    gains = found_by(team, team.wait_for_preview(commit))
    assert gains["secret"] == len(teams.PASSPHRASE)
    assert len(gains["identity"]) == 2
    assert (gains["verdict"], gains["branch"]) == (201, 201)
    claims = {
        "repository": f"{OWNER}/{REPOSITORY}",
        "repository_id": str(team.forge.repository("GET", "")["id"]),
    }
    assert exchange_token(team, **claims)["token_type"] == "Bearer"
