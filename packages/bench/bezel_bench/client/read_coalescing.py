"""Rule for how long a sender leaves its sockets unread, from the pace of the streams that have ended. Pure.

A loop that wakes for every chunk spends more on waking than on the chunk; one that rests in between reads several at
once. The measured times stay the same where the kernel stamps each segment on its arrival. Two limits keep a rest from
affecting the figures. Chunks of one stream that arrive within one rest are read together, with one stamp, so a rest is
a part of the stream's pace. A user who sends the next request when a response ends does so later by up to one rest, so
it is a smaller part of a response. Leaves out the loop that rests (`bezel_bench.client.loop`).
"""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from bezel_bench.result.sample import Sample

LONGEST_NS: Final = 4_000_000
"""4 ms: does not affect ticks, which come every 10 ms, nor deadlines."""
_OF_PACE: Final = 3
_OF_ANSWER: Final = 200


def rest_after(before: int, sample: "Sample", ended: int) -> int:
    """Return the rest (ns) that streams allow, once one more has ended; 0 where none is worthwhile.

    Args:
        before: The rest that the earlier streams allow.
        sample: The sample of the response, with its chunks as far as they are read.
        ended: The instant at which it ended (ns).
    """
    chunks = sample.chunks
    gaps = len(chunks) - 1
    if gaps < 1:
        return 0
    return min(before, (chunks[-1] - chunks[0]) // (gaps * _OF_PACE), (ended - sample.sent) // _OF_ANSWER)
