"""TLS over bytes in memory: the socket below is read with the kernel's receive stamps. Verification is always on."""

import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Final, cast

from bezel_base.errors import Problem, UserError

# A record holds at most 16 KiB; one buffer for all connections, as a new one for each record would cost more than it.
_BUFFER: Final = memoryview(bytearray(16 * 1024))


def trusting(ca_file: str) -> ssl.SSLContext:
    """Return a client's context that trusts the authorities of a PEM file, or of the machine where it is "".

    Raises:
        UserError: The file holds no certificate.
    """
    try:
        context = ssl.create_default_context(cafile=ca_file or None)
    except (OSError, ssl.SSLError) as error:
        reason = "holds no certificate" if Path(ca_file).is_file() else "cannot be read"
        consequence = f"the file {reason} ({error}), so no server could be trusted."
        raise UserError(Problem("--ca-file", ca_file, consequence, "give a PEM file of the authority.")) from None
    context.set_alpn_protocols(["http/1.1"])
    return context


class Tls:
    """One side of one connection: plain bytes on one end, records on the other."""

    __slots__ = ("_in", "_object", "_out")
    Error: Final = ssl.SSLError

    def __init__(self, context: ssl.SSLContext, host: str) -> None:
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._object = context.wrap_bio(self._in, self._out, server_hostname=host)

    def take(self, records: memoryview | bytes) -> None:
        """Take bytes that the socket received."""
        self._in.write(records)

    def records(self) -> bytes:
        """Return the bytes to send, b"" for none."""
        return self._out.read() if self._out.pending else b""

    def shaken(self) -> bool:
        """Continue the handshake; return whether it is done.

        Raises:
            ssl.SSLError: The handshake failed; `SSLCertVerificationError` where the certificate is not trusted.
        """
        try:
            self._object.do_handshake()
        except ssl.SSLWantReadError:
            return False
        return True

    def encrypt(self, data: bytes) -> bytes:
        """Return the records that carry these bytes."""
        self._object.write(data)
        return self._out.read()

    def plain(self) -> Iterator[memoryview]:
        """Yield the decrypted bytes, each piece valid until the next; an empty one means that the peer has closed.

        Raises:
            ssl.SSLError: The records are broken.
        """
        try:
            while self._in.pending or self._object.pending():
                # With a buffer it returns a count, whatever its stub says.
                size = cast("int", self._object.read(len(_BUFFER), _BUFFER))
                yield _BUFFER[:size]
                if not size:
                    return
        except ssl.SSLWantReadError:
            return
        except ssl.SSLZeroReturnError:
            yield _BUFFER[:0]
