"""The TLS setting of HTTP clients that stay on the loopback."""

from __future__ import annotations

import ssl

# Everything here is plain HTTP on the loopback: an HTTP client need not load the machine's certificates for it.
NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
