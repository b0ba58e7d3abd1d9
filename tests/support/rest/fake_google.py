"""A server on a real socket with Google's token endpoint, and the key of a service account that it knows."""

import base64
import json
import time
from pathlib import Path
from typing import Any

from bench_support.http_server import Answer, Call, Route, Server, serving

__all__ = ["ACCESS_TOKEN", "PLANTED", "Answer", "Call", "Route", "Server", "jwt", "key_file", "serving", "token_route"]

# Planted: whatever else happens, these must be found in no message.
ACCESS_TOKEN = "ya29.planted-access-token-0123456789"
PLANTED = "planted"


def jwt(claims: dict[str, Any]) -> str:
    def part(value: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    return f"{part({'alg': 'RS256'})}.{part(claims)}.planted-signatur"


def token_route(*, life: int = 3600, end: float | None = None) -> Route:
    """The token endpoint: an access token, or an identity token when the assertion names an audience."""

    def route(call: Call) -> Answer | None:
        if call.path != "/token":
            return None
        claims = _claims(call.form["assertion"])
        if "target_audience" in claims:
            exp = end if end is not None else time.time() + life
            return Answer(json={"id_token": jwt({"aud": claims["target_audience"], "exp": exp, "planted": PLANTED})})
        return Answer(json={"access_token": ACCESS_TOKEN, "expires_in": life, "token_type": "Bearer"})

    return route


def _claims(assertion: str) -> dict[str, Any]:
    part = assertion.split(".")[1]
    return dict(json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))))


_KEY: str | None = None


def key_file(directory: Path, server: Server) -> Path:
    """A service account's key whose tokens ``server`` gives."""
    global _KEY  # noqa: PLW0603 - one key pair per run: making one takes a while
    if _KEY is None:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import rsa

        # As short as it can be: every reading of a longer one takes 60 ms, and it guards nothing.
        key = rsa.generate_private_key(public_exponent=65537, key_size=1024)  # noqa: S505
        _KEY = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ).decode()
    path = directory / "key.json"
    path.write_text(
        json.dumps(
            {
                "type": "service_account",
                "project_id": "demo",
                "private_key_id": "1",
                "private_key": _KEY,
                "client_email": "deployer@demo.iam.gserviceaccount.com",
                "token_uri": f"{server.url}/token",
            }
        )
    )
    return path
