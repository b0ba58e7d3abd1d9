"""Longest wait of another client while one sends localcloud what takes the most work (goal: one second).

    .venv/bin/python -m tools.measure.pauses [--requests 2000] [--only WORDS]

Three processes: localcloud, a client that reads one small resource again and again, and this one, which sends the
tests' hostile requests over all routes and then large ones, kind by kind. For each kind it prints how long the other
client waited for one answer at most, and the CPU that the event loop used meanwhile: where the first is much longer,
the machine was busy with other work. Both depend on the machine, whose load is printed beside them.
"""

from __future__ import annotations

import argparse
import http.client
import os
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

import tools.package_tests  # noqa: F401 - it finds the helpers
from bezel_localcloud import control
from localcloud_support.hostile_requests import hostile_requests
from tools.measure.own_cloud import own_cloud
from tools.measure.requests.large_requests import UPLOAD, Sent, large_kinds, prepare

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from bezel_localcloud.core.paths import Endpoint

ROOT = Path(__file__).parents[2]
GOAL = 1.0  # seconds
_WATCHED = "/storage/v1/b/pauses?fields=name"
_TIMEOUT = 60.0  # seconds for one answer
_WAIT = 0.01  # seconds between two calls of the other client


def main() -> None:
    """Measure and print; the exit status is 1 where a wait was longer than the goal."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=2000, help="hostile requests of the tests (default: 2000)")
    parser.add_argument("--only", default="", help="kinds with one of these words, separated by commas")
    chosen = parser.parse_args()
    parts = [word for word in chosen.only.split(",") if word]
    print(f"{os.cpu_count()} cores; load of the last minute {os.getloadavg()[0]:.2f}")
    with own_cloud() as (folder, cloud):
        endpoint = control.start(cloud, speed=10_000)
        token = control.access_token(endpoint)
        upload = prepare(endpoint, token)
        kinds: dict[str, Iterable[Sent]] = {
            "hostile requests of the tests": (
                Sent(each.verb, each.path, each.content, each.headers) for each in hostile_requests(chosen.requests)
            )
        }
        kinds |= large_kinds()
        kinds = {name: _with_upload(requests, upload) for name, requests in kinds.items()}
        if parts:
            kinds = {name: requests for name, requests in kinds.items() if any(word in name for word in parts)}
        waits = _measure(endpoint, token, folder / "calls", kinds)
    print(f"load of the last minute {os.getloadavg()[0]:.2f}")
    longest = max(waits, default=0.0)
    print(f"the longest wait of the other client: {longest:.2f} s (goal: {GOAL:g} s)")
    sys.exit(longest > GOAL)


def _with_upload(requests: Iterable[Sent], upload: str) -> Iterator[Sent]:
    return (replace(request, path=request.path.replace(UPLOAD, upload)) for request in requests)


class Observed(NamedTuple):
    """One call of the other client: monotonic seconds of its begin and its end, CPU seconds of the event loop in it."""

    begin: float
    end: float
    used: float


def _measure(endpoint: Endpoint, token: str, calls: Path, kinds: dict[str, Iterable[Sent]]) -> list[float]:
    """Send each kind beside another client, print a line for it, and return the longest waits."""
    command = [sys.executable, "-m", "tools.measure.requests.other_client", endpoint.base, str(endpoint.pid), _WATCHED]
    waits = []
    begun, ended = os.pipe()
    with calls.open("w") as file, os.fdopen(begun) as read:
        other = subprocess.Popen([*command, str(_WAIT)], cwd=ROOT, stdin=read, stdout=file)
    with other, os.fdopen(ended, "w") as pipe:  # its end ends the other client
        pipe.write(f"{token}\n")
        pipe.flush()
        time.sleep(1.0)
        for name, requests in kinds.items():
            begin = time.monotonic()
            statuses: Counter[int] = Counter()
            for request in requests:
                statuses[send(endpoint, token, request)] += 1
            longest = _longest(calls, begin, time.monotonic())
            shown = " ".join(f"{status}:{count}" for status, count in sorted(statuses.items()))
            print(
                f"{longest.end - longest.begin:7.3f} s ({longest.used:.3f} s of CPU)  {name}: "
                f"{time.monotonic() - begin:.1f} s, {shown}",
                flush=True,
            )
            waits.append(longest.end - longest.begin)
    return waits


def _longest(calls: Path, begin: float, end: float) -> Observed:
    """The longest call of the other client that ran at some time between two; waits for one that begins later."""
    deadline = end + _TIMEOUT
    observed: list[Observed] = []
    while not observed or observed[-1].begin < end:
        if time.monotonic() > deadline:
            sys.exit("the other client has ended, or gets no answer")
        time.sleep(0.05)
        lines = [line.split() for line in calls.read_text().splitlines(keepends=True) if line.endswith("\n")]
        observed = [Observed(*map(float, line)) for line in lines]
    return max(
        (call for call in observed if call.end >= begin and call.begin <= end), key=lambda call: call.end - call.begin
    )


def send(endpoint: Endpoint, token: str, request: Sent) -> int:
    """Send one request and read its answer; 0 where the connection ended without one."""
    parts = urlsplit(endpoint.base)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=_TIMEOUT)
    headers = {"Authorization": f"Bearer {token}"} | request.headers
    try:
        connection.request(request.verb, request.path, request.content, headers)
        response = connection.getresponse()
        while response.read(1 << 20):
            pass
    except (http.client.HTTPException, OSError):
        return 0
    finally:
        connection.close()
    return response.status


if __name__ == "__main__":
    main()
