"""Calls of google-auth's identity_pool credentials, and of google-cloud-storage with them.

Started with a credential file of the type external_account: its token comes from an address with headers. A copy of it
that reads the token from a file is in EXTERNAL_ACCOUNT_FILE, one of a job that may not in EXTERNAL_ACCOUNT_REFUSED.
"""

import os
from importlib.metadata import version

from google.api_core import exceptions as api_exceptions
from google.auth import exceptions, identity_pool
from google.auth.transport.requests import Request
from google.cloud import storage
from outcomes import Calls

SCOPE = "https://www.googleapis.com/auth/cloud-platform"
PROJECT, BUCKET = os.environ["GOOGLE_CLOUD_PROJECT"], "pipeline-states"
ACCOUNT = f"pipeline@{PROJECT}.iam.gserviceaccount.com"


def credentials(variable: str) -> identity_pool.Credentials:
    """The credentials of a file that a variable names."""
    return identity_pool.Credentials.from_file(os.environ[variable], scopes=[SCOPE])


def client(identity: identity_pool.Credentials) -> storage.Client:
    """A client that acts as the account."""
    options = {"api_endpoint": os.environ["API_ENDPOINT_OVERRIDE"]}
    return storage.Client(project=PROJECT, credentials=identity, client_options=options)


def tokens(calls: Calls) -> None:
    """Tokens from an address and from a file, and their renewal."""
    by_url, by_file = credentials("GOOGLE_APPLICATION_CREDENTIALS"), credentials("EXTERNAL_ACCOUNT_FILE")

    def refresh(identity: identity_pool.Credentials) -> None:
        identity.refresh(Request())
        first = identity.token
        assert identity.valid
        assert identity.service_account_email == ACCOUNT
        identity.refresh(Request())
        assert identity.token
        assert first

    calls.passes("identity_pool.Credentials.refresh, token from an address", lambda: refresh(by_url))
    calls.passes("identity_pool.Credentials.refresh, token from a file", lambda: refresh(by_file))

    def refusal_text() -> str:
        try:
            credentials("EXTERNAL_ACCOUNT_REFUSED").refresh(Request())
        except exceptions.OAuthError as error:
            return str(error.args[0])
        return "it was accepted"

    def is_named() -> None:
        text = "Error code unauthorized_client: The given credential is rejected by the attribute condition."
        assert refusal_text() == text

    calls.passes("identity_pool.Credentials.refresh, refused by the condition", is_named)


def objects(calls: Calls) -> None:
    """Objects of the bucket that the account may use, and of one that it may not."""
    bucket = client(credentials("GOOGLE_APPLICATION_CREDENTIALS")).bucket(BUCKET)

    def write() -> None:
        bucket.blob("plans/one.json").upload_from_string("{}", if_generation_match=0)

    calls.passes("Blob.upload_from_string", write)
    calls.passes("Blob.download_as_bytes", lambda: bucket.blob("plans/one.json").download_as_bytes())
    calls.raises(
        "Blob.upload_from_string outside of the condition",
        api_exceptions.Forbidden,
        lambda: bucket.blob("x").upload_from_string("x"),
    )
    calls.raises("Bucket.delete without a role", api_exceptions.Forbidden, bucket.delete)


if __name__ == "__main__":
    report = Calls(f"google-auth {version('google-auth')}")
    tokens(report)
    objects(Calls(f"google-cloud-storage {version('google-cloud-storage')}"))
