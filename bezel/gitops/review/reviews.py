"""Reviews in the state bucket: what a preview planned, stored by project, stack, tree and state.

`plans/PROJECT/STACK/TREE/STATE.json` holds the preview's document and its planned changes, `STATE.plan.json` beside it
the engine's plan for a reader: it is never executed. A preview runs the code of a pull request, so its account may only
create objects here, and what is read here is compared, never obeyed. Leaves out what is compared (`planned_changes`).
"""

import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from bezel.engine.changes.planned import Planned, digest
from bezel.engine.outcomes import RefusedError
from bezel.engine.state.bucket import PreconditionError, StateBucket
from bezel_base.errors import Problem
from bezel_base.json_documents import read_json

FOLDER = "plans"
_LONGEST = 32 * 1024 * 1024


@dataclass(frozen=True)
class ReviewPlace:
    """Place of a stack's reviews for one tree."""

    project: str
    stack: str
    tree: str

    @property
    def folder(self) -> str:
        """The folder in the bucket, ending in a slash. Names of stacks have no slash; it is quoted all the same."""
        return f"{FOLDER}/{quote(self.project, safe='')}/{quote(self.stack, safe='')}/{self.tree}/"

    def name(self, state: str) -> str:
        """The name of the review for a state's digest."""
        return f"{self.folder}{state.removeprefix('sha256:')}.json"


@dataclass(frozen=True)
class Review:
    """A stored review, as far as a deploy compares it.

    Attributes:
        verdict: The preview's verdict.
        changes_digest: The digest of the planned changes, as the preview wrote it.
        planned: The planned changes, for the difference that is shown.
        is_sound: Whether the object is a review whose digest is that of its changes.
    """

    verdict: str
    changes_digest: str
    planned: tuple[Planned, ...] = ()
    is_sound: bool = True


def save(
    bucket: StateBucket, place: ReviewPlace, document: Mapping[str, Any], planned: Sequence[Planned], plan: bytes | None
) -> bool:
    """Store a review; return whether it is new. An equal one that exists is fine.

    Raises:
        RefusedError: Another review of the same tree, stack and state exists.
        RestError: The bucket refuses, or does not answer.
    """
    state = str(document["state_digest"])
    name = place.name(state)
    content = {"document": dict(document), "planned": [item.as_json() for item in planned]}
    is_new = True
    try:
        bucket.create(name, json.dumps(content, indent=1, sort_keys=True).encode())
    except PreconditionError:
        is_new = False
        review = find(bucket, place, state)
        same = review and (review.changes_digest, review.verdict) == (document["changes_digest"], document["verdict"])
        if review is None or not review.is_sound or not same:
            raise _other(bucket, name, review, document) from None
    if plan is not None:
        # A run that was killed in between left none; another run's plan differs in generated names only.
        with contextlib.suppress(PreconditionError):
            bucket.create(f"{name.removesuffix('.json')}.plan.json", plan)
    return is_new


def find(bucket: StateBucket, place: ReviewPlace, state: str) -> Review | None:
    """The review of a tree for a state; None where there is none.

    Raises:
        RestError: The bucket cannot be read.
    """
    stored = bucket.read(place.name(state))
    return None if stored is None else _read(stored[0], place, state)


def others(bucket: StateBucket, place: ReviewPlace) -> list[Review]:
    """The sound reviews of a tree for any state, the newest first.

    Raises:
        RestError: The bucket cannot be read.
    """
    entries = [item for item in bucket.list(place.folder) if not item.name.endswith(".plan.json")]
    reviews = []
    for entry in sorted(entries, key=lambda item: item.updated, reverse=True):
        state = f"sha256:{entry.name.removeprefix(place.folder).removesuffix('.json')}"
        stored = bucket.read(entry.name)
        review = _read(stored[0], place, state) if stored else None
        if review and review.is_sound:
            reviews.append(review)
    return reviews


def _read(content: bytes, place: ReviewPlace, state: str) -> Review:
    """A review from an object that anybody's code may have written: no content of it is an error."""
    unsound = Review("", "", is_sound=False)
    if len(content) > _LONGEST:
        return unsound
    try:
        stored = read_json(content)
        document = stored["document"]
        planned = tuple(map(Planned.read, stored["planned"]))
        named = tuple(document[key] for key in ("kind", "stack", "tree", "state_digest"))
        changes, verdict = str(document["changes_digest"]), str(document["verdict"])
    except (ValueError, KeyError, TypeError):
        return unsound
    is_sound = named == ("preview", place.stack, place.tree, state) and changes == digest(planned)
    return Review(verdict, changes, planned, is_sound=is_sound)


def _other(bucket: StateBucket, name: str, review: Review | None, document: Mapping[str, Any]) -> RefusedError:
    if review is None or not review.is_sound:
        consequence = "an object of that name exists, and it is not a review that this command can have written."
    else:
        consequence = (
            f"another review of the same tree, stack and state says {review.verdict} with the changes "
            f"{review.changes_digest}; this preview says {document['verdict']} with {document['changes_digest']}."
        )
    repair = (
        "find out who wrote it (the bucket's audit log names the account). If the program plans something else at each "
        "preview, make it deterministic. Then delete the object as an owner of the bucket, and preview again."
    )
    return RefusedError(Problem(f"{bucket.url}/{name}", None, consequence, repair))
