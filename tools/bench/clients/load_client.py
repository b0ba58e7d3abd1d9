"""A load client of the comparison: what it is asked for, what it reports. Its subclasses are beside it."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}


@dataclass(frozen=True)
class Load:
    """A load on one server.

    Attributes:
        url: Address of the server.
        users: Concurrent users.
        requests: Number of requests.
        tokens: Tokens of each response.
        ramp: Seconds in which the users begin, one after the other; 0: all at once.
        ca_file: Certificate that the client trusts for the server.
        rate: Requests per second of an open loop with Poisson's arrivals, in place of the users; 0: a closed loop.
        model: Served model.
        input_tokens: Length of each prompt.
        prompts: File with a prompt for each request, in JSON lines, in place of made ones.
        seed: Of the arrivals of an open loop, where the client takes one.
    """

    url: str
    users: int
    requests: int
    tokens: int
    ramp: float = 0.0
    ca_file: str = ""
    rate: float = 0.0
    model: str = "mock"
    input_tokens: int = 16
    prompts: Path | None = None
    seed: int = 0


@dataclass
class ClientFigures:
    """A client's own figures of one load.

    Attributes:
        answered: Requests that got a response.
        seconds: Duration by the client.
        tokens: Tokens that it counted.
        ttft_ms: TTFT of each request.
        tpot_ms: TPOT of each request, where it reports it.
        itl_ms: Time from each token to the next, of all requests, where it reports it.
        instants: Of each request: sent, first and last token in ns of CLOCK_MONOTONIC, where it reports them.
        state: Its own judgement of the load; "" where it has none.
    """

    answered: int
    seconds: float
    tokens: int
    ttft_ms: list[float]
    tpot_ms: list[float]
    itl_ms: list[float] = field(default_factory=list)
    instants: list[list[int]] = field(default_factory=list)
    state: str = ""


class Client:
    """A client; subclasses define its command line and parse its output.

    Attributes:
        requests: (long, short) runs of requests of one token each: their difference leaves the start out.
        slow: Its start takes ten seconds and more.
        variables: Added to the environment.
        exits: Exit codes with which it has written a result.
    """

    requests: tuple[int, int] = (40_000, 2_000)
    slow = False
    variables: ClassVar[Mapping[str, str]] = OFFLINE
    exits: tuple[int, ...] = (0,)

    @cached_property
    def name(self) -> str:
        """Its name with its version, for which the program is asked once."""
        raise NotImplementedError

    def command(self, load: Load, folder: Path) -> list[str]:
        """The command line, with its result in `folder`."""
        raise NotImplementedError

    def read(self, folder: Path) -> ClientFigures:
        """Parse its result."""
        raise NotImplementedError


def distribution_version(folder: Path, package: str) -> str:
    """The version of an installed distribution, by the Python beside its command."""
    code = f"import importlib.metadata as m; print(m.version({package!r}))"
    return subprocess.check_output([folder / "python", "-c", code], text=True).strip()
