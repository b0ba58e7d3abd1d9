"""Keys of a cloud that are made once per process: a pair of RSA keys takes an eighth of a daemon's start."""

import json
from functools import cache
from pathlib import Path

from bezel_base.atomic_write import write_whole
from bezel_localcloud.access.credentials import keys
from bezel_localcloud.core.paths import Paths


@cache
def _pem(_owner: str) -> str:
    return keys.private_pem(keys.new_key())


def write_keys(directory: Path) -> None:
    """Put an issuer's and a deployer's key into a new directory, as an earlier start would have left them."""
    layout = Paths(directory.resolve())
    layout.create()
    if not layout.credentials.exists():
        write_whole(layout.issuer_key, _pem("issuer"), mode=0o600)
        write_whole(layout.credentials, json.dumps({"private_key": _pem("deployer")}), mode=0o600)
