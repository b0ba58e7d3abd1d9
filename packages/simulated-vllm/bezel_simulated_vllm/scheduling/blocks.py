"""Pool of KV cache blocks: blocks held by requests, blocks cached for later prompts, and their eviction.

A cached block is identified by the chained hash of all tokens up to its end. It is either in use by running requests or
idle; idle blocks are evicted when others need room, the one that was idle longest first.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class BlockPool:
    """Counts blocks; it never stores tokens."""

    def __init__(self, blocks: int) -> None:
        self._blocks = blocks
        self._private = 0
        self._users: dict[int, int] = {}
        self._idle: OrderedDict[int, None] = OrderedDict()

    @property
    def available(self) -> int:
        """Blocks that can be taken, idle ones that would be evicted included."""
        return self._blocks - self._private - len(self._users)

    @property
    def usage(self) -> float:
        """Share of the pool that running requests hold."""
        return (self._private + len(self._users)) / self._blocks

    def take(self, count: int) -> bool:
        """Take `count` blocks for one request, evicting idle ones; take none and return False if there are too few."""
        if count > self.available:
            return False
        self._private += count
        self._evict()
        return True

    def give_back(self, count: int) -> None:
        """Return blocks that no later prompt can use."""
        self._private -= count

    def count_cached(self, hashes: Sequence[int]) -> int:
        """Return the number of leading hashes that are in the pool."""
        missing = (at for at, value in enumerate(hashes) if value not in self._users and value not in self._idle)
        return next(missing, len(hashes))

    def use(self, hashes: Iterable[int]) -> None:
        """Add a user to cached blocks; every hash must be in the pool."""
        for value in hashes:
            self._idle.pop(value, None)
            self._users[value] = self._users.get(value, 0) + 1

    def publish(self, hashes: Sequence[int]) -> int:
        """Share a request's own full blocks under their hashes; the request stays a user of them.

        Returns:
            The number of the request's private blocks that became shared; for a hash that was in the pool already the
            request's own copy is freed.
        """
        self._private -= len(hashes)
        self.use(hashes)
        return len(hashes)

    def release(self, hashes: Iterable[int]) -> None:
        """Remove a user of shared blocks; without users they are idle, the end of a prompt to be evicted first."""
        for value in reversed(list(hashes)):
            left = self._users[value] - 1
            if left:
                self._users[value] = left
            else:
                del self._users[value]
                self._idle[value] = None

    def _evict(self) -> None:
        while self._private + len(self._users) + len(self._idle) > self._blocks:
            self._idle.popitem(last=False)


def chained_hashes(tokens: Sequence[int], block: int, salt: str = "") -> list[int]:
    """Return the hash of every full block of `block` tokens, each over its own and all earlier tokens."""
    value = hash((salt,))
    hashes = []
    for start in range(0, len(tokens) - block + 1, block):
        value = hash((value, *tokens[start : start + block]))
        hashes.append(value)
    return hashes
