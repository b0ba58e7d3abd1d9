"""Reachability of a stack's address: its name leads to it, and it shows a certificate for the name.

Connects and ends the connection after the handshake: a request could start an instance, which costs money. Where there
is no answer, the certificate says why. On localcloud the name is in no DNS: localcloud says where its balancer listens.
"""

import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bezel.operations.address.certificate import certificate_of
from bezel.operations.context import Context
from bezel.operations.deployment.address import DeployedAddress
from bezel.operations.redaction import clean_text
from bezel.rest.connect_to import ConnectTo
from bezel.rest.transport import certificates, reason_of
from bezel_base.loopback.web_pages import is_loopback

_SECONDS = 5.0
_PORT = 443
_TEXT = 300
Resolve = Callable[..., Sequence[tuple[Any, ...]]]


@dataclass(frozen=True)
class Reachability:
    """What a caller of an address meets.

    Attributes:
        why: Why callers get no answer at it, "" where they get one.
        repair: What to do about that, "" where they get one.
        place: Where to connect, if not to what the name leads to.
    """

    why: str = ""
    repair: str = ""
    place: ConnectTo | None = None


def reach_of(
    context: Context, address: DeployedAddress, stack: str, resolve: Resolve = socket.getaddrinfo, port: int = _PORT
) -> Reachability:
    """What a caller of an address meets. Never raises for what does not answer.

    Args:
        context: The context.
        address: The address.
        stack: Name of the stack, for repairs.
        resolve: As of `socket.getaddrinfo`.
        port: Port of the address.
    """
    place, why = _place(context, address, resolve, port)
    if place is None:
        records = ", ".join(record.line() for record in address.records) or f"{address.domain}. A {address.ip}"
        return Reachability(why, f"set the records of the domain: {records}")
    problem = _handshake(place, is_known=not place.authority)
    if not problem:
        return Reachability(place=place if place.authority else None)
    certificate = certificate_of(context, address, stack)
    if certificate.state == "active":
        return Reachability(problem, "wait: its certificate is active, and a new balancer answers some minutes later")
    return Reachability(f"its certificate is {certificate.line()} ({problem})", certificate.repair or "")


def _place(context: Context, address: DeployedAddress, resolve: Resolve, port: int) -> tuple[ConnectTo | None, str]:
    """Where the address is reached, or why it is not."""
    if is_loopback(urlsplit(context.address("CLOUD_RUN_V2")).netloc):
        place = localcloud_place(context.environ.get("GOOGLE_APPLICATION_CREDENTIALS", ""), address.domain)
        return place, "" if place else f"no load balancer of localcloud listens for {address.domain}"
    try:
        resolved = {str(row[4][0]) for row in resolve(address.domain, port, type=socket.SOCK_STREAM)}
    except OSError as error:
        return None, f"the DNS has no address of {address.domain} ({error.strerror or error})"
    if address.ip and address.ip not in resolved:
        return None, f"{address.domain} leads to {', '.join(sorted(resolved))}, not to {address.ip}"
    return ConnectTo(address.domain, address.ip or address.domain, port), ""


def localcloud_place(key_file: str, domain: str) -> ConnectTo | None:
    """Where localcloud's balancer for a domain listens; None where it has none, or does not run.

    Args:
        key_file: The deployer's key file, which is in localcloud's folder.
        domain: The domain.
    """
    from bezel_localcloud import control, control_client  # late: only the embedded cloud needs them

    endpoint = control.status(Path(key_file).parent) if key_file else None
    shown = {} if endpoint is None else control_client.balancers(endpoint)
    for balancer in shown.get("balancers") or ():
        if domain in balancer["domains"] and balancer["scheme"] == "https":
            host, _, listening = str(balancer["at"]).rpartition(":")
            return ConnectTo(domain, host, int(listening), str(shown["authority"]))
    return None


def _handshake(place: ConnectTo, *, is_known: bool) -> str:
    """What is wrong with a connection to the address; "" for nothing."""
    context = certificates() if is_known else place.context()
    try:
        with (
            socket.create_connection((place.host, place.port), _SECONDS) as plain,
            context.wrap_socket(plain, server_hostname=place.domain),
        ):
            return ""
    except OSError as error:  # as every error of ssl is
        return clean_text(f"no connection with TLS: {reason_of(error)}", _TEXT)
