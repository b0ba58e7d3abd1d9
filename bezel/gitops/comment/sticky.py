"""One comment of a pull request, kept: created once, updated after, also if two jobs write at the same time.

An own comment is one that this run's user wrote and that begins with the marker. The marker in anybody else's comment
counts for nothing: such a comment is neither read nor edited. The forges have no conditional update, so a writer looks
again after a while, and writes again if another job has overwritten its part.
"""

import random
import time
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass

from bezel.forge import Comment, Forge, ForgeError
from bezel.gitops.comment.body import MARKER, Sections, body_of, merge_sections, sections_in

_ROUNDS = 8
_SETTLE_SECONDS = 2.0  # longer than another job takes between reading and writing


@dataclass(frozen=True)
class Kept:
    """The comment after the update.

    Attributes:
        action: "created", "updated" or "unchanged".
        comment: as it is on the forge now.
    """

    action: str
    comment: Comment


@dataclass
class StickyComment:
    """The comment of a pull request.

    Args:
        forge: the repository.
        number: of the pull request.
        sleep: waits that many seconds.
        dice: numbers in [0, 1).
    """

    forge: Forge
    number: int
    _: KW_ONLY
    sleep: Callable[[float], None] = time.sleep
    dice: Callable[[], float] = random.random

    def keep(self, new: Sections) -> Kept:
        """Let the comment show these sections, beside those of other jobs for the same commits.

        Sections of other commits are dropped. Where another run writes the same sections, the last one holds.

        Raises:
            ForgeError: the forge refuses, or other jobs overwrite the comment again and again.
        """
        action = "unchanged"
        failure: ForgeError | None = None
        commits = {key.commit for key in new}
        replaced: Sections = {}
        for _ in range(_ROUNDS):
            own_comments = self.own()
            existing = merge_sections(sections_in(comment.body) for comment in own_comments)
            present = {key: text for key, text in existing.items() if key.commit in commits}
            if action == "unchanged":
                replaced = present
            # A job that read before this one wrote brings the replaced text back; any other text is a newer one.
            own_part = {
                key: text
                for key, text in new.items()
                if action == "unchanged" or present.get(key) in (None, replaced.get(key))
            }
            body = body_of({**present, **own_part})
            if len(own_comments) == 1 and same_text(own_comments[0].body, body):
                return Kept(action, own_comments[0])
            try:
                action = self._write(own_comments, body, action)
            except ForgeError as error:
                # Another job has just merged and deleted it, or the forge failed after it did what was asked.
                if error.status not in (0, 404) and error.status < 500:
                    raise
                failure = error
            self.sleep(_SETTLE_SECONDS * (0.5 + self.dice()))
        raise failure or ForgeError(f"the comment of pull request {self.number} is overwritten again and again.")

    def own(self) -> list[Comment]:
        """The own comments, oldest first; more than one only while two jobs begin at the same time."""
        login = self.forge.own_login
        return [
            comment
            for comment in self.forge.comments(self.number)
            if comment.author == login and comment.body.startswith(MARKER)
        ]

    def _write(self, own_comments: list[Comment], body: str, action: str) -> str:
        if not own_comments:
            self.forge.create_comment(self.number, body)
            return "created"
        first, *others = own_comments
        if not same_text(first.body, body):
            self.forge.update_comment(first.id, body)
            action = action if action == "created" else "updated"
        for comment in others:
            self.forge.delete_comment(comment.id)
        return action


def same_text(one: str, other: str) -> bool:
    """Whether a forge shows two texts alike: it may change the ends of lines and trailing space."""
    return one.replace("\r\n", "\n").strip() == other.replace("\r\n", "\n").strip()
