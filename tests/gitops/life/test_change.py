"""A change from its branch to its merge: the verdict, one comment, and the protection of the branch."""

from datetime import UTC, datetime, timedelta


def test_a_change_is_refused_until_it_is_mended_and_approved(team):
    team.copy.branch("more-users")
    tomorrow = datetime.now(UTC).date() + timedelta(days=1)
    team.set("labels.expires-at", tomorrow.isoformat())
    team.set("scaling", {"max_instances": 3})
    team.set("cost", {"max_hourly_usd": 9})
    commit = team.push("more-users", "Serve more users")
    number = team.open("more-users", "Serve more users")
    run = team.wait_for_preview(commit)
    jobs = team.conclusions(run)
    ended = [jobs[name] for name in ("changed stacks", "preview", "verdict")]
    assert ended == ["success", "failure", "failure"], team.log(run)
    team.approve(number)
    assert team.try_merge(number).status_code == 405, "the verdict is red"

    team.set("scaling", {"max_instances": 2})
    team.set("cost", {"max_hourly_usd": 3})
    commit = team.push("more-users", "Two are enough")
    run = team.wait_for_preview(commit)
    assert run["conclusion"] == "success", team.log(run)
    (comment,) = team.forge.repository("GET", f"/issues/{number}/comments")
    assert "USD/h" in comment["body"]
    team.approve(number)
    team.merge(number)
