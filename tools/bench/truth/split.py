"""Split of the difference of a client's TTFTs to the server's: the client's part, and the queue before it. Pure.

The server's log begins when its process has read a request, a client's TTFT when the client gave it to its kernel. The
packets of a capture lie between: what is before a request's packet, and after that of its first token, is the client's;
from the packet to the log's beginning the request waits for the server's process.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bezel_bench.result.columns import Columns, Floats
    from tools.bench.truth.capture import Exchange
    from tools.bench.truth.truth_server import Record


@dataclass(frozen=True)
class Split:
    """Parts of the difference of each request's TTFT, in ms, in the order in which the requests left.

    Attributes:
        total: The client's TTFT less the server's.
        client: Until the request's packet left, and from the packet of the first token to its instant at the client.
        queue: From the request's packet to the beginning of the server's log.
    """

    total: Floats
    client: Floats
    queue: Floats


def arrivals(truth: Sequence[Record], exchanges: Sequence[Exchange]) -> list[Record]:
    """Return the server's records with the instant at which each request reached the machine, in the order of `first`.

    The server's one core writes the first tokens one after the other, in the order in which its log has them.

    Raises:
        ValueError: The capture has another number of responses than the log.
    """
    served = sorted((record for record in truth if record.outcome == "ok"), key=lambda record: record.first)
    responses = sorted(exchanges, key=lambda exchange: exchange.response)
    return [replace(record, arrival=one.request) for record, one in zip(served, responses, strict=True)]


def split(rows: Columns, truth: Sequence[Record], exchanges: Sequence[Exchange]) -> Split:
    """Return the parts of each request's TTFT; the client sends one request after the other, in the order of `sent`.

    Raises:
        ValueError: Client, log and capture have different numbers of requests.
    """
    sent = rows.good().where(np.argsort(rows.good()["sent"], kind="stable"))
    served = sorted((record for record in truth if record.outcome == "ok"), key=lambda record: record.first)
    order = np.argsort([exchange.response for exchange in exchanges], kind="stable")
    if not len(sent) == len(served) == len(order):
        raise ValueError(f"{len(sent)} requests of the client, {len(served)} of the server, {len(order)} captured")
    begun, first = np.empty(len(order)), np.empty(len(order))
    begun[order], first[order] = [one.arrival for one in served], [one.first for one in served]
    request, response = (np.array([getattr(one, name) for one in exchanges]) for name in ("request", "response"))
    client = (request - sent["sent"]) + (sent["first"] - response)
    total = (sent["first"] - sent["sent"]) - (first - begun)
    return Split(total / 1e6, client / 1e6, (begun - request) / 1e6)
