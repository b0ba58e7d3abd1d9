"""Loads of `make truth`: what the server does, what is sent to it, and the state that the load then has."""

from __future__ import annotations

from dataclasses import dataclass

_PACE = ("-ttft", "50ms", "-itl", "10ms")
# 32 slots of 50 ms + 15 x 10 ms: 160 requests per second are the most.
_SLOTS = (*_PACE, "-slots", "32")
_CLOSED = ("--users", "64", "--ramp", "0.3", "--requests", "1024", "--output-tokens", "16")
_MANY = ("--users", "256", "--ramp", "0.6", "--requests", "3072", "--output-tokens", "64")


@dataclass(frozen=True)
class TruthLoad:
    """One load.

    Attributes:
        server: Options of the server: pace, slots and faults.
        sent: Options of `bezel bench run`.
        states: The states that the load may have.
        at_once: Whether all users begin at once, so that their requests queue before the server: the truth then begins
            with the request's packet, which a capture has.
        beside: (users, requests per second, requests, tokens) for other clients; None where they do not send it.
    """

    name: str
    server: tuple[str, ...]
    sent: tuple[str, ...]
    states: tuple[str, ...] = ("ok",)
    tls: bool = False
    at_once: bool = False
    beside: tuple[int, float, int, int] | None = None


LOADS = (
    TruthLoad("closed loop, 64 users", _PACE, _CLOSED, beside=(64, 0.0, 1024, 16)),
    TruthLoad("closed loop, 256 users", _PACE, _MANY, beside=(256, 0.0, 3072, 64)),
    TruthLoad("closed loop beyond saturation: 64 users, 32 slots", _SLOTS, _CLOSED, beside=(64, 0.0, 1024, 16)),
    TruthLoad("closed loop beyond saturation: 256 users, 128 slots", (*_PACE, "-slots", "128"), _MANY),
    TruthLoad(
        "open loop, 70 % of saturation",
        _SLOTS,
        ("--rate", "112", "--requests", "1000", "--output-tokens", "16"),
        beside=(0, 112.0, 1000, 16),
    ),
    TruthLoad(
        "open loop, at saturation",
        _SLOTS,
        ("--rate", "160", "--requests", "1400", "--output-tokens", "16"),
        ("ok", "saturated"),
    ),
    TruthLoad(
        "open loop, 130 % of saturation",
        _SLOTS,
        ("--rate", "208", "--requests", "1600", "--output-tokens", "16"),
        ("saturated",),
        beside=(0, 208.0, 1600, 16),
    ),
    TruthLoad(
        "bursts, 50 % of saturation",
        _SLOTS,
        ("--rate", "80", "--arrivals", "burst", "--burstiness", "0.2", "--requests", "700", "--output-tokens", "16"),
    ),
    TruthLoad("slow starts: 10 % after 2 s", (*_PACE, "-slow", "0.1"), _CLOSED),
    TruthLoad("5 % errors", (*_PACE, "-errors", "0.05"), _CLOSED, ("failed",)),
    TruthLoad("5 % connections reset among their tokens", (*_PACE, "-resets", "0.05"), _CLOSED, ("failed",)),
    TruthLoad("TLS, closed loop, 64 users", _PACE, _CLOSED, tls=True),
    TruthLoad("TLS, closed loop, 256 users", _PACE, _MANY, tls=True),
    # (1,024 requests leave within some 40 ms, so that the client says that it was late.)
    *(
        TruthLoad(
            f"{users:,} users at once",
            ("-ttft", "50ms", "-itl", "100ms" if users > 256 else "10ms"),
            ("--users", str(users), "--requests", str(4 * users), "--output-tokens", "16"),
            ("ok", "client_limited") if users > 64 else ("ok",),
            at_once=True,
        )
        for users in (64, 256, 1024)
    ),
    TruthLoad(
        "client at its limit: 256 users, no pause",
        (),
        ("--users", "256", "--requests", "60000", "--output-tokens", "1"),
        ("client_limited",),
    ),
)
