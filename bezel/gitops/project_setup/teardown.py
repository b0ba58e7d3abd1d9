"""`bezel init --destroy`: take a project's foundation away, after every stack has left its bucket.

The state is copied out of the bucket first, and counts from there; then the bucket is emptied and everything destroyed.
After a kill at any moment the same command continues. Leaves out the refusal in `pulumi destroy` itself
(`bezel_bootstrap.stack_guard`).
"""

from typing import Literal
from urllib.parse import quote

from bezel.engine.outcomes import Exit, LockedError
from bezel.foundation.settings import NAMESPACE
from bezel.foundation.stacks_in_bucket import refusal, stacks_in
from bezel.gitops.project_setup.engine import SetupEngine
from bezel.gitops.project_setup.folder import SetupFolder
from bezel.gitops.project_setup.places import Places
from bezel.gitops.project_setup.setup import Ask
from bezel.rest import ApiError, GoogleClient, endpoint
from bezel_base.errors import Problem, UserError
from bezel_base.terminal.screen import show_text

_KEPT = (
    "Google keeps the key ring for ever, the federation pool for 30 days and the custom roles for 7, all without cost "
    "and without effect; `bezel init` takes them over again. The APIs stay enabled."
)


def tear_down(project: str, bucket: str, ask: Ask) -> Literal[Exit.DONE, Exit.FAILED]:
    """Destroy a project's foundation, after `ask` has agreed.

    Args:
        project: Id of the Google Cloud project.
        bucket: Name of the state bucket.
        ask: Asks the user.

    Raises:
        UserError: There are stacks, or a run holds a lock, or there is nothing to destroy.
    """
    folder = SetupFolder.of(project)
    with folder.hold_lock() as lock_descriptor:
        places = Places.of(folder, bucket, lock_descriptor)
        folder.prepare({})
        continues = folder.is_being_destroyed()
        state = None if continues else places.in_bucket()
        if state is None and not folder.has_state():
            consequence = "there is no state of its set-up, neither in the bucket nor on this machine."
            repair = "name the right project, and --state-bucket if the bucket has another name."
            raise UserError(Problem(f"project {project}", None, consequence, repair))
        _check_unused(bucket, folder.stack)
        if state is not None:
            folder.configure(folder.configuration(), state["deployment"])
            places.bucket.recover()
        if not continues and not ask(
            f"Destroy the foundation of project {project}, with the bucket {bucket} and every earlier version in it?"
        ):
            show_text("nothing was changed")
            return Exit.FAILED
        if state is not None:
            places.to_here(places.in_bucket() or state)
        folder.note_destroy()
        return _destroy(places.here, bucket)


def _check_unused(bucket: str, stack_name: str) -> None:
    """Refuse while the bucket holds stacks or locks.

    Raises:
        UserError: It does.
    """
    with GoogleClient() as client:
        if others := [name for name in stacks_in(client, bucket) if name != f"{NAMESPACE}/{stack_name}"]:
            raise UserError(refusal(bucket, others))
        if locks := [name for name, _ in _versions(client, bucket, "locks/", current=True)]:
            consequence = "a run of a pipeline holds it, or was killed and left it. Nothing was destroyed."
            repair = "wait for its end; if that run is dead, delete the object; then run the same command again."
            raise LockedError(Problem(f"gs://{bucket}/{locks[0]}", None, consequence, repair))


def _destroy(here: SetupEngine, bucket: str) -> Literal[Exit.DONE, Exit.FAILED]:
    here.recover()
    if _is_empty(here):
        here.folder.forget()
        show_text("nothing is left to destroy")
        return Exit.DONE
    here.output_of("state", "unprotect", "--all", "--yes")
    _empty(bucket, here.folder.stack)
    run, _ = here.run("destroy", "--yes", "--skip-preview")
    if not run.ok:
        show_text("not everything was destroyed; run the same command again when it is repaired.")
        return Exit.FAILED
    here.folder.forget()
    show_text(f"the foundation of project {here.folder.project} is destroyed. {_KEPT}")
    return Exit.DONE


def _is_empty(engine: SetupEngine) -> bool:
    state = engine.export_state() or {}
    return not state.get("deployment", {}).get("resources")


def _empty(bucket: str, stack_name: str) -> None:
    """Delete every version of every object; a stack that appeared meanwhile stops it."""
    _check_unused(bucket, stack_name)
    with GoogleClient() as client:
        for name, generation in [*_versions(client, bucket, "", current=False)]:
            url = f"{endpoint('STORAGE')}b/{quote(bucket, safe='')}/o/{quote(name, safe='')}"
            try:
                client.request("DELETE", url, params={"generation": generation})
            except ApiError as error:
                if error.status != 404:
                    raise


def _versions(client: GoogleClient, bucket: str, prefix: str, *, current: bool) -> list[tuple[str, str]]:
    """Name and generation of objects; none where there is no such bucket."""
    url = f"{endpoint('STORAGE')}b/{quote(bucket, safe='')}/o"
    query = {"prefix": prefix, "fields": "items(name,generation),nextPageToken"}
    query |= {} if current else {"versions": "true"}
    try:
        return [(str(item["name"]), str(item["generation"])) for item in client.pages(url, "items", params=query)]
    except ApiError as error:
        if error.status == 404:
            return []
        raise
