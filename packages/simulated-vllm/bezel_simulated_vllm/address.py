"""Address at which the server listens: a port, or in a container of localcloud the socket file of its port."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bezel_base.loopback.listeners import bind, bind_path, listen_error

if TYPE_CHECKING:
    import socket

    from bezel_base.errors import UserError


@dataclass(frozen=True)
class Address:
    """One address.

    Attributes:
        host: host in the server's own words, e.g. 0.0.0.0.
        port: port in the server's own words; 0 for any that is free.
        path: socket file that stands for both, "" for TCP; it keeps the `:PORT` at its end.
    """

    host: str
    port: int
    path: str = ""

    def bind(self) -> socket.socket:
        """Return a socket that owns the address and does not listen yet.

        Raises:
            UserError: the port is taken or not allowed to this user, or the host is not one of this machine.
        """
        if self.path:
            return bind_path(self.path)
        try:
            return bind(self.host, self.port)
        except OSError as error:
            raise self.error(error) from None

    def error(self, error: OSError) -> UserError:
        """Return the user's error of an address where nothing can listen."""
        return listen_error(error, self.port, host=self.host)


def listen_address(listen: str, container_host: str) -> Address:
    """Return the address of `HOST:PORT`, or of `unix:PATH:PORT`, whose host is the container's.

    Raises:
        ValueError: the port is not a number.
    """
    host, _, port = listen.rpartition(":")
    if listen.startswith("unix:"):
        return Address(container_host, int(port), listen.removeprefix("unix:"))
    return Address(host, int(port))
