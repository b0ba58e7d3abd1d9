"""Time that localcloud's load balancer adds to a request, and that many streams at once wait for an event.

    .venv/bin/python -m tools.measure.requests.balancer [--requests 300] [--rounds 7] [--streams 1000]

A localcloud with a tiny server in each of two regions; everything is on loopback and ends by itself. Small requests go
over a kept connection each to the service's own port, to the load balancer over http and over https, in turn, so that
all of them have the same load of the machine beside them. The streams are all open, with a first event each, when one
request lets their next events go. Client and servers run before the machine's other work, where this user may set that
(root); else figures depend on it. Its load is printed beside them.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import os
import resource
import socket
import ssl
import statistics
import sys
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import tools.package_tests  # noqa: F401 - it finds the helpers
from bezel_localcloud import control
from localcloud_support.balanced import COMPUTE, FAR, NEAR, Balanced
from localcloud_support.balancer_programs import DOMAIN
from localcloud_support.client import FAKE_DAEMON, Client, until
from localcloud_support.stream_load import StreamLoad
from tools.measure.localcloud import prefer
from tools.measure.own_cloud import own_cloud

if TYPE_CHECKING:
    from pathlib import Path

SPEED, IDLE = "10000", "900"
_WARM = 50  # requests of each kind before those that count
_CERTIFICATE = f"{COMPUTE}/global/sslCertificates/cert"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=300, help="requests of a kind in a round (default: 300)")
    parser.add_argument("--rounds", type=int, default=7, help="rounds over all kinds (default: 7)")
    parser.add_argument("--streams", type=int, default=1000, help="streams at once, at most 1,900 (default: 1000)")
    chosen = parser.parse_args()
    files = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(files[1], 16_384), files[1]))
    print(f"{os.cpu_count()} cores; load of the last minute {os.getloadavg()[0]:.2f}")
    with own_cloud() as (_, directory):
        balanced = start(directory)
        for pid in pids_of(balanced):
            prefer(pid)
        show_requests(connections(balanced), chosen.requests, chosen.rounds)
        asyncio.run(show_streams(balanced, min(chosen.streams, 1900)))
    print(f"load of the last minute {os.getloadavg()[0]:.2f}")


def start(directory: Path) -> Any:
    """A localcloud with a service in two regions behind a load balancer whose certificate is issued."""
    command = [sys.executable, str(FAKE_DAEMON), str(directory), SPEED, IDLE]
    make: Any = Balanced
    balanced = make(Client(control.launch(directory, command)), {"interval": {"seconds": 1}})
    balanced.add_record()
    until(lambda: balanced.client.get(_CERTIFICATE).json()["managed"]["status"] == "ACTIVE")
    return balanced


def pids_of(balanced: Any) -> list[int]:
    """The processes of a request: this one, localcloud, and the server in each region."""
    servers = []
    for region in (NEAR, FAR):
        with balanced.front(region) as direct:
            servers.append(direct.get("/x").json()["pid"])
    return [os.getpid(), balanced.client.endpoint.pid, *servers]


def connections(balanced: Any) -> dict[str, tuple[http.client.HTTPConnection, dict[str, str]]]:
    """What a request goes to -> a connection, and the headers of a request."""
    uri = balanced.client.get(f"{balanced.services(NEAR)}/llm").json()["uri"]
    direct = urlsplit(uri)
    listeners = {scheme: balanced.listeners()[scheme]["at"].split(":") for scheme in ("http", "https")}
    authority = ssl.create_default_context(cafile=balanced.client.get("/localcloud/balancers").json()["authority"])
    plain, secure = (http.client.HTTPConnection(host, int(port)) for host, port in listeners.values())
    secure.sock = authority.wrap_socket(socket.create_connection((secure.host, secure.port)), server_hostname=DOMAIN)
    secure.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    service = {"host": direct.netloc, "authorization": f"Bearer {balanced.client.identity(uri)}"}
    address = {"host": DOMAIN, "authorization": f"Bearer {balanced.token}"}
    return {
        "the service's own port": (http.client.HTTPConnection(direct.hostname or "", direct.port), service),
        "the load balancer, http": (plain, address),
        "the load balancer, https": (secure, address),
    }


def show_requests(
    kinds: dict[str, tuple[http.client.HTTPConnection, dict[str, str]]], requests: int, rounds: int
) -> None:
    """Print the median of small requests to each, and what it is above the first one's."""
    times: dict[str, list[float]] = {name: [] for name in kinds}
    for number in range(rounds + 1):
        for name, (connection, headers) in kinds.items():
            seconds = [one_request(connection, headers) for _ in range(requests if number else _WARM)]
            times[name] += seconds if number else []
    medians = {name: statistics.median(each) * 1000 for name, each in times.items()}
    first = next(iter(medians.values()))
    for name, median in medians.items():
        print(f"{name:<26} median {median:6.3f} ms of {len(times[name]):,}; {median - first:+.3f} ms")


def one_request(connection: http.client.HTTPConnection, headers: dict[str, str]) -> float:
    """Seconds of a small GET."""
    begun = time.perf_counter()
    connection.putrequest("GET", "/x", skip_host=True)
    for name, value in headers.items():
        connection.putheader(name, value)
    connection.endheaders()
    response = connection.getresponse()
    response.read()
    if response.status != http.HTTPStatus.OK:
        sys.exit(f"GET /x: {response.status}")
    return time.perf_counter() - begun


async def show_streams(balanced: Any, count: int) -> None:
    """Print how long streams, half of them in each region, wait for an event once it is sent."""
    make: Any = StreamLoad
    load = make(balanced.listeners()["http"]["at"], DOMAIN, balanced.token)
    begun = time.perf_counter()
    streams = await load.begin_all(count // 2, "/events")
    balanced.move("europe")
    streams += await load.begin_all(count - count // 2, "/events")
    print(f"{len(streams):,} streams open, with an event each, after {time.perf_counter() - begun:.2f} s")
    for name in ("second", "third"):
        begun = time.perf_counter()
        for region in (NEAR, FAR):
            with balanced.front(region) as direct:
                direct.get("/next").raise_for_status()
        await load.read_event(streams, name)
        print(f"the {name} event of all of them after {time.perf_counter() - begun:.2f} s")
    for _, writer in streams:
        writer.close()


if __name__ == "__main__":
    main()
