"""Merges at once of one stack, and a deploy that waits beside another stack's."""

from contextlib import contextmanager

from tests.support.gitops import team as teams
from tests.support.gitops.team import CHAT

LOCK = f"locks/bezel/{CHAT}.json"
USERS = {"chat": 8, "chat-for-fewer": 6}


def commit_of(team, branch):
    return team.forge.repository("GET", f"/branches/{branch}")["commit"]["id"]


@contextmanager
def hold_lock(team, stack):
    """The lock of a stack, held by a person."""
    holder = team.pipeline.start("ci", "lock", stack, "--", "sleep", "600")
    try:
        name = f"locks/bezel/{stack}.json"
        team.forge.wait_for("the person's lock", lambda: name in team.pipeline.objects("locks/"))
        yield
    finally:
        holder.terminate()
        holder.communicate(timeout=60)


def test_two_merges_of_one_stack_are_deployed_in_turn_as_reviewed(team):
    forge = team.forge
    # The first is the first change of a stack that was never deployed; the second, on top of it, changes it again.
    team.copy.branch("chat")
    numbers, commits = [], []
    for branch, users in USERS.items():
        team.set("vllm.max-num-seqs", users, CHAT)
        team.copy.git("checkout", "--quiet", "-B", branch)
        commits.append(team.push(branch, f"Chat for {users}"))
        numbers.append(team.open(branch, f"Chat for {users}"))
    for number, commit in zip(numbers, commits, strict=True):
        run = team.wait_for_preview(commit)
        assert run["conclusion"] == "success", team.log(run)
        team.approve(number)

    team.merge(numbers[0], "fast-forward-only")
    forge.wait_for("the first deploy's lock", lambda: LOCK in team.pipeline.objects("locks/"), teams.RUN_SECONDS)
    team.merge(numbers[1], "fast-forward-only")
    first, second = (forge.wait_for_end("deploy.yml", teams.RUN_SECONDS, head_sha=commit) for commit in commits)
    assert first["conclusion"] == "success", team.log(first)
    assert team.conclusions(second)["deploy"] == "failure"
    # Whether it waited for the first one's lock depends on how long its own set-up takes.
    assert "the state has changed since this tree was previewed" in team.log(second)


def test_the_second_is_previewed_again_and_another_stack_does_not_wait(team):
    forge = team.forge
    commit = commit_of(team, "main")
    (previewed,) = forge.runs("preview.yml", head_sha=commit)
    team.run_again(previewed, "preview")
    assert team.wait_for_preview(commit)["conclusion"] == "success"
    (second,) = forge.runs("deploy.yml", head_sha=commit)
    other = forge.runs("deploy.yml")[-1]
    with hold_lock(team, CHAT):
        forge.repository("POST", f"/actions/runs/{second['id']}/rerun-failed-jobs")
        team.run_again(other, "deploy")
        assert forge.wait_for_end("deploy.yml", teams.RUN_SECONDS, id=other["id"])["conclusion"] == "success"
        assert forge.jobs(second["id"])["deploy"]["status"] == "in_progress"
    run = forge.wait_for_end("deploy.yml", teams.RUN_SECONDS, head_sha=commit)
    log = team.log(run)
    assert run["conclusion"] == "success", log
    # The log of a job is served at its end. It began before the other one, whose whole deploy passed meanwhile.
    assert f"waiting for the lock of {CHAT}" in log
    (service,) = team.services(CHAT)
    (container,) = team.pipeline.cloud.get(f"/run/v2/{service}").json()["template"]["containers"]
    assert "--max-num-seqs=6" in container["args"]
