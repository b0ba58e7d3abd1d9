"""Connections to another place than the name of a URL leads to, as of `curl --connect-to`.

For load balancers of the embedded cloud: their domains are in no public DNS, and its own authority signs their
certificates. Everything but the place is as ever: the `Host` of a request, the name in TLS, the verification.
"""

import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import httpx


@dataclass(frozen=True)
class ConnectTo:
    """A place that answers for a domain.

    Attributes:
        domain: The name in URLs.
        host: Address to connect to.
        port: Port to connect to.
        authority: PEM file of the authority that signs its certificate, beside the known ones; "" for none.
    """

    domain: str
    host: str
    port: int = 443
    authority: str = ""

    def context(self) -> ssl.SSLContext:
        """The context of a client."""
        context = ssl.create_default_context()
        if self.authority:
            context.load_verify_locations(self.authority)
        return context

    def client(self, timeout_seconds: float) -> "httpx.Client":
        """A client whose requests to the domain go to the place; `timeout_seconds` as of `new_client`."""
        import httpx

        def redirect(request: httpx.Request) -> None:
            if request.url.host == self.domain:
                request.url = request.url.copy_with(host=self.host, port=self.port)
                request.extensions = {**request.extensions, "sni_hostname": self.domain}

        return httpx.Client(
            verify=self.context(), timeout=timeout_seconds, trust_env=False, event_hooks={"request": [redirect]}
        )
