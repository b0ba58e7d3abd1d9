"""Rule that ends a load when the server hangs: how long no response has come. Pure.

Each request has a deadline, and a user waits it out; with many requests for each user a load on a hanging server would
run for hours. So a load ends where a request failed without a response, and for as long as a single one may take no
other request got one either.
"""


class Silence:
    """Observed responses of a server, in instants of one clock (ns).

    Attributes:
        lasted: The time without any response when the rule was met; 0 before.
    """

    def __init__(self, limit: int) -> None:
        self.lasted = 0
        self._limit = limit
        self._heard = self._waiting = self._since = 0

    def waits(self, now: int) -> None:
        """Note that a request is sent while no other one is under way."""
        self._waiting = now

    def hears(self, now: int) -> None:
        """Note that a response ended or broke off: the server is alive."""
        self._heard, self._since = now, 0

    def misses(self, begun: int, now: int) -> bool:
        """Whether the server hangs, given that a request begun at `begun` has failed without a response."""
        self._since = self._since or max(begun, self._heard)
        if now - self._since < self._limit:
            return False
        self.lasted = now - self._since
        return True

    def so_far(self, now: int) -> int:
        """Return for how long requests were under way without a response."""
        return now - max(self._waiting, self._heard)
