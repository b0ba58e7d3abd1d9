"""An issuer of identity tokens on the loopback, with a forge's protocol for the tokens of its jobs.

It serves what Google fetches (discovery document and keys) and what a job fetches: `GET $ACTIONS_ID_TOKEN_REQUEST_URL`
with an audience and the job's request token. Claims are those of GitHub's tokens, and a test sets them as it likes.
"""

import base64
import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

from cryptography.hazmat.primitives import hashes, hmac
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

REQUEST_TOKEN = "not-a-real-request-token"
LIFETIME = 300
CLAIMS = {
    "sub": "repo:example/bezel:ref:refs/heads/main",
    "repository": "example/bezel",
    "repository_id": "12",
    "repository_owner": "example",
    "ref": "refs/heads/main",
    "event_name": "push",
    "actor": "dev",
}


@cache
def rsa_key(number: int) -> rsa.RSAPrivateKey:
    """One of some keys, made once a process."""
    del number
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@cache
def curve_key() -> ec.EllipticCurvePrivateKey:
    """A key of the curve P-256."""
    return ec.generate_private_key(ec.SECP256R1())


def encode(data: bytes | Mapping[str, Any]) -> str:
    """Return the base64url text of bytes or of JSON."""
    raw = data if isinstance(data, bytes) else json.dumps(data).encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _number(value: int) -> str:
    return encode(value.to_bytes((value.bit_length() + 7) // 8, "big"))


def public_key(number: int = 0, kid: str = "key-0") -> dict[str, str]:
    """The public half of a key as a JSON Web Key."""
    numbers = rsa_key(number).public_key().public_numbers()
    return {"kty": "RSA", "alg": "RS256", "use": "sig", "kid": kid, "n": _number(numbers.n), "e": _number(numbers.e)}


def public_curve_key(kid: str = "curve") -> dict[str, str]:
    """The same of the curve's key."""
    numbers = curve_key().public_key().public_numbers()
    both = {"x": encode(numbers.x.to_bytes(32, "big")), "y": encode(numbers.y.to_bytes(32, "big"))}
    return {"kty": "EC", "alg": "ES256", "use": "sig", "kid": kid, "crv": "P-256", **both}


def sign(claims: Mapping[str, Any], *, number: int = 0, kid: str = "key-0", alg: str = "RS256") -> str:
    """A token with these claims; `HS256` is signed with the public key as the shared secret, `none` not at all."""
    text = f"{encode({'alg': alg, 'typ': 'JWT', 'kid': kid})}.{encode(claims)}"
    if alg == "none":
        return f"{text}."
    if alg == "HS256":
        shared = hmac.HMAC(json.dumps(public_key(number, kid)).encode(), hashes.SHA256())
        shared.update(text.encode())
        return f"{text}.{encode(shared.finalize())}"
    if alg == "ES256":
        halves = decode_dss_signature(curve_key().sign(text.encode(), ec.ECDSA(hashes.SHA256())))
        return f"{text}.{encode(b''.join(half.to_bytes(32, 'big') for half in halves))}"
    return f"{text}.{encode(rsa_key(number).sign(text.encode(), padding.PKCS1v15(), hashes.SHA256()))}"


@dataclass
class Issuer:
    """Start with `with Issuer() as issuer`; `issuer.url` is its address.

    Attributes:
        claims: The claims of the job's tokens beside issuer, audience and times.
        keys: The published keys.
        jobs: Claims of each job that a runner has named, by its request token.
        requests: Paths of the requests that came.
        status: HTTP status of the token endpoint, to let it fail.
        clock: Unix seconds.
    """

    claims: dict[str, Any] = field(default_factory=lambda: dict(CLAIMS))
    keys: list[dict[str, str]] = field(default_factory=lambda: [public_key()])
    jobs: dict[str, dict[str, Any]] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    status: int = 200
    clock: Callable[[], float] = time.time
    url: str = ""

    def __enter__(self) -> Self:
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                sent = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                status, body = issuer.answer(self.path, self.headers.get("Authorization", ""), sent)
                content = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def do_POST(self) -> None:
                self.do_GET()

            def log_message(self, *arguments: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.005,), daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def environment(self) -> dict[str, str]:
        """What the forge gives a job that may fetch identity tokens; a runner names its jobs with it."""
        return {
            "ACTIONS_ID_TOKEN_REQUEST_URL": f"{self.url}/token?api-version=2.0",
            "ACTIONS_ID_TOKEN_REQUEST_TOKEN": REQUEST_TOKEN,
        }

    def token(self, audience: str, /, **changed: Any) -> str:
        """A token for an audience with changed claims; None removes one."""
        now = int(self.clock())
        claims = {"iss": self.url, "aud": audience, "iat": now, "nbf": now, "exp": now + LIFETIME, **self.claims}
        return sign({name: value for name, value in (claims | changed).items() if value is not None})

    def answer(self, target: str, authorization: str, sent: bytes = b"") -> tuple[int, Any]:
        """Answer a request."""
        parts = urlsplit(target)
        self.requests.append(parts.path)
        if parts.path == "/.well-known/openid-configuration":
            return 200, {"issuer": self.url, "jwks_uri": f"{self.url}/keys"}
        if parts.path == "/keys":
            return 200, {"keys": self.keys}
        if parts.path == "/token":
            if self.status != 200:
                return self.status, {"message": "no"}
            bearer = authorization.partition(" ")[2]
            if bearer != REQUEST_TOKEN and bearer not in self.jobs:
                return 401, {"message": "unauthorized"}
            audience = parse_qs(parts.query).get("audience", [self.url])[0]
            return 200, {"count": 1, "value": self.token(audience, **self.jobs.get(bearer, {}))}
        if parts.path == "/jobs" and authorization == f"Bearer {REQUEST_TOKEN}":
            bearer = f"request-token-of-job-{len(self.jobs)}"
            self.jobs[bearer] = json.loads(sent)
            return 200, self.environment() | {"ACTIONS_ID_TOKEN_REQUEST_TOKEN": bearer}
        return 404, {"message": "not found"}
