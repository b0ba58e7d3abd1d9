"""Credential sources, tried in the Pulumi provider's own order.

A deployment and its checks then act as the same identity: `GOOGLE_OAUTH_ACCESS_TOKEN`, `GOOGLE_CREDENTIALS` (a
key, or the path of one), then Application Default Credentials (key file, `gcloud auth application-default login`,
workload identity federation, metadata server); on top of any of these `GOOGLE_IMPERSONATE_SERVICE_ACCOUNT`.
Leaves out the minting of tokens (`bezel.rest.credentials`).
"""

import importlib
import json
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bezel.rest.endpoints import url_for_token
from bezel.rest.errors import CredentialsError
from bezel_base.errors import Problem
from bezel_base.text.redaction import redact

SCOPE = "https://www.googleapis.com/auth/cloud-platform"

# Not "credentials": what follows that word and a colon is hidden in texts that are shown, as it may be one.
LOGIN = "login to Google"

_KINDS = {
    "google.oauth2.credentials": "user",
    "google.oauth2.service_account": "service_account",
    "google.auth.compute_engine.credentials": "metadata",
    "google.auth.impersonated_credentials": "impersonated",
    "google.auth.identity_pool": "federated",
}
_WORDS = {
    "token": "the access token in GOOGLE_OAUTH_ACCESS_TOKEN",
    "user": "a user's own login",
    "service_account": "a service account's key",
    "metadata": "the metadata server",
    "impersonated": "an impersonated service account",
    "federated": "a federated identity",
    "other": "a credential of another kind",
}
_REPAIR = (
    "run `gcloud auth application-default login`, or set GOOGLE_APPLICATION_CREDENTIALS to the path of a service "
    "account's key."
)


@dataclass(frozen=True)
class CredentialSource:
    """The credentials of an environment.

    Attributes:
        kind: `token`, `user`, `service_account`, `metadata`, `impersonated`, `federated` or `other`.
        credentials: google-auth's object, None for a bare token.
        token: The bare token.
        account: The service account to act as, through the IAM Credentials API.
        delegates: The chain of accounts on the way to it.
        quota_project: The project whose quota the calls use, where the credentials name one.
    """

    kind: str
    credentials: Any = None
    token: str = field(default="", repr=False)
    account: str | None = None
    delegates: tuple[str, ...] = ()
    quota_project: str | None = None


def load(environ: Mapping[str, str], request: Any) -> CredentialSource:
    """Finds the credentials of an environment.

    Args:
        environ: The environment.
        request: The transport with which google-auth looks for a metadata server.

    Raises:
        CredentialsError: There are none, or they cannot be read.
        AddressError: They would be sent to an unsafe address.
    """
    account = environ.get("GOOGLE_IMPERSONATE_SERVICE_ACCOUNT") or None
    if static := environ.get("GOOGLE_OAUTH_ACCESS_TOKEN"):
        return CredentialSource("token", token=static, account=account)
    credentials = _google_credentials(environ, request)
    quota_project = getattr(credentials, "quota_project_id", None)
    kind_ = _KINDS.get(type(credentials).__module__, "other")
    if private(credentials, "_token_uri"):
        url_for_token(private(credentials, "_token_uri"), "token_uri of the credentials")
    if kind_ == "impersonated" and account is None:
        # The impersonation is done in `bezel.rest.credentials`: google-auth's own knows no override of the endpoint.
        behind = private(credentials, "_source_credentials")
        delegates = tuple(private(credentials, "_delegates") or ())
        return CredentialSource(kind_, behind, account=credentials.service_account_email, delegates=delegates)
    if kind_ == "federated":
        return _federated_source(credentials, account, quota_project)
    return CredentialSource(kind_, credentials, account=account, quota_project=quota_project)


def _federated_source(credentials: Any, account: str | None, quota_project: str | None) -> CredentialSource:
    """The identity that a file of the type external_account names, and the account that it acts as."""
    info = credentials.info
    url_for_token(str(info["token_url"]), "token_url of the credentials")
    if url := (info.get("credential_source") or {}).get("url"):
        url_for_token(str(url), "credential_source.url of the credentials")
    if account is None and (named := credentials.service_account_email):
        # As above: the impersonation is done in `bezel.rest.credentials`, which also reports why it was refused.
        pool_info = {key: value for key, value in info.items() if not key.startswith("service_account_impersonation")}
        return CredentialSource("federated", _identity_pool(pool_info), account=named, quota_project=quota_project)
    return CredentialSource("federated", credentials, account=account, quota_project=quota_project)


