"""The very workflow files on a forge: a change from its branch to its deploy, and a stack's end."""

import pytest

from bezel.localcloud import control
from tests.support.gitops import team as teams
from tests.support.gitops.issuer import Issuer

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.gitops]


@pytest.fixture(scope="module")
def team(forge, act, tmp_path_factory):
    with Issuer() as issuer:
        made = teams.found(forge, tmp_path_factory.mktemp("team"), act, issuer)
        try:
            with made.runner():
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
