"""Calls of google-cloud-storage with the variables alone; prints a JSON object a line for each call."""

from importlib.metadata import version

import google.auth
from google.auth import identity_pool
from google.auth.transport.requests import Request
from google.cloud import storage
from outcomes import Calls

calls = Calls(f"google-cloud-storage {version('google-cloud-storage')}")
credentials, _ = google.auth.default(scopes=["https://www.googleapis.com/auth/cloud-platform"])
client = storage.Client()
shelf = client.bucket("external-python")


def refresh() -> None:
    """Get a token, and another one."""
    assert isinstance(credentials, identity_pool.Credentials)
    for _ in range(2):
        credentials.refresh(Request())
        assert credentials.valid


def write() -> None:
    """Upload in one request and in chunks, and read."""
    for name, content in {"one": b"hello", "large": bytes(9 << 20)}.items():
        shelf.blob(name).upload_from_string(content)
        assert shelf.blob(name).download_as_bytes() == content


calls.passes("identity_pool.Credentials.refresh", refresh)
calls.passes("create_bucket", lambda: client.create_bucket(shelf))
calls.passes("upload_from_string, download_as_bytes", write)
calls.passes("delete", lambda: shelf.delete(force=True))
