"""A lease is deployed on localcloud only where its gateway's proxy starts."""

from pathlib import Path

import pytest

from bezel.cli.local.proxy import require_proxy
from bezel_base.errors import UserError


def proxy(folder: Path, text: str) -> str:
    """A folder for PATH with this script as the proxy."""
    (folder / "haproxy").write_text(f"#!/bin/sh\n{text}\n")
    (folder / "haproxy").chmod(0o755)
    return str(folder)


@pytest.mark.slow
def test_proxy_that_starts_is_accepted(tmp_path: Path) -> None:
    require_proxy(proxy(tmp_path, 'test "$1" = -v'))


@pytest.mark.slow
def test_proxy_that_does_not_start_is_refused_before_the_deploy(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="nothing was deployed") as caught:
        require_proxy(proxy(tmp_path, "exit 127"))
    assert "install HAProxy so that it is on PATH" in str(caught.value)


def test_missing_proxy_is_refused_before_the_deploy(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="nothing was deployed"):
        require_proxy(str(tmp_path))
