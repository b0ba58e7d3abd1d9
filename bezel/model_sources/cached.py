"""Descriptions of models by the name of their place; those of a hub's commit are kept in the user's state folder.

A commit never changes, so what was read of it once is read from there: `$XDG_STATE_HOME/bezel/models`, outside of any
clone. Owns the bounds of the time.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from bezel.model_sources.description import Description
from bezel.model_sources.places import HubPlace, ModelRefusedError, open_place
from bezel.model_sources.reading import read_description
from bezel.rest import Backoff, UnreachableError
from bezel.weights.retry import Watch
from bezel_base.atomic_write import write_whole
from bezel_base.errors import Problem
from bezel_base.state_folder import state_folder

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Mapping
    from pathlib import Path

SECONDS = 120.0
_BACKOFF = Backoff(first=0.2, longest=2.0)  # people wait for the answer
_COMMIT = re.compile(r"[0-9a-f]{40}")
_FORMAT = "2"  # of the files that are kept


def describe(
    source: str,
    revision: str = "",
    *,
    environ: Mapping[str, str],
    token: Callable[[], str],
    show: Callable[[str], None],
    cancelled: threading.Event | None = None,
    backoff: Backoff | None = None,
) -> Description:
    """Describe a model by its files, without its weights.

    Args:
        source: `OWNER/NAME[@REVISION]` of a hub, a folder, or `gs://BUCKET/FOLDER`.
        revision: Branch, tag or commit of a repository; "" for that of the name, or `main`.
        environ: The environment; HF_ENDPOINT in it replaces the public hub.
        token: Returns the hub's token when it first requires one; "" for none.
        show: Called with what is being read.
        cancelled: Set by the caller to give it up.
        backoff: The waits between two attempts.

    Raises:
        UserError: There is no such model, it may not be read, or vLLM could not load it.
    """
    consequence = "reading the model's description took longer and was ended; nothing was written."
    overdue = Problem("time limit", f"{SECONDS:g} s", consequence, "run the same command again.")
    watch = Watch(SECONDS, backoff or _BACKOFF, cancelled=cancelled, overdue=overdue)
    try:
        with open_place(source, revision, watch, token, environ) as place:
            if not isinstance(place, HubPlace):
                show(f"reads {place.name}")
                return read_description(place)
            return _of_hub(place, state_folder("models", environ), show)
    except UnreachableError as error:
        if any(isinstance(problem, Problem) for problem in error.problems):
            raise
        consequence = f"it could not be read ({error}), so nothing is known of it and nothing was written."
        repair = "run the same command again later; what was read of a commit before is kept."
        raise ModelRefusedError(Problem(source, None, consequence, repair)) from None


def _of_hub(place: HubPlace, folder: Path, show: Callable[[str], None]) -> Description:
    repository = place.repository
    if _COMMIT.fullmatch(repository.revision) and (
        kept := _find_description(_file(folder, place, repository.revision))
    ):
        return kept
    show(f"reads {place.name} at {place.base}")
    commit = place.listing().version
    file = _file(folder, place, commit)
    description = _find_description(file)
    if description is None:
        description = read_description(place)
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_whole(file, description.as_json(), mode=0o600, durable=False)
    return replace(description, revision=repository.revision)


def _file(folder: Path, place: HubPlace, commit: str) -> Path:
    key = f"{_FORMAT} {place.base} {place.repository.id} {commit}"
    return folder / f"{hashlib.sha256(key.encode()).hexdigest()[:40]}.json"


def _find_description(file: Path) -> Description | None:
    try:
        return Description.of_json(file.read_bytes())
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
