"""Keeper of the forge: one process that starts everything, and with which everything ends, however it ends itself."""

import secrets
import signal
import subprocess
import sys
import time
from types import FrameType

import tools.package_tests  # noqa: F401 - it finds the helpers
from bezel_base.console import say
from bezel_base.errors import UserError
from tests.support.gitops.forge import OWNER, REPOSITORY, ForgeError
from tests.support.gitops.programs import program_folder
from tests.support.gitops.team import DEVELOPER, REVIEWER, STACK, Team, running_team
from tests.support.gitops.working_copy import ROOT
from tools.forge.place import Place
from tools.forge.project import project_text

START_SECONDS = 60.0
JOB_SECONDS = 1200.0
BRANCH, TITLE = "more-users", "Serve more users"
# Beside the keeper a shell reads from a pipe whose other end only the keeper holds: at its end it clears the place.
_GUARD = 'read -r _; exec "$@"'


class EndError(BaseException):
    """A signal asks for the end."""


def start(place: Place) -> None:
    """Start a keeper in a session of its own."""
    with place.log.open("wb") as log:
        keeper = subprocess.Popen(
            [sys.executable, "-m", "tools.forge", "keep", str(place.folder)],
            cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
    end = time.monotonic() + START_SECONDS
    while not place.is_kept() and keeper.poll() is None and time.monotonic() < end:
        time.sleep(0.05)


def keep(place: Place) -> int:
    """Start everything, write what to try, and hold it until a signal comes; return the exit code."""

    def end(_number: int, _frame: FrameType | None) -> None:
        raise EndError

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, end)
    with place.hold_lock():
        guard = subprocess.Popen(
            ["/bin/sh", "-c", _GUARD, "sh", sys.executable, "-m", "tools.forge", "clear", str(place.folder)],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        try:
            password = secrets.token_urlsafe(12)
            gitea, act = program_folder("gitea", is_shown=True), program_folder("act", is_shown=True) / "act"
            project = place.project()
            with running_team(gitea, act, place.folder, password, say, project) as team:
                if project:
                    shown = project_text(team.forge.url, password, project, place)
                else:
                    shown = text(team.forge.url, password, open_request(team), place)
                place.ready.write_text(shown, encoding="utf-8")
                while True:
                    signal.pause()
        except EndError:
            return 0
        except (ForgeError, UserError, subprocess.SubprocessError) as error:
            say(f"failed: {error}")
            return 1
        finally:
            guard.kill()
            guard.wait()


def open_request(team: Team) -> int:
    """Open a pull request, and wait for the end of its workflow; return its number."""
    say("opening a pull request")
    team.copy.branch(BRANCH)
    team.set("scaling", {"max_instances": 2})
    team.set("cost", {"max_hourly_usd": 9})
    commit = team.push(BRANCH, TITLE)
    number = team.open(BRANCH, TITLE)
    seen: dict[str, str] = {}

    def has_ended() -> bool:
        runs = team.forge.runs("preview.yml", head_sha=commit)
        jobs = team.forge.jobs(runs[0]["id"]) if runs else {}
        for name, job in jobs.items():
            state = job["conclusion"] or job["status"]
            if seen.get(name) != state:
                seen[name] = state
                say(f"  {name}: {state.replace('_', ' ')}")
        return bool(jobs) and all(row["status"] == "completed" for row in (runs[0], *jobs.values()))

    team.forge.wait_for("the end of the pull request's jobs", has_ended, JOB_SECONDS)
    return number


def text(url: str, password: str, number: int, place: Place) -> str:
    """The address, the people, and what to try, as commands to paste.

    Args:
        url: Address of the forge.
        password: Of the people, in letters, digits, hyphens and underscores.
        number: Of the pull request.
        place: Where this text is kept.
    """
    pages = f"{url}/{OWNER}/{REPOSITORY}"
    clone = f"{url.replace('://', f'://{DEVELOPER}:{password}@')}/{OWNER}/{REPOSITORY}.git"
    return f"""
The forge is at {url}, with an open pull request:

  {pages}/pulls/{number}
      the comment: changes, price, policies; and the checks
  {pages}/actions
      the jobs and their logs

People: {DEVELOPER} and {REVIEWER}, password {password}
(made for this machine; these lines are kept in the file
{place.ready})

Approve it and merge it: the deploy starts, see the page of the jobs

  forge() {{ curl -fsSo /dev/null -u {REVIEWER}:{password} \\
    -H Content-Type:application/json -d "$2" \\
    {url}/api/v1/repos/{OWNER}/{REPOSITORY}/$1; }}
  forge pulls/{number}/reviews '{{"event": "APPROVED", "body": "fine"}}'
  forge pulls/{number}/merge '{{"Do": "merge"}}'

Or ask for more than a policy allows, before the merge: the check turns red

  git clone {clone}
  cd {REPOSITORY} && git checkout {BRANCH}
  sed -i 's/max_instances: 2/max_instances: 3/' Pulumi.{STACK}.yaml
  git -c user.name={DEVELOPER} -c user.email={DEVELOPER}@forge.test \\
    commit -am "Three instances" && git push

End it, and remove everything:

  make forge-down

"""
