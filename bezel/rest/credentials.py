"""Access tokens for Google's APIs, and identity tokens for services that authenticate their callers.

Leaves out where the credentials come from (`bezel.rest.credential_sources`). Tokens are held by this object only: its
repr does not show them, and it cannot be pickled.
"""

import importlib
import os
import threading
import time
from collections.abc import Callable, Mapping
from datetime import UTC
from typing import Any

from bezel.rest.credential_sources import LOGIN, SCOPE, CredentialSource, kind, load, private
from bezel.rest.endpoints import endpoint
from bezel.rest.errors import ApiError, CredentialsError
from bezel.rest.token_end import end_of
from bezel.rest.transport import AuthRequest, new_client
from bezel_base.errors import NOT_SET, Problem
from bezel_base.text.redaction import redact
from bezel_base.text.shell import shell_word

# A token is exchanged this long before it ends, so that none ends on its way.
_MARGIN_SECONDS = 300.0
# How long a token of unknown lifetime is cached; Google's live one hour.
_ASSUMED_LIFE_SECONDS = 1800.0


class Credentials:
    """Tokens of one identity, cached and renewed before they expire; safe to share between threads.

    Args:
        impersonate: E-mail of a service account to mint identity tokens for. The caller needs
            `roles/iam.serviceAccountOpenIdTokenCreator` on it (or Token Creator, which includes that).
        environ: The environment that names the credentials; the process's by default.
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
        self._source: CredentialSource | None = None
        self._client: Any = None
        # Audience -> (token, end in seconds since the epoch); the access token has the audience "".
        self._tokens: dict[str, tuple[str, float]] = {}

    def __repr__(self) -> str:
        return f"Credentials(impersonate={self._impersonate!r})"

    def __reduce__(self) -> Any:
        raise TypeError("credentials cannot be pickled: create them where they are used")

    def headers(self) -> dict[str, str]:
        """The headers that authorise a call of a Google API."""
        headers = {"Authorization": f"Bearer {self.access_token()}"}
        quota_project = self._source.quota_project if self._source else None
        if quota_project:
            headers["x-goog-user-project"] = quota_project
        return headers

    def access_token(self) -> str:
        """An access token for Google's APIs.

        Raises:
            CredentialsError: There are no credentials, or they were refused.
        """
        return self._cached_token("", self._new_access_token)

    def identity_token(self, audience: str) -> str:
        """An identity token that identifies the caller to `audience` (a service's URL).

        Raises:
            CredentialsError: These credentials cannot give one; the text names the setting that repairs it.
        """
        return self._cached_token(audience, lambda: self._new_identity_token(audience))

    def forget(self, audience: str = "") -> None:
        """Drops a cached token, after a server refused it."""
        with self._lock:
            self._tokens.pop(audience, None)

    def _cached_token(self, audience: str, new: Callable[[], tuple[str, float]]) -> str:
        with self._lock:
            token, end = self._tokens.get(audience, ("", 0.0))
            if not token or self._clock() > end - _MARGIN_SECONDS:
                token, end = self._tokens[audience] = new()
            return token

    def _new_access_token(self) -> tuple[str, float]:
        source = self._load_source()
        if source.account is None:
            return self._own_token(source)
        body = {"scope": [SCOPE], "lifetime": "3600s", "delegates": list(source.delegates)}
        answer = self._call_iam(self._own_token(source)[0], source.account, "generateAccessToken", body)
        return str(answer["accessToken"]), self._clock() + _ASSUMED_LIFE_SECONDS

    def _new_identity_token(self, audience: str) -> tuple[str, float]:
        if self._impersonate:
            return self._mint_token(self.access_token(), self._impersonate, audience)
        source = self._load_source()
        if source.account is not None:
            # Minted by the identity that impersonates: the account itself may mint only where it was granted that too.
            return self._mint_token(self._own_token(source)[0], source.account, audience, source.delegates)
        credentials = source.credentials
        if source.kind == "service_account":
            named: Any = importlib.import_module("google.oauth2.service_account").IDTokenCredentials(
                credentials.signer, credentials.service_account_email, private(credentials, "_token_uri"), audience
            )
        elif source.kind == "metadata":
            named = importlib.import_module("google.auth.compute_engine").IDTokenCredentials(
                self._request(), audience, use_metadata_identity_endpoint=True
            )
        else:
            text = f"{kind(source)} cannot give an identity token for a service."
            raise CredentialsError(Problem("smoke.impersonate", NOT_SET, text, _IMPERSONATE))
        return self._refresh_token(named, source)

    def _own_token(self, source: CredentialSource) -> tuple[str, float]:
        """The access token of the credentials themselves, before any impersonation."""
        if source.credentials is None:
            return source.token, self._clock() + _ASSUMED_LIFE_SECONDS
        return self._refresh_token(source.credentials, source)

    def _mint_token(
        self, caller: str, account: str, audience: str, delegates: tuple[str, ...] = ()
    ) -> tuple[str, float]:
        body = {"audience": audience, "includeEmail": True, "delegates": list(delegates)}
        token = str(self._call_iam(caller, account, "generateIdToken", body)["token"])
        return token, end_of(token) or self._clock() + _ASSUMED_LIFE_SECONDS

    def _call_iam(self, caller: str, account: str, method: str, body: dict[str, Any]) -> dict[str, Any]:
        from bezel.rest.transport import post_once

        url = f"{endpoint('IAM_CREDENTIALS', self._environ)}projects/-/serviceAccounts/{account}:{method}"
        try:
            return post_once(self._http(), url, body, {"Authorization": f"Bearer {caller}"})
        except ApiError as error:
            if error.is_disabled:
                raise CredentialsError(*error.problems) from None
            text = f"cannot be impersonated ({error.status} {error.reason}: {redact(error.message, caller)})."
            repair = (
                "check the e-mail, and grant the caller roles/iam.serviceAccountTokenCreator on it (a federated "
                "identity: roles/iam.workloadIdentityUser): "
                f"`gcloud iam service-accounts add-iam-policy-binding {shell_word(account)} "
                "--member=user:YOU --role=roles/iam.serviceAccountTokenCreator`."
            )
            raise CredentialsError(Problem(account, None, text, repair)) from None

    def _refresh_token(self, credentials: Any, source: CredentialSource) -> tuple[str, float]:
        from google.auth import exceptions

        try:
            credentials.refresh(self._request())
        except exceptions.GoogleAuthError as error:
            # Only the first argument: the others hold the server's whole response.
            text = redact(str(error.args[0] if error.args else type(error).__name__))
            # "iat" is in Google's error for a signature from a clock that is off: a new log-in would not help.
            if any(isinstance(each, exceptions.TransportError) for each in (error, error.__cause__)):
                consequence = f"the token server of {kind(source)} does not respond: {text.rstrip('.')}."
                raise CredentialsError(Problem(LOGIN, None, consequence, _CONNECT)) from None
            repair = "set this machine's clock, then run the same command again." if " iat " in text else _LOG_IN
            repair = _FEDERATE if source.kind == "federated" else repair
            raise CredentialsError(
                Problem(LOGIN, None, f"{kind(source)} was refused: {text.rstrip('.')}.", repair)
            ) from None
        except ValueError:
            raise CredentialsError(f"the token server of {kind(source)} returned no token") from None
        if not credentials.token:
            raise CredentialsError(f"{kind(source)} returned no token")
        # google-auth's expiry is a naive datetime in UTC.
        end = (
            credentials.expiry.replace(tzinfo=UTC).timestamp()
            if credentials.expiry
            else self._clock() + _ASSUMED_LIFE_SECONDS
        )
        return str(credentials.token), end

    def _load_source(self) -> CredentialSource:
        with self._lock:
            if self._source is None:
                self._source = load(self._environ, self._request())
            return self._source

    def _http(self) -> Any:
        if self._client is None:
            self._client = new_client(30.0)
        return self._client

    def _request(self) -> AuthRequest:
        return AuthRequest(self._http())


_LOG_IN = "log in again (gcloud auth application-default login), or check GOOGLE_APPLICATION_CREDENTIALS."
_CONNECT = "check this machine's network, then run the same command again; on localcloud, `make up` starts it."
_FEDERATE = (
    "log in again with `bezel ci login` in the same job, which names the cause; outside of a forge's job, run `gcloud "
    "auth application-default login`."
)
_IMPERSONATE = (
    "set it to a service account that may call the service (roles/run.invoker) and on which you have "
    "roles/iam.serviceAccountTokenCreator: "
    "`pulumi config set --path smoke.impersonate NAME@PROJECT.iam.gserviceaccount.com`."
)
