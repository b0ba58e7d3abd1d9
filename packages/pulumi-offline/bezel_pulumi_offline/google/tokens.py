"""Access token of the provider processes: from the environment, or exchanged for what a credential file holds.

A file holds a service account's key, with which a token is signed, or names an outside identity (federation.py).

google-auth does the same and more, but needs a transport library that costs a plugin 0.1 s at every start; the grant
itself (RFC 7523, as in Google's documentation of service accounts) is a few lines. A token is held in memory only.
"""

import base64
import http.client
import json
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from bezel_pulumi_offline.google.errors import ProviderError
from bezel_pulumi_offline.google.federation import SCOPE, federated_token

_EARLY = 60.0  # seconds before its expiry that a token counts as expired


class Tokens:
    """The current access token, renewed when it runs out."""

    def __init__(self, environment: Mapping[str, str], token: str = "") -> None:
        """Make a source of tokens.

        Args:
            environment: The environment with GOOGLE_OAUTH_ACCESS_TOKEN, GOOGLE_CREDENTIALS (a credential, or the path
                of one) or GOOGLE_APPLICATION_CREDENTIALS (a path).
            token: A token from the provider's configuration; it has precedence.
        """
        self._given = token or environment.get("GOOGLE_OAUTH_ACCESS_TOKEN", "")
        names = ("GOOGLE_CREDENTIALS", "GOOGLE_APPLICATION_CREDENTIALS")
        self._name = next((name for name in names if environment.get(name, "").strip()), names[-1])
        self._credential = environment.get(self._name, "").strip()
        self._lock = threading.Lock()
        self._token = ""
        self._ends = 0.0

    def __call__(self) -> str:
        """Return the current token.

        Raises:
            ProviderError: There is no credential, or it is refused.
        """
        if self._given:
            return self._given
        with self._lock:
            if time.monotonic() > self._ends:
                self._token, seconds = _new_token(_content(self._name, self._credential))
                # A federated token can live shorter than the margin: then each call gets a new one.
                self._ends = time.monotonic() + seconds - _EARLY
            return self._token


def _new_token(content: Mapping[str, Any]) -> tuple[str, float]:
    """Return an access token and the seconds that it lives."""
    if content.get("type") == "external_account":
        return federated_token(content)
    answer = _exchange(content)
    return str(answer["access_token"]), float(answer.get("expires_in", 3600))


def _content(name: str, credential: str) -> dict[str, Any]:
    """Return the content of a variable's credential: JSON, or the path of a file with it."""
    if not credential:
        raise ProviderError(
            "No credential: GOOGLE_APPLICATION_CREDENTIALS and GOOGLE_OAUTH_ACCESS_TOKEN are both unset. "
            '`make up` sets them; for other commands, run `eval "$(.venv/bin/bezel local env)"` first.'
        )
    is_inline = credential.startswith("{")
    where = name if is_inline else f"{name}={credential}"
    try:
        content = json.loads(credential if is_inline else Path(credential).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        reason = type(error).__name__ if is_inline else str(error)
        raise ProviderError(f"{where} cannot be read as a key: {reason}") from None
    federated = isinstance(content, dict) and content.get("type") == "external_account"
    if not isinstance(content, dict) or not (
        federated or {"client_email", "private_key", "token_uri"} <= content.keys()
    ):
        raise ProviderError(
            f"{where} is neither a service account key nor of the type external_account, so no token can be had. "
            "Point it at localcloud's credentials.json."
        )
    return content


def _exchange(key: Mapping[str, Any]) -> dict[str, Any]:
    address = urlsplit(str(key["token_uri"]))
    if address.scheme != "http":
        raise ProviderError(
            f"token_uri {key['token_uri']} is not an address of localcloud: the stand-in provider signs for http only."
        )
    connection = http.client.HTTPConnection(address.netloc, timeout=30)
    form = urlencode({"grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer", "assertion": _assertion(key)})
    try:
        connection.request("POST", address.path, form, {"Content-Type": "application/x-www-form-urlencoded"})
        response = connection.getresponse()
        text = response.read()
    except (OSError, http.client.HTTPException) as error:
        raise ProviderError(
            f"{key['token_uri']} does not respond ({type(error).__name__}), so there is no access token. "
            "Is localcloud running? `make up` starts it."
        ) from None
    finally:
        connection.close()
    try:
        answer = json.loads(text)
    except ValueError:
        answer = {}
    if response.status != 200 or "access_token" not in answer:
        reason = " ".join(filter(None, (str(answer.get("error", "")), str(answer.get("error_description", "")))))
        hint = (
            " The clock of this machine is wrong: set it, then run the same command again." if "iat" in reason else ""
        )
        raise ProviderError(
            f"{key['token_uri']} refused the key of {key['client_email']} (HTTP {response.status}"
            f"{f', {reason}' if reason else ''}), so nothing can be deployed.{hint}"
        )
    return dict(answer)


def _assertion(key: Mapping[str, Any]) -> str:
    # Slow to import, and not needed with a given token, or in a preview without a call.
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import padding, rsa

    now = int(time.time())
    header = {"alg": "RS256", "typ": "JWT", "kid": key.get("private_key_id", "")}
    claims = {"iss": key["client_email"], "scope": SCOPE, "aud": key["token_uri"], "iat": now, "exp": now + 3600}
    signed = f"{_part(header)}.{_part(claims)}"
    pem = str(key["private_key"]).encode()
    # The user's own key: validating its numbers would take as long as the rest of the start.
    private = serialization.load_pem_private_key(pem, None, unsafe_skip_rsa_key_validation=True)
    if not isinstance(private, rsa.RSAPrivateKey):
        raise ProviderError(f"The key of {key['client_email']} is not an RSA key, which RS256 requires.")
    signature = private.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
    return f"{signed}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"


def _part(value: Mapping[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()
