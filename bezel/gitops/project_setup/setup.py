"""`bezel init`: create or change a project's foundation, and move its state into the bucket.

Each step may be repeated, so that a run after a kill continues where the killed one was; a run without anything
to do says so. Leaves out the destroy (`teardown.py`).
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from bezel.engine.outcomes import Exit
from bezel.engine.project.project import Project
from bezel.foundation.settings import NAMESPACE, Settings
from bezel.gitops.project_setup import forge_settings, hand_settings, preflight
from bezel.gitops.project_setup.engine import SetupEngine, outputs_of
from bezel.gitops.project_setup.folder import SetupFolder
from bezel.gitops.project_setup.grants import grants_text
from bezel.gitops.project_setup.pipeline import checked_pipeline, write_pipeline
from bezel.gitops.project_setup.places import Places
from bezel_base.errors import Problem, UserError
from bezel_base.terminal.screen import show_text
from bezel_base.text.shell import shell_word

Ask = Callable[[str], bool]
_VERBS = {
    "create": "create",
    "import": "adopt",
    "update": "change",
    "replace": "replace",
    "delete": "delete",
}


@dataclass(frozen=True)
class Setup:
    """A project and its settings."""

    project: str
    settings: Settings
    forge_url: str = ""
    """Address of the forge, for the pages that its settings are on."""
    checkout: Project | None = None
    """The checkout whose pipeline is set up; None outside of one."""

    @property
    def last_output(self) -> str:
        """Output that only a complete set-up has."""
        return "smoke_account" if self.settings.no_forge else "identity_provider"

    @property
    def configuration(self) -> dict[str, object]:
        """The settings as a stack's configuration."""
        settings = self.settings.model_dump(mode="json", exclude_defaults=True)
        # The Budget API wants a project whose quota it uses, where the caller is a person.
        google = {"gcp:project": self.project, "gcp:userProjectOverride": "true", "gcp:billingProject": self.project}
        return {**google, **{f"{NAMESPACE}:{name}": value for name, value in settings.items()}}


def set_up(setup: Setup, ask: Ask) -> Literal[Exit.DONE, Exit.FAILED]:
    """Set a project up, after `ask` has agreed to what is planned.

    Raises:
        UserError: It cannot be set up; what exists by then is in the state.
    """
    folder = SetupFolder.of(setup.project)
    checkout = None if setup.settings.no_forge else setup.checkout
    pipeline = None if checkout is None else checked_pipeline(checkout, setup.settings.environments)
    with folder.hold_lock() as lock_descriptor:
        if folder.is_being_destroyed():
            consequence = "its destroy was begun, and has not ended."
            repair = (
                f"complete it: `bezel init --destroy --project {shell_word(setup.project)}`; then set the "
                "project up again."
            )
            raise UserError(Problem(f"project {setup.project}", None, consequence, repair))
        places = Places.of(folder, setup.settings.bucket_of(setup.project), lock_descriptor)
        folder.prepare(setup.configuration)
        state = places.in_bucket()
        if state is not None:
            _check_pipeline_stays(setup, outputs_of(state))
            folder.drop_state()  # of a move that was cut off: both are equal
            folder.configure(setup.configuration, state["deployment"])
            code = _apply(places.bucket, setup, ask)
        else:
            code = _begin(setup, places, ask)
        if code != Exit.DONE:
            return code
        state = places.bucket.export_state() or {}
        has_key = places.secure(dict(os.environ), state)
        outputs = outputs_of(state)
        if setup.settings.no_forge:
            show_text(hand_settings.text(outputs, folder, has_key=has_key))
            return Exit.DONE
        if checkout is not None and pipeline is not None and not pipeline.is_declared:
            file = write_pipeline(checkout, pipeline)
            show_text(f"wrote {file}: take out what the pipeline must not deploy, and commit it")
        show_text(
            forge_settings.text(
                outputs, setup.settings, folder, has_key=has_key, forge_url=setup.forge_url, pipeline=pipeline
            )
        )
    return Exit.DONE


def _begin(setup: Setup, places: Places, ask: Ask) -> Literal[Exit.DONE, Exit.FAILED]:
    """The first run, or the continuation of one that was killed before its state was in the bucket."""
    if not places.here.folder.has_state():
        preflight.check(setup.settings, setup.project)
        places.check_bucket_is_free()
    places.here.ensure_stack()
    code = _apply(places.here, setup, ask)
    if code == Exit.DONE:
        places.to_bucket()
    return code


def _check_pipeline_stays(setup: Setup, outputs: Mapping[str, str]) -> None:
    """Refuse a set-up without a forge where a pipeline deploys.

    Raises:
        UserError: It would delete the pipeline's accounts.
    """
    if not setup.settings.no_forge or "identity_provider" not in outputs:
        return
    consequence = "a pipeline deploys to this project: its accounts would be deleted, and its deploys would fail."
    repair = "leave --no-forge out; to begin anew, `bezel init --destroy` first."
    raise UserError(Problem("--no-forge", setup.project, consequence, repair))


def _apply(engine: SetupEngine, setup: Setup, ask: Ask) -> Literal[Exit.DONE, Exit.FAILED]:
    """Preview, ask, and change."""
    engine.recover()
    project = setup.project
    run, changes = engine.run("preview")
    if not run.ok:
        return Exit.FAILED
    show_text(f"project {project}: {changes_text(changes)}")
    if not changes and setup.last_output in engine.outputs():
        return Exit.DONE
    if granted := grants_text(run.events.changes):
        show_text(f"roles that change hands:\n{granted}")
    if changes and not ask(f"Do that in project {project}?"):
        show_text("nothing was changed")
        return Exit.FAILED
    run, _ = engine.run("up", "--yes", "--skip-preview")
    if not run.ok:
        show_text("not everything was created; what was is in the state: when it is repaired, run the command again.")
        return Exit.FAILED
    return Exit.DONE


def changes_text(changes: Mapping[str, int]) -> str:
    """The number of changes of each kind, for a reader."""
    if not changes:
        return "0 changes"
    total = sum(changes.values())
    parts = ", ".join(f"{count} to {_VERBS.get(kind, kind)}" for kind, count in sorted(changes.items()))
    return f"{total} change{'s' if total > 1 else ''}: {parts}"
