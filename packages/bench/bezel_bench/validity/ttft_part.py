"""Client's own part of each TTFT, from the kernel's stamps in the samples. Pure.

A TTFT begins when the client gives a request to the kernel and ends when the kernel received the first token. Two spans
inside are the client's, and not the server's: until the request has left the machine, and, where the client read the
first token together with later ones, until the stamp of the last of them, which all have. The second is known as a
bound: the token arrived after the loop had last found nothing to read. Leaves out the consequence
(`bezel_bench.result.cell_status`), and time for which the machine kept the client from a CPU
(`bezel_bench.client.stalls`).
"""

import numpy as np

from bezel_bench.metrics import statistics
from bezel_bench.metrics.steady import Steady
from bezel_bench.result.columns import Columns
from bezel_bench.result.records import Distribution


def ttft_part(columns: Columns, steady: Steady) -> Distribution | None:
    """Return the client's part (ms) of the TTFTs that count and whose request has a stamp; None where none has.

    Args:
        columns: All requests.
        steady: The part of the load that counts.
    """
    stamped = (columns.failure == 0) & (columns["first"] > 0) & (columns["departed"] > 0)
    rows = columns.where(stamped & steady.counts(columns))
    if not len(rows):
        return None
    sent, first, after = rows["sent"], rows["first"], rows["first_after"]
    late = np.where(after > 0, np.maximum(first - np.maximum(after, sent), 0), 0)
    return statistics.distribution(statistics.Series((rows["departed"] - sent + late) / 1e6), "ms")
