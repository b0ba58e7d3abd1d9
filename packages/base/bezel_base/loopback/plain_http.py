"""The TLS setting of HTTP clients that stay on the loopback."""

import ssl

# These clients speak plain HTTP on the loopback, so they need not load the machine's certificates.
NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
