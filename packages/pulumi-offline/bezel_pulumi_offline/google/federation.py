"""Access token of an outside identity: a credential file of the type external_account (google.aip.dev/auth/4117).

Reads the identity's token from a file or an address, exchanges it at STS, and acts as the account that the file names.
Owns these three requests. Leaves out when a token is renewed (tokens.py). No message holds a token.
"""

import http.client
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from bezel_pulumi_offline.google.errors import ProviderError

SCOPE = "https://www.googleapis.com/auth/cloud-platform"
NEEDED = frozenset({"audience", "token_url", "subject_token_type", "credential_source"})
_FORM = {"Content-Type": "application/x-www-form-urlencoded"}
_SECONDS = 30


def federated_token(info: Mapping[str, Any]) -> tuple[str, float]:
    """Return an access token and the seconds that it lives.

    Args:
        info: The content of the credential file.

    Raises:
        ProviderError: A request was refused, or the file lacks something.
    """
    if missing := sorted(NEEDED - info.keys()):
        raise ProviderError(f"The credentials of the type external_account lack {', '.join(missing)}.")
    exchange = {
        "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
        "requested_token_type": "urn:ietf:params:oauth:token-type:access_token",
        "subject_token_type": str(info["subject_token_type"]),
        "audience": str(info["audience"]),
        "scope": SCOPE,
        "subject_token": _subject_token(info["credential_source"]),
    }
    answer = _fetch_json("token_url", str(info["token_url"]), _FORM, urlencode(exchange))
    token, seconds = str(answer["access_token"]), float(answer.get("expires_in", 3600))
    url = info.get("service_account_impersonation_url")
    if not url:
        return token, seconds
    options = info.get("service_account_impersonation") or {}
    lifetime = int(options.get("token_lifetime_seconds") or 3600)
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
    content = json.dumps({"scope": [SCOPE], "lifetime": f"{lifetime}s"})
    return str(_fetch_json("service_account_impersonation_url", str(url), headers, content)["accessToken"]), float(
        lifetime
    )


def _subject_token(source: Mapping[str, Any]) -> str:
    form = source.get("format") or {}
    if file := source.get("file"):
        try:
            text = Path(str(file)).read_text(encoding="utf-8").strip()
        except (OSError, ValueError) as error:
            reason = type(error).__name__
            raise ProviderError(f"credential_source.file={file} cannot be read as a token: {reason}") from None
    elif url := source.get("url"):
        text = _answer("credential_source.url", str(url), dict(source.get("headers") or {}), None)
    else:
        raise ProviderError("credential_source names neither a file nor a url, so there is no token to exchange.")
    if form.get("type", "text") != "json":
        return text
    name = str(form.get("subject_token_field_name", ""))
    try:
        return str(json.loads(text)[name])
    except (ValueError, LookupError, TypeError):
        raise ProviderError(f"credential_source holds no {name!r}, so there is no token to exchange.") from None


def _fetch_json(what: str, url: str, headers: Mapping[str, str], content: str) -> dict[str, Any]:
    if urlsplit(url).scheme != "http":
        raise ProviderError(f"{what} {url} is not an address of localcloud: the stand-in sends plain HTTP only.")
    text = _answer(what, url, headers, content)
    try:
        return dict(json.loads(text))
    except ValueError:
        raise ProviderError(f"The response of {what} {url} is not JSON.") from None


def _answer(what: str, url: str, headers: Mapping[str, str], content: str | None) -> str:
    parts = urlsplit(url)
    loopback = parts.hostname in {"127.0.0.1", "localhost", "::1"}
    if not parts.hostname or (parts.scheme != "https" and not (parts.scheme == "http" and loopback)):
        raise ProviderError(f"{what} {url.split('?', maxsplit=1)[0]} is neither https nor an address of this machine.")
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.netloc, timeout=_SECONDS)
    path = f"{parts.path or '/'}{f'?{parts.query}' if parts.query else ''}"
    where = f"{what} {url.split('?', maxsplit=1)[0]}"
    try:
        connection.request("GET" if content is None else "POST", path, content, dict(headers))
        response = connection.getresponse()
        text = response.read().decode("utf-8", "replace")
    except (OSError, http.client.HTTPException) as error:
        raise ProviderError(
            f"{where} does not respond ({type(error).__name__}), so there is no access token."
        ) from None
    finally:
        connection.close()
    if response.status != 200:
        reason = _reason(text) if content is not None else ""
        refusal = f"{where} refused the federated identity (HTTP {response.status}{f', {reason}' if reason else ''})"
        raise ProviderError(f"{refusal}, so nothing can be deployed. `bezel ci login` names the cause.")
    return text


def _reason(text: str) -> str:
    """Return the reason of a refusal in OAuth's or in Google's form."""
    try:
        answer = json.loads(text)
        error = answer.get("error", "")
        if isinstance(error, Mapping):
            return f"{error.get('status', '')} {error.get('message', '')}".strip()
        return f"{error} {answer.get('error_description', '')}".strip()
    except (ValueError, AttributeError):
        return ""
