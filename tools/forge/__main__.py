"""A forge to look at: `make forge` starts a Gitea with a runner and an open pull request, `make forge-down` ends it.

    .venv/bin/python -m tools.forge up [PROJECT] | down

What runs is what `make gitops` tests: the repository with its workflow files, people, branch protection, and an
embedded cloud that the jobs deploy to. With PROJECT, the folder of a project of one's own, its last commit is the
repository, and the pull request is left to its owner (`project`). A keeper process holds all of it (`keeper`); without
it nothing stays. Leaves out the tests of the workflows (tests/gitops).
"""

import sys
import time
from pathlib import Path

from bezel_base.console import say
from tools.forge.place import DOWN_SECONDS, REMOTE, UP_SECONDS, Place

PROGRESS_SECONDS = 30.0
"""After so long without a line, one with the time is shown."""


def up(place: Place, project: Path | None = None) -> int:
    """Start the forge, show each step, then what to try; return the exit code. One that runs already is shown.

    Args:
        place: Where it is.
        project: Folder of the project that it gets; None for this clone.
    """
    if not place.is_kept():
        # Late: they import Pulumi, for seconds, which the end of a forge needs not.
        from tools.forge import keeper
        from tools.forge.project import problem_of

        if project and (problem := problem_of(project)):
            say(problem)
            return 2
        place.clear()
        place.prepare()
        place.write_project(project)
        keeper.start(place)
    elif place.project() != project:
        say(f"a forge runs already, with {place.project() or 'this clone'}: `make forge-down` ends it")
        return 1
    try:
        return _await_forge(place)
    except KeyboardInterrupt:
        say("stopped: ending what was started")
        down(place)
        return 130


def down(place: Place) -> int:
    """End everything; return the exit code."""
    was_there, project = place.folder.exists(), place.project()
    if not place.end(DOWN_SECONDS):
        say(f"the forge's keeper did not end within {DOWN_SECONDS:g} s, and was killed")
    place.clear()
    if not was_there:
        say("no forge runs here")
        return 0
    say("the forge is gone: no process and no file of it is left")
    if project:
        say(f"{project} stays as it is, without the remote `{REMOTE}` that was for this forge")
    return 0


def _await_forge(place: Place) -> int:
    """Show the keeper's lines until the forge is ready; return the exit code."""
    end, read, begun = time.monotonic() + UP_SECONDS, 0, time.monotonic()
    shown = begun
    while True:
        was_kept = place.is_kept()
        lines = place.lines()
        for line in lines[read:]:
            say(line)
            shown = time.monotonic()
        read = len(lines)
        if place.ready.exists():
            sys.stdout.write(place.ready.read_text(encoding="utf-8"))
            return 0
        if not was_kept:
            say(f"the forge did not start; the end of {place.log}:")
            say("\n".join(place.log.read_text(encoding="utf-8", errors="replace").splitlines()[-20:]))
            place.clear(keep_log=True)
            return 1
        if time.monotonic() > end:
            say(f"the forge was not ready within {UP_SECONDS:g} s: ending it")
            down(place)
            return 1
        if time.monotonic() - shown > PROGRESS_SECONDS:
            shown = time.monotonic()
            say(f"  … {shown - begun:.0f} s")
        time.sleep(0.2)


def main() -> int:
    """Run the command of the command line."""
    match sys.argv[1:]:
        case ["up"]:
            return up(Place.of_user())
        case ["up", folder]:
            return up(Place.of_user(), Path(folder).resolve())
        case ["down"]:
            return down(Place.of_user())
        case ["keep", folder]:
            from tools.forge import keeper

            return keeper.keep(Place.at(folder))
        case ["clear", folder]:
            Place.at(folder).clear()
            return 0
    sys.stderr.write(f"{__doc__}\n")
    return 2


if __name__ == "__main__":
    sys.exit(main())
