"""Who asks: access tokens for Google's APIs, and identity tokens for a service that wants to know its caller.

The order of sources is the Pulumi provider's, so that a deployment and its checks act as the same identity:
``GOOGLE_OAUTH_ACCESS_TOKEN``, ``GOOGLE_CREDENTIALS`` (a key, or the path of one), then Application Default
Credentials (key file, ``gcloud auth application-default login``, workload identity federation, metadata server);
on top of these ``GOOGLE_IMPERSONATE_SERVICE_ACCOUNT``. Tokens live in this object only: it has no readable form and
cannot be pickled.
"""

import base64
import binascii
import importlib
import json
import os
import threading
import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from bezel.rest.endpoints import endpoint, guarded
from bezel.rest.errors import ApiError, CredentialsError
from bezel.rest.redact import redact
from bezel.rest.transport import AuthRequest, new_client

SCOPE = "https://www.googleapis.com/auth/cloud-platform"

# A token is exchanged this long before it ends, so that none ends on its way.
_MARGIN_SECONDS = 300.0
# How long a token of unknown life is kept; Google's live one hour.
_ASSUMED_LIFE_SECONDS = 1800.0


class Credentials:
    """Tokens of one identity, kept and renewed before they expire; safe to share between threads.

    Args:
        impersonate: E-mail of a service account to mint identity tokens for. The caller needs
            ``roles/iam.serviceAccountOpenIdTokenCreator`` on it (or Token Creator, which includes that).
        environ: Where to look for credentials.
        clock: Seconds since the epoch.
    """

    def __init__(
        self,
        impersonate: str | None = None,
        *,
        environ: Mapping[str, str] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._impersonate = impersonate
        self._environ = os.environ if environ is None else environ
        self._clock = clock
        self._lock = threading.RLock()
        self._source: Any = None
        self._client: Any = None
        # Audience -> (token, end in seconds since the epoch); the access token has the audience "".
        self._tokens: dict[str, tuple[str, float]] = {}

    def __repr__(self) -> str:
        return f"Credentials(impersonate={self._impersonate!r})"

    def __reduce__(self) -> Any:
        raise TypeError("credentials are never written down: make them where they are used")

    def headers(self) -> dict[str, str]:
        """The headers that authorise a call of a Google API."""
        headers = {"Authorization": f"Bearer {self.access_token()}"}
        quota_project = getattr(self._source, "quota_project_id", None)
        if quota_project:
            headers["x-goog-user-project"] = quota_project
        return headers

    def access_token(self) -> str:
        """An access token for Google's APIs.

        Raises:
            CredentialsError: There are no credentials, or they were refused.
        """
        return self._kept("", self._new_access_token)

    def identity_token(self, audience: str) -> str:
        """An identity token that says to ``audience`` (a service's URL) who calls.

        Raises:
            CredentialsError: These credentials cannot give one; the text says what to set.
        """
        return self._kept(audience, lambda: self._new_identity_token(audience))

    def forget(self, audience: str = "") -> None:
        """Drops a kept token, after a server refused it."""
        with self._lock:
            self._tokens.pop(audience, None)

    def _kept(self, audience: str, new: Callable[[], tuple[str, float]]) -> str:
        with self._lock:
            token, end = self._tokens.get(audience, ("", 0.0))
            if not token or self._clock() > end - _MARGIN_SECONDS:
                token, end = self._tokens[audience] = new()
            return token

    def _new_access_token(self) -> tuple[str, float]:
        static = self._environ.get("GOOGLE_OAUTH_ACCESS_TOKEN")
        if static:
            return static, self._clock() + _ASSUMED_LIFE_SECONDS
        source = self._loaded()
        account = self._environ.get("GOOGLE_IMPERSONATE_SERVICE_ACCOUNT")
        token, end = self._refreshed(source)
        if not account:
            return token, end
        answer = self._ask_iam(token, account, "generateAccessToken", {"scope": [SCOPE], "lifetime": "3600s"})
        return str(answer["accessToken"]), self._clock() + _ASSUMED_LIFE_SECONDS

    def _new_identity_token(self, audience: str) -> tuple[str, float]:
        if self._impersonate:
            return self._generated(self.access_token(), self._impersonate, audience)
        if self._environ.get("GOOGLE_IMPERSONATE_SERVICE_ACCOUNT"):
            # The account itself may mint only where it was granted that; the identity behind it may already.
            caller = self._refreshed(self._loaded())[0]
            return self._generated(caller, self._environ["GOOGLE_IMPERSONATE_SERVICE_ACCOUNT"], audience)
        if self._environ.get("GOOGLE_OAUTH_ACCESS_TOKEN"):
            raise _cannot_mint("an access token in GOOGLE_OAUTH_ACCESS_TOKEN")
        source = self._loaded()
        compute_engine: Any = importlib.import_module("google.auth.compute_engine")
        impersonated: Any = importlib.import_module("google.auth.impersonated_credentials")
        service_account: Any = importlib.import_module("google.oauth2.service_account")

        if isinstance(source, service_account.Credentials):
            named = service_account.IDTokenCredentials(
                source.signer,
                source.service_account_email,
                _private(source, "_token_uri"),
                audience,
            )
            return self._refreshed(named)
        if isinstance(source, compute_engine.Credentials):
            return self._refreshed(
                compute_engine.IDTokenCredentials(self._request(), audience, use_metadata_identity_endpoint=True)
            )
        if isinstance(source, impersonated.Credentials):
            caller = self._refreshed(_private(source, "_source_credentials"))[0]
            return self._generated(caller, source.service_account_email, audience)
        raise _cannot_mint(_kind(source))

    def _generated(self, caller: str, account: str, audience: str) -> tuple[str, float]:
        answer = self._ask_iam(caller, account, "generateIdToken", {"audience": audience, "includeEmail": True})
        token = str(answer["token"])
        return token, _end_of(token) or self._clock() + _ASSUMED_LIFE_SECONDS

    def _ask_iam(self, caller: str, account: str, method: str, body: dict[str, Any]) -> dict[str, Any]:
        from bezel.rest.client import post_once

        url = f"{endpoint('IAM_CREDENTIALS', self._environ)}projects/-/serviceAccounts/{account}:{method}"
        try:
            return post_once(self._http(), url, body, {"Authorization": f"Bearer {caller}"})
        except ApiError as error:
            raise CredentialsError(
                f"{account} cannot be impersonated ({error.status} {error.reason}: {redact(error.message, caller)}). "
                "Check the e-mail, and grant the caller roles/iam.serviceAccountTokenCreator on it: "
                f"gcloud iam service-accounts add-iam-policy-binding {account} "
                "--member=user:YOU --role=roles/iam.serviceAccountTokenCreator"
            ) from None

    def _refreshed(self, source: Any) -> tuple[str, float]:
        from google.auth import exceptions

        try:
            source.refresh(self._request())
        except exceptions.GoogleAuthError as error:
            # Only the first argument: the others hold the server's whole answer.
            text = redact(str(error.args[0] if error.args else type(error).__name__))
            raise CredentialsError(
                f"the credentials ({_kind(source)}) were refused: {text}. "
                "Log in again (gcloud auth application-default login) or check GOOGLE_APPLICATION_CREDENTIALS."
            ) from None
        except ValueError:
            raise CredentialsError(f"the token server of the credentials ({_kind(source)}) sent no token") from None
        if not source.token:
            raise CredentialsError(f"the credentials ({_kind(source)}) gave no token")
        end = source.expiry
        # google-auth keeps naive times in UTC.
        seconds = _epoch(end) if end is not None else self._clock() + _ASSUMED_LIFE_SECONDS
        return str(source.token), seconds

    def _loaded(self) -> Any:
        with self._lock:
            if self._source is None:
                self._source = self._load()
            return self._source

    def _load(self) -> Any:
        from google.auth import exceptions

        # google-auth has no types for these.
        auth: Any = importlib.import_module("google.auth")
        given = self._environ.get("GOOGLE_CREDENTIALS", "").strip()
        path = self._environ.get("GOOGLE_APPLICATION_CREDENTIALS", "").strip()
        try:
            with warnings.catch_warnings():
                # A user's own credentials without a quota project: Google's answer says so where it matters.
                warnings.simplefilter("ignore")
                if given.startswith("{"):
                    loaded = auth.load_credentials_from_dict(json.loads(given), scopes=[SCOPE])
                elif given or path:
                    loaded = auth.load_credentials_from_file(given or path, scopes=[SCOPE])
                else:
                    loaded = auth.default(scopes=[SCOPE], request=self._request())
        except exceptions.GoogleAuthError as error:
            raise CredentialsError(_no_credentials(str(error.args[0] if error.args else ""))) from None
        except (OSError, ValueError) as error:
            raise CredentialsError(_no_credentials(f"{type(error).__name__} in the given credentials")) from None
        source = loaded[0]
        token_uri = getattr(source, "_token_uri", None)
        if token_uri:
            guarded(token_uri, "token_uri of the credentials")
        return source

    def _http(self) -> Any:
        if self._client is None:
            self._client = new_client(30.0)
        return self._client

    def _request(self) -> AuthRequest:
        return AuthRequest(self._http())


def _cannot_mint(kind: str) -> CredentialsError:
    return CredentialsError(
        f"{kind} cannot give an identity token for a service. Set smoke.impersonate to a service account that may "
        "call it (roles/run.invoker) and on which you have roles/iam.serviceAccountTokenCreator: "
        "pulumi config set --path smoke.impersonate NAME@PROJECT.iam.gserviceaccount.com"
    )


def _no_credentials(detail: str) -> str:
    first = redact(detail).split("\n", 1)[0].rstrip(".")
    return (
        f"no Google credentials: {first}. Run `gcloud auth application-default login`, or set "
        "GOOGLE_APPLICATION_CREDENTIALS to the path of a service account's key."
    )


def _private(source: Any, name: str) -> Any:
    """What google-auth keeps to itself, and has no other way to say."""
    return getattr(source, name)


def _kind(source: Any) -> str:
    names = {
        "google.oauth2.credentials": "a user's own login",
        "google.oauth2.service_account": "a service account's key",
        "google.auth.compute_engine.credentials": "the metadata server",
        "google.auth.impersonated_credentials": "an impersonated service account",
    }
    return names.get(type(source).__module__, type(source).__module__.rsplit(".", 1)[-1].replace("_", " "))


def _end_of(token: str) -> float | None:
    """The ``exp`` claim of a JSON Web Token, unverified: its own server minted it a moment ago."""
    try:
        part = token.split(".")[1]
        return float(json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))["exp"])
    except (IndexError, KeyError, ValueError, TypeError, binascii.Error):
        return None


def _epoch(naive_utc: Any) -> float:
    from datetime import UTC

    return float(naive_utc.replace(tzinfo=UTC).timestamp())
