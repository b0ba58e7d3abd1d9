"""Objects of one bucket of Cloud Storage, by the JSON API: read when changed, listed, written.

Blocking, with the standard library: called in threads, one call at a time. Source: Cloud Storage's JSON API, objects:
get (alt=media, ifGenerationNotMatch), list, insert (uploadType=media), November 2026.
"""

import http.client
import json
import ssl
import time
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import quote, urlsplit

from bezel_door.google.metadata import GoogleError

_DEFAULT: Final = "https://storage.googleapis.com/storage/v1/"
_SECONDS: Final = 5.0
_MOST: Final = 4 * 1024 * 1024 + 1
_SPARE: Final = 120.0


class Bucket:
    """One bucket, with the identity of this container."""

    def __init__(
        self, name: str, token: Callable[[], tuple[str, float]], environ: Mapping[str, str], context: ssl.SSLContext
    ) -> None:
        """Connect to nothing yet.

        Args:
            name: The bucket's name.
            token: Returns an access token and the seconds for which it is valid.
            environ: Names the interface's address in `GOOGLE_STORAGE_CUSTOM_ENDPOINT` where it is not Google's.
            context: TLS.
        """
        parts = urlsplit(environ.get("GOOGLE_STORAGE_CUSTOM_ENDPOINT") or _DEFAULT)
        self._parts, self._context, self._new_token = parts, context, token
        self._objects = f"{parts.path.rstrip('/')}/b/{quote(name, safe='')}/o"
        self._uploads = f"/upload{self._objects}"
        self._token, self._token_ends = "", 0.0
        self._connection: http.client.HTTPConnection | None = None

    def read(self, name: str, generation: str = "") -> tuple[str, bytes] | None:
        """Generation and content of an object; None where it still has this generation.

        An object that does not exist has the generation "0" and no content.

        Raises:
            GoogleError: It cannot be read.
        """
        condition = f"&ifGenerationNotMatch={generation}" if generation else ""
        status, headers, content = self._send("GET", f"{self._objects}/{quote(name, safe='')}?alt=media{condition}")
        if status == 304:
            return None
        if status == 404 and b"no such object" in content.lower():
            return None if generation == "0" else ("0", b"")
        if status != 200:
            raise GoogleError(f"Cloud Storage answered HTTP {status} for {name}")
        return headers.get("x-goog-generation", ""), content

    def generations(self, prefix: str) -> dict[str, str]:
        """The generation of each object whose name begins so.

        Raises:
            GoogleError: They cannot be listed.
        """
        generations: dict[str, str] = {}
        page = ""
        while True:
            query = f"prefix={quote(prefix, safe='')}&fields=items(name,generation),nextPageToken{page}"
            status, _, content = self._send("GET", f"{self._objects}?{query}")
            if status != 200:
                raise GoogleError(f"Cloud Storage answered HTTP {status} for the list of {prefix}")
            answer = _document(content)
            try:
                generations |= {str(item["name"]): str(item["generation"]) for item in answer.get("items", [])}
            except (TypeError, KeyError):
                raise GoogleError(f"Cloud Storage answered without names for the list of {prefix}") from None
            if not answer.get("nextPageToken"):
                return generations
            page = f"&pageToken={quote(str(answer['nextPageToken']), safe='')}"

    def write(self, name: str, content: bytes) -> None:
        """Write an object, whatever it was before.

        Raises:
            GoogleError: It cannot be written.
        """
        status, _, _ = self._send("POST", f"{self._uploads}?uploadType=media&name={quote(name, safe='')}", content)
        if status != 200:
            raise GoogleError(f"Cloud Storage answered HTTP {status} to the write of {name}")

    def close(self) -> None:
        """Close the connection; the next call opens another."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _send(self, method: str, target: str, body: bytes | None = None) -> tuple[int, dict[str, str], bytes]:
        status, headers, content = self._once(method, target, body)
        if status == 401:
            self._token = ""
            status, headers, content = self._once(method, target, body)
        return status, headers, content

    def _once(self, method: str, target: str, body: bytes | None) -> tuple[int, dict[str, str], bytes]:
        headers = {"Authorization": f"Bearer {self._current_token()}"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        try:
            connection = self._open_connection()
            connection.request(method, target, body, headers)
            response = connection.getresponse()
            content = response.read(_MOST)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise GoogleError(f"Cloud Storage does not answer: {type(error).__name__}") from None
        if len(content) == _MOST:
            self.close()
        return response.status, {name.lower(): value for name, value in response.getheaders()}, content

    def _open_connection(self) -> http.client.HTTPConnection:
        if self._connection is None:
            host = self._parts.netloc
            self._connection = (
                http.client.HTTPSConnection(host, timeout=_SECONDS, context=self._context)
                if self._parts.scheme == "https"
                else http.client.HTTPConnection(host, timeout=_SECONDS)
            )
        return self._connection

    def _current_token(self) -> str:
        if not self._token or time.time() > self._token_ends - _SPARE:
            self._token, valid = self._new_token()
            self._token_ends = time.time() + valid
        return self._token


def _document(content: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(content)
    except ValueError:
        raise GoogleError("Cloud Storage answered without JSON") from None
    return answer if isinstance(answer, dict) else {}
