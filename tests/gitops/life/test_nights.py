"""Nights: an outside change is reported, and an expired stack is destroyed."""

from tests.support.gitops import team as teams
from tests.support.gitops.team import CHAT

DAYS = 2 * 86_400


def test_an_outside_change_is_one_issue_in_the_morning(team):
    (service,) = team.services(teams.STACK)
    assert team.pipeline.cloud.delete(f"/run/v2/{service}").is_success
    run = team.run_workflow("nightly.yml")
    jobs = team.conclusions(run)
    assert (jobs["drift"], jobs["expiry and leftovers"]) == ("failure", "success"), team.log(run)
    (issue,) = team.forge.repository("GET", "/issues?type=issues&state=open")
    assert teams.STACK in issue["body"]


def test_an_expired_stack_is_destroyed_at_night_with_all_that_it_had(team):
    team.machine.fail()
    team.start_machine(ahead_seconds=DAYS)
    run = team.run_workflow("nightly.yml")
    assert team.conclusions(run)["expiry and leftovers"] == "success", team.log(run)
    assert not team.state(teams.STACK).get("resources")
    assert len(team.services(CHAT)) == 1, "it never expires"
    others = {kind: [name for name in names if CHAT not in name] for kind, names in team.inventory().items()}
    assert {kind: names for kind, names in others.items() if names} == team.before
    (issue,) = team.forge.repository("GET", "/issues?type=issues&state=open")
    assert "Destroyed." in issue["body"]