def _identity_pool(info: Mapping[str, Any]) -> Any:
    pools: Any = importlib.import_module("google.auth.identity_pool")
    return pools.Credentials.from_info(dict(info), scopes=[SCOPE])


def kind(source: CredentialSource) -> str:
    """Return the kind of a source, in words for the user."""
    return _WORDS[source.kind]


def _content(json_or_path: str) -> Mapping[str, Any]:
    """The object of a credential, from JSON or a path; empty for none, and for another value.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is not JSON.
    """
    if not json_or_path:
        return {}
    info = json.loads(json_or_path if json_or_path.startswith("{") else Path(json_or_path).read_bytes())
    return info if isinstance(info, dict) else {}


def _is_external_account(info: Mapping[str, Any]) -> bool:
    """Whether it is of the type external_account with a file or an address as its source.

    google-auth's own loader would ask Google for the project's id first, with a transport that is not installed.
    """
    source = info.get("credential_source")
    return info.get("type") == "external_account" and isinstance(source, dict) and bool(source.keys() & {"file", "url"})


def _account_key(info: Mapping[str, Any]) -> Any:
    """Credentials of a service account's key; None for another type, and for what google-auth is to refuse.

    google-auth's own loader validates the key's numbers, which takes 50 ms, at each start of a process. Google, which
    made them, refuses a signature by others.
    """
    if info.get("type") != "service_account":
        return None
    # Late, as all that only some kinds of credentials need.
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    crypt: Any = importlib.import_module("google.auth.crypt")
    accounts: Any = importlib.import_module("google.oauth2.service_account")
    try:
        pem = info["private_key"].encode()
        private_key = load_pem_private_key(pem, None, unsafe_skip_rsa_key_validation=True)
        if not isinstance(private_key, RSAPrivateKey):
            return None
        signer = crypt.RSASigner(private_key, info.get("private_key_id"))
        named = {name: info[name] for name in ("project_id", "universe_domain", "trust_boundary") if name in info}
        return accounts.Credentials(signer, info["client_email"], info["token_uri"], scopes=[SCOPE], **named)
    except (AttributeError, KeyError, TypeError, ValueError, UnsupportedAlgorithm):
        return None


def private(credentials: Any, name: str) -> Any:
    """Return a private attribute of google-auth that has no public accessor; None where it does not exist."""
    return getattr(credentials, name, None)


def _google_credentials(environ: Mapping[str, str], request: Any) -> Any:
    from google.auth import exceptions

    # google-auth has no types for these.
    auth: Any = importlib.import_module("google.auth")
    json_or_path = environ.get("GOOGLE_CREDENTIALS", "").strip()
    path = environ.get("GOOGLE_APPLICATION_CREDENTIALS", "").strip()
    try:
        with warnings.catch_warnings():
            # It warns of a user's credentials without a quota project: Google's response reports that if it matters.
            warnings.simplefilter("ignore")
            info = _content(json_or_path or path)
            if _is_external_account(info):
                return _identity_pool(info)
            if (key := _account_key(info)) is not None:
                return key
            if json_or_path.startswith("{"):
                return auth.load_credentials_from_dict(json.loads(json_or_path), scopes=[SCOPE])[0]
            if json_or_path or path:
                return auth.load_credentials_from_file(json_or_path or path, scopes=[SCOPE])[0]
            return auth.default(scopes=[SCOPE], request=request)[0]
    except exceptions.GoogleAuthError as error:
        cause = str(error.args[0] if error.args else "")
    except (OSError, ValueError) as error:
        cause = f"{type(error).__name__} in the given credentials"
    text = f"cannot be read: {redact(cause).partition(chr(10))[0].rstrip('.')}."
    raise CredentialsError(Problem(LOGIN, None, text, _REPAIR))
