"""Request to the APIs whose headers are found in a table: Starlette goes through all of them at each look-up.

A small request looks up a dozen, most of which it does not have.
"""

from collections.abc import Sequence
from typing import Any

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import Receive, Scope, Send


class HeaderTable(Headers):
    """Headers of a request; of one that came several times the first counts, as in `Headers`."""

    def __init__(self, raw: Sequence[tuple[bytes, bytes]]) -> None:
        """Make the table of names in lower case and values."""
        super().__init__(raw=list(raw))
        self._values = {name.decode("latin-1"): value.decode("latin-1") for name, value in reversed(raw)}

    def __getitem__(self, key: str) -> str:
        return self._values[key.lower()]

    def __contains__(self, key: Any) -> bool:
        return key.lower() in self._values

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a header, or the default."""
        return self._values.get(key.lower(), default)


class ApiRequest(Request):
    """A request with a table of its headers."""

    def __init__(self, scope: Scope, receive: Receive, *send: Send) -> None:
        """As `Request`."""
        super().__init__(scope, receive, *send)
        self._table = HeaderTable(scope["headers"])

    @property
    def headers(self) -> HeaderTable:
        """The headers."""
        return self._table
