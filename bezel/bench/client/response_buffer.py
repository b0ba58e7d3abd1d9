"""An answer on its way: pieces as they arrived, read when there is a moment, and never more of them than is bounded.

A piece that differs from those before it in its text alone is counted at once: that is as fast as keeping it.
"""

from array import array
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from bezel.bench.client.stream import AnswerReader
from bezel.bench.load.virtual_user import User
from bezel.bench.result.sample import Sample

if TYPE_CHECKING:
    from bezel.bench.client.sse_template import Alike

MANY: Final = 4
LARGE: Final = 16 * 1024
"""Pieces, or bytes of one, that are read before the answer's end: a long stream is not kept whole, and one whose first
pieces are read is read on at once."""
# Answers that wait to be read: beyond, each that comes has one read at once.
_WAITING: Final = 4096


class ResponseBuffer:
    """One answer, from its request to its end.

    Attributes:
        sample: What is filled in.
        user: Who waits for it in a closed loop; None in an open one.
        body: Of the request.
        at: When it ended (ns), 0 before.
        cut: It ended because the connection did.
        failure: Kind and text of a failure that the answer does not show itself.
        queued: It waits to be read.
        pieces: Of the body, as they arrived and not yet read.
        instants: When each did (ns).
        alike: The events that need no reading; None while they are not known, or any piece is kept unread.
    """

    __slots__ = ("_reader", "alike", "at", "body", "cut", "failure", "instants", "pieces", "queued", "sample", "user")

    def __init__(self, sample: Sample, body: bytes, user: User | None = None) -> None:
        self.sample, self.body, self.user = sample, body, user
        self.queued = False
        self.at = 0
        self.cut = False
        self.failure = ("", "")
        self._reader = AnswerReader(sample)
        self.instants = array("q")
        self.pieces: list[bytes] = []
        self.alike: Alike | None = None

    def keep(self, at: int, piece: bytes) -> bool:
        """Keep a piece of the body that is not `alike`; whether enough is kept to be read.

        Args:
            at: When it arrived (ns).
            piece: Not empty.
        """
        self.alike = None
        self.instants.append(at)
        self.pieces.append(piece)
        return len(self.pieces) >= MANY or len(piece) >= LARGE

    def read(self) -> None:
        """Read what is kept, and finish the sample if the answer has ended."""
        self.queued = False
        reader = self._reader
        if self.pieces:
            instants, pieces = self.instants, self.pieces
            self.instants, self.pieces = array("q"), []
            reader.feed(instants, pieces)
            if not reader.rest:
                self.alike = reader.alike
        if self.at:
            reader.finish(cut=self.cut, at=self.at)
            self.sample.done = self.at
            if self.failure[0]:
                self.sample.failure, self.sample.detail = self.failure


class Backlog:
    """Answers that wait to be read, the oldest first.

    Attributes:
        most: The most that ever waited.
    """

    def __init__(self, ended: Callable[[Sample], None] | None = None) -> None:
        """Wait for answers; `ended` is called with each sample once it is complete."""
        self.most = 0
        self._waiting: deque[ResponseBuffer] = deque()
        self._ended = ended

    def add(self, answer: ResponseBuffer) -> None:
        """Have an answer read later, or the oldest one now if too many wait."""
        if answer.queued:
            return
        answer.queued = True
        self._waiting.append(answer)
        self.most = max(self.most, len(self._waiting))
        if len(self._waiting) > _WAITING:
            self._read()

    def read_one(self) -> bool:
        """Read the oldest; whether more wait."""
        if self._waiting:
            self._read()
        return bool(self._waiting)

    def read_all(self) -> None:
        """Read all that waits."""
        while self.read_one():
            pass

    def _read(self) -> None:
        answer = self._waiting.popleft()
        answer.read()
        if self._ended and answer.at:
            self._ended(answer.sample)
