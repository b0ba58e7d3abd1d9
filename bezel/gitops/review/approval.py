"""Decision whether the changes of a deploy are those that were reviewed. Pure.

Reviewed are the changes of a saved preview of the same tree, stack and state; those whose digest a person has typed;
and what is left of a deploy of the same tree that did not reach its end.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from bezel.engine.changes.planned import Planned, difference, digest, is_rest_of
from bezel.gitops.review.reviews import Review


@dataclass(frozen=True)
class ReviewHistory:
    """What is known of earlier reviews of a tree.

    Attributes:
        review: The review for the present state.
        others: Reviews of the tree for other states, the newest first.
        begun: The changes of the last deploy, if that was one of this tree and did not reach its end.
    """

    review: Review | None = None
    others: Sequence[Review] = ()
    begun: Sequence[Planned] | None = None


@dataclass(frozen=True)
class Decision:
    """Whether changes may be made, why, and how they differ from the reviewed ones."""

    allowed: bool
    reason: str
    difference: list[str] = field(default_factory=list)


def decide(planned: Sequence[Planned], history: ReviewHistory, approved: str = "") -> Decision:
    """Decide about planned changes.

    Args:
        planned: The changes that this run has just previewed.
        history: What was reviewed.
        approved: The digest that a person has typed, "" if none.
    """
    present, review = digest(planned), history.review
    if approved:
        if approved == present:
            return Decision(True, "approved by its digest")
        return Decision(False, "the digest of --approve is that of other changes", _against(history, planned))
    if review is not None and not review.is_sound:
        return Decision(False, "the object of the review is not one that a preview wrote")
    if review is not None and review.verdict != "allowed":
        return Decision(False, f"the review says {review.verdict}", difference(review.planned, planned))
    if review is not None and review.changes_digest == present:
        return Decision(True, "as reviewed")
    if review is not None:
        return Decision(False, "the changes differ from the reviewed ones", difference(review.planned, planned))
    if history.begun is not None and is_rest_of(history.begun, planned):
        return Decision(True, "the rest of the reviewed changes, after a deploy that did not reach its end")
    if history.begun is not None:
        reason = "a deploy of this tree did not reach its end, and the changes are not what is left of it"
        return Decision(False, reason, difference(history.begun, planned))
    if history.others:
        lines = difference(history.others[0].planned, planned)
        reason = "the state has changed since this tree was previewed"
        return Decision(False, reason, lines or ["the planned changes are the same"])
    return Decision(False, "this tree was not previewed with the verdict allowed")


def _against(history: ReviewHistory, planned: Sequence[Planned]) -> list[str]:
    """The difference from what was reviewed; none where nothing was: the report lists the changes once already."""
    reviewed = history.review or next(iter(history.others), None)
    return difference(reviewed.planned, planned) if reviewed and reviewed.is_sound else []
