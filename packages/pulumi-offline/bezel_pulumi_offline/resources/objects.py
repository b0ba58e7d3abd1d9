"""Resource type of Cloud Storage's objects, with small content or a small file."""

import base64
import json
import re
import secrets
from collections.abc import Collection, Mapping
from hashlib import md5
from pathlib import Path
from typing import Any
from urllib.parse import quote

from bezel_pulumi_offline.google.errors import ProviderError, UnreadableError, failing
from bezel_pulumi_offline.lifecycle.resource import GO_CLIENT, LOCAL, Operations, fill
from bezel_pulumi_offline.lifecycle.values import ARCHIVE, SIGNATURE, UNKNOWN, Properties, unknown

_CHECKSUMS: dict[str, str] = {}  # by the engine's hash of an asset
_OF_CONTENT = ("md5hash", "crc32c", "generation")
_TAGS = rb"<(?:!DOCTYPE HTML|HTML|HEAD|SCRIPT|IFRAME|H1|DIV|FONT|TABLE|A|STYLE|TITLE|B|BODY|BR|P)[ >]|<!--"
_STARTS = {
    b"%PDF-": "application/pdf",
    b"\xef\xbb\xbf": "text/plain; charset=utf-8",
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
    b"\x1f\x8b\x08": "application/x-gzip",
    b"PK\x03\x04": "application/zip",
    b"\0asm": "application/wasm",
}


class Object(Operations):
    """Operations of an object: small content or a file, uploaded as a whole."""

    @staticmethod
    def derive(planned: Properties, prior: Mapping[str, Any] | None) -> None:
        """Compute the checksum of the upload, so that a changed file shows as a change and nothing else does.

        The published provider's preview of a changed content leaves its checksums and the generation unknown.
        """
        checksum = _checksum(planned) if prior is not None else None
        if prior is not None and checksum is not None:
            planned["detectMd5hash"] = checksum
            if checksum != prior.get("md5hash"):
                planned.update(dict.fromkeys(_OF_CONTENT, UNKNOWN))

    @staticmethod
    def look(inputs: Mapping[str, Any]) -> None:
        """Remember the checksum of a file: in a Diff the engine names it by its hash only."""
        _checksum(inputs)

    def create(self, planned: Mapping[str, Any]) -> tuple[str, Properties]:
        """Upload the object."""
        self._upload(planned)
        return self.read_created(fill(self.kind.id, planned), planned)

    def identify(self, resource_id: str, values: Mapping[str, Any]) -> str:
        """Refuse an import, as the provider does: the id does not show where the bucket's name ends."""
        del values
        raise ProviderError(f"object {resource_id!r} cannot be imported: its id does not tell bucket and name apart.")

    def read(self, resource_id: str, values: Mapping[str, Any]) -> Properties | None:
        """Read the object's metadata (not its content)."""
        answer = super().read(resource_id, {**values, "name": quote(str(values["name"]), safe="")})
        if answer is None:
            return None
        digest = str(answer.get("md5Hash", ""))
        shown = {
            "md5hexhash": base64.b64decode(digest).hex(),
            "outputName": answer.get("name"),
            "detectMd5hash": digest,
        }
        return {**answer, **shown}

    def update(
        self, resource_id: str, planned: Mapping[str, Any], prior: Mapping[str, Any], changed: Collection[str]
    ) -> Properties:
        """Upload the object again where its content changed, otherwise write it back with its holds."""
        del prior
        if {"content", "detectMd5hash", "sourceMd5hash"} & set(changed):
            # The state has the version of the key, which no upload may name.
            self._upload({**planned, "kmsKeyName": None})
        elif set(changed) - LOCAL:
            written: Properties = {}
            with failing(f"Error retrieving object during update {planned['name']}"):
                written = dict(self.call("GET", self._path(planned), GO_CLIENT))
            for name in {"eventBasedHold", "temporaryHold"} & set(changed):
                written[name] = bool(planned.get(name))
            content = {name: value for name, value in written.items() if value is not False}
            with failing(f"Error updating object {planned['name']}"):
                self.call("PUT", self._path(planned), GO_CLIENT, content)
        return self.expect(resource_id, planned)

    def delete(self, resource_id: str, prior: Mapping[str, Any]) -> None:
        """Delete the object."""
        del resource_id
        with failing(f"Error deleting contents of object {prior['name']}", unless_absent=True):
            self.call("DELETE", self._path(prior), GO_CLIENT)

    def _path(self, values: Mapping[str, Any]) -> str:
        return f"b/{values['bucket']}/o/{quote(str(values['name']), safe='')}"

    def _upload(self, planned: Mapping[str, Any]) -> None:
        content = _content(planned)
        if content is None:
            raise ProviderError('Error, either "content" or "source" must be specified')
        name = str(planned["name"])
        stated = planned.get("contentType")
        kind = stated if stated and not unknown(stated) else sniff_type(content)
        sent = {key: value for key, value in self.body(planned).items() if key not in ("name", "contentType")}
        if stated and not unknown(stated):
            sent["contentType"] = stated
        mark = secrets.token_hex(30)
        head = (
            f"--{mark}\r\nContent-Type: application/json\r\n\r\n{json.dumps(sent)}\r\n"
            f"--{mark}\r\nContent-Type: {kind}\r\n\r\n"
        )
        data = head.encode() + content + f"\r\n--{mark}--\r\n".encode()
        query = {**GO_CLIENT, "name": name, "uploadType": "multipart"}
        with failing(f"Error uploading object {name}"):
            self.cloud.upload(
                f"b/{planned['bucket']}/o", query, data, f"multipart/related; boundary={mark}", until=self.until
            )


def _content(values: Mapping[str, Any]) -> bytes | None:
    """Return the bytes to upload, or None where they are not known (yet)."""
    source, content = values.get("source"), values.get("content")
    if isinstance(source, Mapping) and source.get(SIGNATURE) == ARCHIVE:
        raise ProviderError(
            "The stand-in provider does not upload archives. Write the archive to a file, and set source to that file."
        )
    if isinstance(source, Mapping):
        content = source.get("text", content)
        source = source.get("path")
    if isinstance(content, str) and not unknown(content):
        return content.encode()
    if isinstance(source, str) and not unknown(source):
        try:
            return Path(source).read_bytes()
        except OSError as error:
            raise UnreadableError(
                f"{source} cannot be uploaded: {error.strerror}. Correct the object's source."
            ) from None
    return None


def sniff_type(content: bytes) -> str:
    """Return the type of a content as the provider's client finds it, by its first bytes (Go, net/http/sniff.go)."""
    head = content[:512]
    for start, kind in _STARTS.items():
        if head.startswith(start):
            return kind
    text = head.lstrip(b"\t\n\x0c\r ")
    if re.match(_TAGS, text, re.IGNORECASE):
        return "text/html; charset=utf-8"
    if text.startswith(b"<?xml"):
        return "text/xml; charset=utf-8"
    binary = re.search(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]", head)
    return "application/octet-stream" if binary else "text/plain; charset=utf-8"


def _checksum(values: Mapping[str, Any]) -> str | None:
    """Return the checksum of the bytes to upload, or None where they are not known (yet)."""
    source = values.get("source")
    digest = source.get("hash") if isinstance(source, Mapping) else None
    try:
        content = _content(values)
    except UnreadableError:
        content = None  # the published provider passes over it until the upload
    if content is None:
        return _CHECKSUMS.get(str(digest))
    checksum = base64.b64encode(md5(content, usedforsecurity=False).digest()).decode()
    if digest:
        _CHECKSUMS[str(digest)] = checksum
    return checksum
