"""How long a server has answered nothing: a rule that ends a load at one that hangs. Pure.

Each request has a deadline, and a user waits it out; with many requests for each user a server that hangs would be
asked for hours. So a load ends where a request failed without an answer, and for as long as a single one may take no
other had one either.
"""


class Silence:
    """What was heard of a server, in instants of one clock (ns).

    Attributes:
        lasted: For so long nothing was answered when the rule was met; 0 before.
    """

    def __init__(self, limit: int) -> None:
        self.lasted = 0
        self._limit = limit
        self._heard = self._waiting = self._since = 0

    def waits(self, now: int) -> None:
        """A request is sent, and no other one was under way."""
        self._waiting = now

    def hears(self, now: int) -> None:
        """An answer came to its end, or broke off: the server is there."""
        self._heard, self._since = now, 0

    def misses(self, begun: int, now: int) -> bool:
        """Whether the server hangs, as a request that began then has failed without an answer."""
        self._since = self._since or max(begun, self._heard)
        if now - self._since < self._limit:
            return False
        self.lasted = now - self._since
        return True

    def so_far(self, now: int) -> int:
        """For how long requests were under way and none was answered."""
        return now - max(self._waiting, self._heard)
