"""Loads of the comparison of clients: the server's pace, the users, and how often each is measured."""

from __future__ import annotations

from dataclasses import dataclass

from tools.bench.clients.load_client import Client, Load

_PACED = ("-ttft", "50ms", "-itl", "10ms", "-gaps")


@dataclass(frozen=True)
class ComparedLoad:
    """One load.

    Attributes:
        name: Its key in the results.
        title: For the tables.
        server: Options of the server.
        load: What is sent; no requests: as many of one token as the client's own `requests` says.
        place: Which of the client's `requests`.
        rounds: The most that are measured of a client.
        for_slow: A client whose start is slow sends it, too.
        tls: The server wants TLS.
        only: The start of the names of the clients that send it; "": all.
    """

    name: str
    title: str
    server: tuple[str, ...]
    load: Load
    place: int = 0
    rounds: int = 1_000
    for_slow: bool = True
    tls: bool = False
    only: str = ""

    def sent_by(self, client: Client) -> Load:
        """What the client sends, to no server yet."""
        if self.load.requests:
            return self.load
        return Load("", self.load.users, client.requests[self.place], self.load.tokens)

    def rounds_of(self, client: Client) -> int:
        """The most rounds of this client."""
        sends = client.name.startswith(self.only) and (self.for_slow or not client.slow)
        return self.rounds if sends else 0


LOADS = (
    ComparedLoad("small", "96 requests of 8 users", ("-ttft", "5ms", "-itl", "1ms"), Load("", 8, 96, 16)),
    ComparedLoad("requests", "one token, 64 users", (), Load("", 64, 0, 1)),
    ComparedLoad("requests-short", "", (), Load("", 64, 0, 1), place=1),
    # The users begin within the time of one response: all at once they would measure the server's own queue.
    ComparedLoad("64", "64 users, a token in 10 ms", _PACED, Load("", 64, 384, 64, ramp=0.6)),
    ComparedLoad("256", "256 users, a token in 10 ms", _PACED, Load("", 256, 1536, 64, ramp=0.6)),
    ComparedLoad("256-short", "", _PACED, Load("", 256, 256, 64, ramp=0.6)),
    ComparedLoad(
        "1024",
        "1,024 users, a token in 40 ms",
        ("-ttft", "50ms", "-itl", "40ms", "-gaps"),
        Load("", 1024, 2048, 64, ramp=2.4),
    ),
    ComparedLoad(
        "beyond",
        "beyond saturation: 256 users, 128 slots, a token in 10 ms",
        (*_PACED, "-slots", "128"),
        Load("", 256, 1024, 64, ramp=0.6),
    ),
    ComparedLoad(
        "long",
        "a million tokens: 256 users, 256 tokens, one in 5 ms",
        ("-ttft", "50ms", "-itl", "5ms"),
        Load("", 256, 3906, 256, ramp=1.2),
    ),
    ComparedLoad(
        "tls",
        "256 users, a token in 10 ms, TLS",
        _PACED,
        Load("", 256, 1536, 64, ramp=0.6),
        rounds=3,
        tls=True,
        only="bezel",
    ),
    ComparedLoad(
        "streams",
        "10,000 streams at once, a token a second",
        ("-ttft", "1s", "-itl", "1s"),
        Load("", 10_000, 10_000, 20),
        rounds=1,
        for_slow=False,
    ),
)
