"""Wrong keys by the address of their sender: after some in a minute each further one is refused as too many. Pure.

A key has 256 random bits, so no rate of guesses finds one: the bound keeps a program with a wrong key from filling the
log. A right key is served whatever came before it from the same address, so no caller is locked out by another.
"""

from typing import Final

MOST_A_MINUTE: Final = 30
_MOST_ADDRESSES: Final = 4096


class WrongKeys:
    """Counts of the present minute."""

    def __init__(self) -> None:
        self._minute = -1
        self._counts: dict[str, int] = {}

    def count(self, address: str, now: float) -> int:
        """Count a wrong key; the seconds for which the address should wait, 0 while it has not sent too many."""
        minute = int(now // 60)
        if minute != self._minute:
            self._minute, self._counts = minute, {}
        if address not in self._counts and len(self._counts) >= _MOST_ADDRESSES:
            address = ""  # all further addresses count as one
        self._counts[address] = self._counts.get(address, 0) + 1
        return 60 - int(now % 60) if self._counts[address] > MOST_A_MINUTE else 0
