"""A runner that is killed in the middle of a deploy: its lock, and the attempt that follows."""

from tests.support.gitops import machine
from tests.support.gitops import team as teams
from tests.support.gitops.forge import OWNER, REPOSITORY
from tests.support.gitops.team import STACK

LOCK = f"locks/bezel/{STACK}.json"
ENGINES_LOCK = f".pulumi/locks/organization/bezel/{STACK}/"


def lock_shown(team):
    """What a person sees of the lock."""
    forge = team.forge
    variables = {
        "GITHUB_API_URL": f"{forge.url}/api/v1",
        "GITHUB_SERVER_URL": forge.url,
        "GITHUB_REPOSITORY": f"{OWNER}/{REPOSITORY}",
        "GITHUB_TOKEN": forge.tokens[teams.REVIEWER],
    }
    run = team.pipeline.bezel("ci", "lock", STACK, "--show", **variables)
    assert run.code == 0, run.text
    return run.text


def is_half_deployed(team):
    """Whether the engine has entered resources into the state, and is making another."""
    state = team.state(STACK)
    return len(state.get("resources", [])) > 3 and state.get("pending_operations")


def test_the_lock_of_a_killed_runner_is_kept_until_its_run_has_ended(team):
    forge, pipeline = team.forge, team.pipeline
    forge.wait_for("a deploy in the middle", lambda: is_half_deployed(team), teams.RUN_SECONDS)
    team.machine.fail()
    assert pipeline.objects("locks/") == [LOCK]
    assert len(pipeline.objects(ENGINES_LOCK)) == 1
    (run,) = forge.runs("deploy.yml")
    assert forge.jobs(run["id"])["deploy"]["status"] == "in_progress"
    if machine.is_separate():
        assert "its run is active: it counts as living" in lock_shown(team)
    # The forge gives such a job up after ten minutes; a person who knows better ends it, and runs it again.
    team.press("cancel", run)
    assert forge.wait_for_end("deploy.yml", teams.RUN_SECONDS)["conclusion"] == "cancelled"
    if machine.is_separate():
        assert "its run has ended: the next run takes the lock over" in lock_shown(team)
    forge.repository("POST", f"/actions/runs/{run['id']}/rerun-failed-jobs")
    team.start_machine()


def test_the_next_attempt_completes_what_the_killed_runner_began(team):
    run = team.forge.wait_for_end("deploy.yml", teams.RUN_SECONDS, id=team.forge.runs("deploy.yml")[-1]["id"])
    log = team.log(run)
    assert run["conclusion"] == "success", log
    assert f"took over the lock of {STACK} from" in log
    assert "the rest of the reviewed changes" in log
    assert team.pipeline.objects("locks/") == team.pipeline.objects(ENGINES_LOCK) == []
    assert "pending_operations" not in team.state(STACK)
    assert len(team.services(STACK)) == 1, "nothing is made twice"
