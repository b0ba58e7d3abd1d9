"""Reachability of a stack's address, and what to do where callers get no answer: records, or its certificate.

Leaves the name and the handshake to `bezel.diagnosis.address_reach`. On localcloud the name is in no DNS: localcloud
says where its balancer listens.
"""

import socket
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from bezel.diagnosis.address_reach import PORT, Resolve, handshake_problem, place_of
from bezel.operations.address.certificate import certificate_of
from bezel.operations.context import Context
from bezel.operations.deployment.address import DeployedAddress
from bezel.operations.redaction import clean_text
from bezel.rest.connect_to import ConnectTo
from bezel_base.loopback.web_pages import is_loopback

_TEXT = 300


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
    context: Context, address: DeployedAddress, stack: str, resolve: Resolve = socket.getaddrinfo, port: int = PORT
) -> Reachability:
    """What a caller of an address meets. Never raises for what does not answer.

    Args:
        context: The context.
        address: The address.
        stack: Name of the stack, for repairs.
        resolve: As of `socket.getaddrinfo`.
        port: Port of the address.
    """
    if is_loopback(urlsplit(context.address("CLOUD_RUN_V2")).netloc):
        own_place = localcloud_place(context.environ.get("GOOGLE_APPLICATION_CREDENTIALS", ""), address.domain)
        why = "" if own_place else f"no load balancer of localcloud listens for {address.domain}"
        place = own_place or ConnectTo(address.domain, address.ip, port)
    else:
        place, why = place_of(address.domain, address.ip, resolve, port)
    if why:
        records = ", ".join(record.line() for record in address.records) or f"{address.domain}. A {address.ip}"
        return Reachability(why, f"set the records of the domain: {records}")
    problem = clean_text(handshake_problem(place), _TEXT)
    if not problem:
        return Reachability(place=place if place.authority else None)
    certificate = certificate_of(context, address, stack)
    if certificate.state == "active":
        return Reachability(problem, "wait: its certificate is active, and a new balancer answers some minutes later")
    return Reachability(f"its certificate is {certificate.line()} ({problem})", certificate.repair or "")


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
