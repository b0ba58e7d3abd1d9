"""Reachability of an address by its name: the DNS leads to its IP address, which shows a certificate for the name.

Connects, and ends the connection after the handshake: a request could start an instance, which costs money. An address
of this machine's loopback, as the embedded cloud has them, is in no DNS: what listens for it, and the authority of its
certificates, are asked at the URL in BEZEL_BALANCERS.
"""

import os
import socket
import ssl
from collections.abc import Callable, Sequence
from ipaddress import ip_address
from typing import Any

from bezel.rest import GoogleClient, url_for_token
from bezel.rest.connect_to import ConnectTo
from bezel.rest.transport import certificates, reason_of

SECONDS = 5.0
PORT = 443
Resolve = Callable[..., Sequence[tuple[Any, ...]]]


def place_of(domain: str, ip: str, resolve: Resolve = socket.getaddrinfo, port: int = PORT) -> tuple[ConnectTo, str]:
    """Where an address is reached, and why its name does not lead there, "" where it does.

    Args:
        domain: The name.
        ip: IP address of its load balancer, "" if it is not known.
        resolve: As of `socket.getaddrinfo`.
        port: Port of the address.
    """
    place = ConnectTo(domain, ip or domain, port)
    if ip and ip_address(ip).is_loopback:
        return _local_place(place)
    try:
        resolved = {str(row[4][0]) for row in resolve(domain, port, type=socket.SOCK_STREAM)}
    except OSError as error:
        return place, f"the DNS has no address of {domain} ({error.strerror or error})"
    if ip and ip not in resolved:
        return place, f"{domain} leads to {', '.join(sorted(resolved))}, not to {ip}"
    return place, ""


def _local_place(place: ConnectTo) -> tuple[ConnectTo, str]:
    """Where a load balancer of this machine listens for a name, and why none does; the place itself if none is known.

    Raises:
        RestError: It cannot be asked.
    """
    url = os.environ.get("BEZEL_BALANCERS", "")
    if not url:
        return place, ""
    with GoogleClient(timeout_seconds=SECONDS, deadline_seconds=SECONDS) as client:
        shown = client.get(url_for_token(url, "BEZEL_BALANCERS"))
    for each in shown.get("balancers") or ():
        if place.domain in each["domains"] and each["scheme"] == "https":
            host, _, port = str(each["at"]).rpartition(":")
            return ConnectTo(place.domain, host, int(port), str(shown["authority"])), ""
    return place, f"no load balancer of this machine listens for {place.domain}"


def handshake_problem(place: ConnectTo) -> str:
    """What is wrong with a connection to an address; "" for nothing."""
    context = place.context() if place.authority else certificates()
    try:
        with (
            socket.create_connection((place.host, place.port), SECONDS) as plain,
            context.wrap_socket(plain, server_hostname=place.domain),
        ):
            return ""
    except (ConnectionResetError, ssl.SSLEOFError, ssl.SSLZeroReturnError):
        return "no connection with TLS: it is closed before a certificate is shown"
    except OSError as error:  # as every error of ssl is
        return f"no connection with TLS: {reason_of(error)}"
