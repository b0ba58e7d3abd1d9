"""Buffer of a response in progress: a bounded number of unread pieces, parsed when the sender has time.

A piece that differs from the earlier ones in its text alone is counted at once, which is as fast as storing it.
"""

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from bezel_bench.client.stream import AnswerReader
from bezel_bench.load.patterns import User
from bezel_bench.result.sample import Sample

if TYPE_CHECKING:
    from bezel_bench.client.sse_template import Alike

MANY: Final = 4
LARGE: Final = 16 * 1024
"""Pieces, or bytes of one, after which a response is read before its end: a long stream is not stored whole, and
reading continues at once after its first pieces."""
# Responses that may wait to be read: beyond it, each new one has the oldest read at once.
_WAITING: Final = 4096


class ResponseBuffer:
    """One response, from its request to its end.

    Attributes:
        sample: The sample to fill.
        user: The user who waits for it in a closed loop; None in an open one.
        body: The request's body.
        at: The instant at which it ended (ns), 0 before.
        cut: Whether it ended because the connection did.
        failure: Kind and text of a failure that the response itself does not show.
        queued: Whether it waits to be read.
        pieces: Pieces of the body that arrived and are not yet read.
        instants: The arrival of each (ns).
        reader: The reader of the body, which fills the sample.
        alike: The template of events that need no parsing; None while unknown, or while any piece is unread.
    """

    __slots__ = ("alike", "at", "body", "cut", "failure", "instants", "pieces", "queued", "reader", "sample", "user")

    def __init__(self, sample: Sample, body: bytes, user: User | None = None, keeps: bool = False) -> None:
        self.sample, self.body, self.user = sample, body, user
        self.queued = self.cut = False
        self.at = 0
        self.failure = ("", "")
        self.reader = AnswerReader(sample, keeps)
        self.instants: list[int] = []
        self.pieces: list[bytes] = []
        self.alike: Alike | None = None

    def keep(self, at: int, piece: bytes) -> bool:
        """Store a piece of the body that is not `alike`; return whether enough is stored to be read.

        Args:
            at: Its arrival (ns).
            piece: Not empty.
        """
        self.alike = None
        self.instants.append(at)
        self.pieces.append(piece)
        return len(self.pieces) >= MANY or len(piece) >= LARGE

    @property
    def text(self) -> str:
        """Return the text of a response that was read to its end; "" unless it keeps texts."""
        return "".join(self.reader.texts or ())

    def read(self) -> None:
        """Read the stored pieces, and finish the sample if the response has ended; once."""
        if self.sample.done:
            return
        reader = self.reader
        if self.pieces:
            instants, pieces = self.instants, self.pieces
            self.instants, self.pieces = [], []
            reader.feed(instants, pieces)
            if not reader.rest:
                self.alike = reader.alike
        if self.at:
            reader.finish(cut=self.cut, at=self.at)
            self.sample.done = self.at
            if self.failure[0]:
                self.sample.failure, self.sample.detail = self.failure


class Backlog:
    """Responses that wait to be read, the oldest first.

    Attributes:
        most: The largest number that ever waited.
    """

    def __init__(self, ended: Callable[[Sample], None] | None = None) -> None:
        """Create an empty backlog; `ended` is called with each sample once it is complete."""
        self.most = 0
        self._waiting: deque[ResponseBuffer] = deque()
        self._ended = ended

    def add(self, answer: ResponseBuffer) -> None:
        """Queue a response, or read the oldest one now if too many wait."""
        if answer.queued:
            return
        answer.queued = True
        self._waiting.append(answer)
        if (waiting := len(self._waiting)) > self.most:
            self.most = waiting
        if waiting > _WAITING:
            self._read()

    def read_one(self) -> bool:
        """Read the oldest response; return whether more wait."""
        if self._waiting:
            self._read()
        return bool(self._waiting)

    def read_all(self) -> None:
        """Read all waiting responses."""
        while self.read_one():
            pass

    def _read(self) -> None:
        answer = self._waiting.popleft()
        answer.queued = False
        answer.read()
        if self._ended and answer.at:
            self._ended(answer.sample)
