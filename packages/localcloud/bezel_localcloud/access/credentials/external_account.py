"""Credential file of the type external_account (google.aip.dev/auth/4117) for the deployer. Pure.

Some clients get tokens at Google's address whatever a key file says; every one heeds the `token_url` of such a file.
Its subject token, which a file beside it holds, is signed with the key of the deployer's key file and ends with it.
"""

from pathlib import Path

from cryptography.hazmat.primitives.asymmetric import rsa

from bezel_localcloud.access.credentials import keys
from bezel_localcloud.core.json_types import Json
from bezel_localcloud.core.paths import PROJECT_NUMBER

_POOL = f"projects/{PROJECT_NUMBER}/locations/global/workloadIdentityPools/localcloud"
AUDIENCE = f"//iam.googleapis.com/{_POOL}/providers/localcloud"
"""Names a pool that no list shows."""
GRANT = "urn:ietf:params:oauth:grant-type:token-exchange"
ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token"  # noqa: S105 -- a name
SUBJECT_TOKEN = "urn:ietf:params:oauth:token-type:jwt"  # noqa: S105 -- a name
_SECONDS = 10 * 365 * 86_400


def content(base: str, subject_token: Path) -> Json:
    """The file's content.

    Args:
        base: Address of the APIs.
        subject_token: The file that holds the subject token.
    """
    return {
        "type": "external_account",
        "audience": AUDIENCE,
        "subject_token_type": SUBJECT_TOKEN,
        "token_url": f"{base}/token",
        "credential_source": {"file": str(subject_token), "format": {"type": "text"}},
        "universe_domain": "googleapis.com",
    }


def subject_token(key: rsa.RSAPrivateKey, email: str, now: float) -> str:
    """A token that proves an account to the token endpoint alone."""
    return keys.sign({"iss": email, "sub": email, "aud": AUDIENCE, "iat": int(now), "exp": int(now) + _SECONDS}, key)
