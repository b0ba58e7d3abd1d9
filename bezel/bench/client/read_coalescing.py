"""How long a sender may leave its sockets unread, by the streams that it saw end.

A loop that wakes for every chunk spends more on waking than on the chunk; one that rests in between reads several at
once. What it measures stays the same where the kernel stamps each segment on its arrival. Two limits keep a rest from
showing: chunks of one stream that arrive in one rest are read together, with one stamp, so it is a part of the pace;
and whoever asks again when an answer ends does so that much later, so it is a smaller part of an answer. Pure; leaves
out the loop that rests (`bezel.bench.client.loop`).
"""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from bezel.bench.result.sample import Sample

LONGEST_NS: Final = 4_000_000
"""4 ms: ticks, which come every 10 ms, and deadlines stay what they are."""
_OF_PACE: Final = 3
_OF_ANSWER: Final = 200


def rest_after(before: int, sample: "Sample", ended: int) -> int:
    """The rest (ns) that streams allow, once one more has ended; 0 where none is worth it.

    Args:
        before: What those before it allow.
        sample: Of the answer, its chunks as far as they are read.
        ended: When it did (ns).
    """
    chunks = sample.chunks
    gaps = len(chunks) - 1
    if gaps < 1:
        return 0
    return min(before, (chunks[-1] - chunks[0]) // (gaps * _OF_PACE), (ended - sample.sent) // _OF_ANSWER)
