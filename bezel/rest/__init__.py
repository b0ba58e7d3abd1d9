"""Authenticated client for the Google API calls that pulumi_gcp does not cover.

Owns the endpoints (with the provider's own overrides), the access and identity tokens, the retry policy and the error
texts. Leaves out the meaning of any API: callers know their resources.

Importing this package is cheap: httpx and google-auth are loaded at the first request, because every run of the engine
imports the program and most of them send no request.
"""

from bezel.rest.client import Backoff, GoogleClient
from bezel.rest.credentials import Credentials
from bezel.rest.endpoints import endpoint, url_for_token
from bezel.rest.errors import AddressError, ApiError, CredentialsError, RestError, UnreachableError

__all__ = [
    "AddressError",
    "ApiError",
    "Backoff",
    "Credentials",
    "CredentialsError",
    "GoogleClient",
    "RestError",
    "UnreachableError",
    "endpoint",
    "url_for_token",
]
