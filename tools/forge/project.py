"""A project of one's own on the forge: what it has to have, and what its owner does then.

The owner pushes a branch and opens the pull request: these are the steps that a project has on any forge.
"""

import shlex
from pathlib import Path

import tools.package_tests  # noqa: F401 - it finds the helpers
from bezel.engine.project.folder import PROJECT_FILE
from bezel.engine.project.git import GitError, git
from bezel.engine.project.pipeline_file import FILE
from bezel.engine.project.project import Project
from bezel_base.text.shell import shell_word
from tests.support.gitops.forge import OWNER
from tests.support.gitops.pipeline import BACKEND
from tests.support.gitops.team import DEVELOPER, PASSPHRASE, REVIEWER
from tools.forge.place import REMOTE, Place

WORKFLOW = ".github/workflows/preview.yml"
BRANCH, TITLE = "another-owner", "Name another owner"
_COMMENT = 'import json, sys; print(*(row["body"] for row in json.load(sys.stdin)), sep="\\n")'
_STATE = 'import json, sys; print(json.load(sys.stdin)["state"])'


def problem_of(project: Path) -> str:
    """Why a folder cannot be put on the forge, with the repair; "" where it can."""
    shown = shlex.quote(str(project))
    if missing := [name for name in (PROJECT_FILE, FILE, WORKFLOW) if not (project / name).is_file()]:
        return f"{shown} has no {', no '.join(missing)}: name the folder of a project that `bezel new` made"
    try:
        top = git(project, "rev-parse", "--show-toplevel")
        git(project, "rev-parse", "--verify", "HEAD^{commit}")
        changed = git(project, "status", "--porcelain")
    except GitError:
        return (
            f"{shown} has no commit, and the forge gets the last one:\n"
            f"  git -C {shown} init --initial-branch main\n"
            f'  git -C {shown} add --all && git -C {shown} commit -m "Begin"'
        )
    if Path(top).resolve() != project.resolve():
        return f"{shown} is a folder of the repository {top}: workflows are found at the top of a repository alone"
    if changed:
        return (
            f"{shown} has changes that are in no commit, and the forge gets the last one:\n"
            f'  git -C {shown} add --all && git -C {shown} commit -m "Complete"'
        )
    return ""


def project_text(url: str, password: str, project: Path, place: Place) -> str:
    """The address, the people, and what to do, as commands to paste.

    Args:
        url: Address of the forge.
        password: Of the people, in letters, digits, hyphens and underscores.
        project: Folder of the project.
        place: Where this text is kept.
    """
    name = Project(project).name
    stack = Project(project).stacks()[0]
    pages = f"{url}/{OWNER}/{name}"
    cloud = shell_word(place.cloud)
    remote = f"{url.replace('://', f'://{DEVELOPER}:{password}@')}/{OWNER}/{name}.git"
    return f"""
The forge is at {url}, with the project as its branch main:

  {pages}

People: {DEVELOPER} and {REVIEWER}, password {password}
(made for this machine; these lines are kept in the file
{place.ready})

Push a change as a branch, and open a pull request for it:

  cd {shlex.quote(str(project))}
  git remote add {REMOTE} \\
    {remote}
  git checkout -b {BRANCH}
  sed -i 's/owner: .*/owner: speech/' Pulumi.{stack}.yaml
  git commit -am "{TITLE}" && git push {REMOTE} {BRANCH}
  forge() {{ curl -fsS -u "$1:{password}" -H Content-Type:application/json \\
    ${{3:+-o /dev/null -d "$3"}} \\
    {url}/api/v1/repos/{OWNER}/{name}/$2; }}
  forge {DEVELOPER} pulls '{{"title": "{TITLE}", "head": "{BRANCH}",
    "base": "main"}}'

See its jobs, on {pages}/actions or as their state; once that is
success, the comment with changes, price and policies. After a failure
the log of the failed job on that page names cause and repair; a
further commit on the branch starts the jobs again:

  forge {DEVELOPER} commits/{BRANCH}/status | python3 -c '{_STATE}'
  forge {DEVELOPER} issues/1/comments | python3 -c '{_COMMENT}'

Approve it and merge it; the deploy starts, as a run of main:

  forge {REVIEWER} pulls/1/reviews '{{"event": "APPROVED", "body": "fine"}}'
  forge {REVIEWER} pulls/1/merge '{{"Do": "merge"}}'
  forge {DEVELOPER} commits/main/status | python3 -c '{_STATE}'

Once that is success, see what it has deployed, as an operator does:

  cloud() {{ eval "$(.venv/bin/bezel local env --dir \\
    {cloud})"
    export PULUMI_BACKEND_URL={BACKEND} PULUMI_CONFIG_PASSPHRASE={PASSPHRASE}
    export STORAGE_EMULATOR_HOST="${{STORAGE_EMULATOR_HOST#http://}}"
    unset PULUMI_CONFIG_PASSPHRASE_FILE; }}
  (cloud && .venv/bin/bezel status {shell_word(stack)})

A later merge that changes what judges, e.g. a limit or pyproject.toml,
stops until its owner approves it: the comment announces it, and the log
of the deploy has the digest. Then, in the place of DIGEST:

  git checkout main && git pull {REMOTE} main
  (cloud && .venv/bin/bezel ci deploy {shell_word(stack)} --approve-judge DIGEST)

End it, and remove everything but the project, in the clone:

  make forge-down

"""
