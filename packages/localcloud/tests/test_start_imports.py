"""The daemon's start imports only what it needs: each tenth of a second is one of every start."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow  # a process of its own

LATE = ("httpx", "cryptography.x509", "bezel_localcloud.access.certificates")


def late_imports(script: str) -> str:
    show = f"import sys; print([name for name in {LATE} if name in sys.modules])"
    command = [sys.executable, "-c", f"{script}\n{show}"]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


def test_start_imports_no_http_client_and_no_certificates() -> None:
    assert late_imports("import bezel_localcloud.__main__, bezel_localcloud.control_api") == "[]\n"


def test_certificates_of_https_are_imported_with_their_library() -> None:
    assert late_imports("import bezel_localcloud.access.certificates") == f"{[*LATE[1:]]}\n"
