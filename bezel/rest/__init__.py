"""A thin authenticated client for the Google APIs: what the program must ask that pulumi_gcp cannot say.

Owns: where an API is (with the provider's own overrides), who asks (access and identity tokens), how a request is
repeated, and what an error says. Leaves out: what any API means; callers know their resources.

Importing this package is cheap: httpx and google-auth are loaded at the first request, because every engine run
imports the program and most runs ask nothing.
"""

from bezel.rest.client import GoogleClient
from bezel.rest.credentials import Credentials
from bezel.rest.endpoints import endpoint, guarded
from bezel.rest.errors import AddressError, ApiError, CredentialsError, RestError, UnreachableError
from bezel.rest.redact import redact
from bezel.rest.retry import Backoff

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
    "guarded",
    "redact",
]
