"""`gsutil` on a machine, as far as a startup script uses it: `rsync -r` from or to a bucket, and `du -s`.

Calls Cloud Storage over HTTP with the token of the machine's account, as the real one does.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import quote, urlencode

_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))
_SECONDS = 60


def main() -> int:
    """Execute the command line and return the exit status."""
    match [word for word in sys.argv[1:] if word not in {"-m", "-q"}]:
        case ["rsync", "-r", source, target] if source.startswith("gs://"):
            _download(source, Path(target))
        case ["rsync", "-r", source, target] if target.startswith("gs://"):
            _upload(Path(source), target)
        case ["du", "-s", address]:
            print(f"{sum(int(item['size']) for item in _objects(address))}  {address}")
        case words:
            _give_up(f"CommandException: localcloud's gsutil does not support: {' '.join(words)}")
    return 0


def _download(source: str, target: Path) -> None:
    if not target.is_dir():
        _give_up(f"CommandException: arg ({target}) does not name a directory, bucket, or bucket subdir.")
    bucket, prefix = _place(source)
    for item in _objects(source):
        path = target / item["name"].removeprefix(prefix)
        if item["name"].endswith("/") or (path.is_file() and _hash(path) == item["md5Hash"]):
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f"{path.name}_.gstmp")
        part.write_bytes(_ask(f"b/{bucket}/o/{quote(item['name'], safe='')}?alt=media"))
        if _hash(part) != item["md5Hash"]:
            _give_up(f"HashMismatchException: gs://{bucket}/{item['name']}")
        part.replace(path)


def _upload(source: Path, target: str) -> None:
    bucket, prefix = _place(target)
    there = {item["name"]: item["md5Hash"] for item in _list_objects(target)}
    for path in sorted(source.rglob("*")):
        name = f"{prefix}{path.relative_to(source).as_posix()}"
        if path.is_file() and there.get(name) != _hash(path):
            query = urlencode({"uploadType": "media", "name": name})
            _ask(f"b/{bucket}/o?{query}", path.read_bytes())


def _objects(address: str) -> list[dict[str, Any]]:
    items = _list_objects(address)
    if not items:
        _give_up(f"CommandException: arg ({address}) does not name a directory, bucket, or bucket subdir.")
    return items


def _list_objects(address: str) -> list[dict[str, Any]]:
    bucket, prefix = _place(address)
    items: list[dict[str, Any]] = []
    token = ""
    while True:
        query = urlencode({"prefix": prefix, "pageToken": token} if token else {"prefix": prefix})
        page = json.loads(_ask(f"b/{bucket}/o?{query}"))
        items += page.get("items", [])
        token = page.get("nextPageToken", "")
        if not token:
            return items


def _place(address: str) -> tuple[str, str]:
    """(bucket, prefix that ends with a slash or is empty)."""
    bucket, _, folder = address.removeprefix("gs://").partition("/")
    folder = folder.strip("/")
    return bucket, f"{folder}/" if folder else ""


def _ask(path: str, content: bytes | None = None) -> bytes:
    base = os.environ["GOOGLE_STORAGE_CUSTOM_ENDPOINT"]
    if content is not None:
        base = base.replace("/storage/v1/", "/upload/storage/v1/")
    request = urllib.request.Request(f"{base}{path}", content, {"Authorization": f"Bearer {_token()}"})  # noqa: S310
    if content is not None:
        request.add_header("Content-Type", "application/octet-stream")
    try:
        with _OPENER.open(request, timeout=_SECONDS) as reply:
            return bytes(reply.read())
    except urllib.error.HTTPError as error:
        text = error.read().decode(errors="replace")
        with contextlib.suppress(ValueError, LookupError, TypeError):
            text = json.loads(text)["error"]["message"]
        kind = {403: "AccessDeniedException", 404: "BucketNotFoundException"}.get(error.code, "BadRequestException")
        _give_up(f"{kind}: {error.code} {text}")
    except OSError as error:
        _give_up(f"INFO: Caught socket error, not retrying any more: {error}")


def _token() -> str:
    host = os.environ["GCE_METADATA_HOST"]
    url = f"http://{host}/computeMetadata/v1/instance/service-accounts/default/token"
    request = urllib.request.Request(url, headers={"Metadata-Flavor": "Google"})
    try:
        with _OPENER.open(request, timeout=_SECONDS) as reply:
            return str(json.load(reply)["access_token"])
    except OSError:
        _give_up("ServiceException: 401 Anonymous caller does not have access: the machine has no service account.")


def _hash(path: Path) -> str:
    return base64.b64encode(hashlib.md5(path.read_bytes(), usedforsecurity=False).digest()).decode()


def _give_up(text: str) -> NoReturn:
    sys.stderr.write(f"{text}\n")
    sys.exit(1)


if __name__ == "__main__":
    sys.exit(main())
