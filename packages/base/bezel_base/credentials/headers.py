"""Names of HTTP headers and query parameters that carry a credential, or an identity that a front end has verified.

The one table for the code that drops them (`is_credential_name`: when in doubt, it is one) and for the code that hides
them in what is shown (the narrower functions). For the first, a name is cut into its words, whatever its spelling
(`X-Api-Key`, `x_api_key`, `apiKey`): one that contains a word of the table, or begins with the prefix of a product,
carries a credential. So a name that no list has yet counts too. Pure; leaves out how values look.

| source of the words | names, for example |
|---|---|
| HTTP: RFC 9110, 6265, 7519, 9421, 9440, 9449 | `Proxy-Authorization`, `Cookie`, `Signature`, `Client-Cert`, `DPoP` |
| OAuth 2: RFC 6749, 6750, 7521 | `access_token`, `client_secret`, `code`, `assertion`, `password` |
| Google: API keys, Cloud Run, IAP, Endpoints | `key`, `X-Serverless-Authorization`, `X-Goog-IAP-JWT-Assertion` |
| Google: signed URLs, encryption, Firebase | `X-Goog-Signature`, `GoogleAccessId`, `X-Firebase-AppCheck` |
| AWS: signatures 2 and 4, load balancer | `X-Amz-Security-Token`, `AWSAccessKeyId`, `x-amzn-oidc-data` |
| Azure: OpenAI, API Management, Functions, SAS | `api-key`, `Ocp-Apim-Subscription-Key`, `X-Functions-Key`, `sig` |
| gateways of models | `x-api-key`, `x-litellm-api-key`, `x-portkey-virtual-key`, `Helicone-Auth` |
| front ends: oauth2-proxy, Cloudflare, Envoy | `X-Auth-Request-Email`, `CF-Access-Client-Id`, `X-Remote-User` |
| forges, vaults, registries, monitoring | `Private-Token`, `X-Vault-Token`, `X-Registry-Auth`, `DD-API-KEY` |
"""

import re
from functools import lru_cache
from typing import Final

from bezel_base.credentials.names import names_secret

_WORDS: Final = frozenset(
    """
    apikey assertion auth authenticated authentication authorisation authorization bearer cert certificate cookie
    cookie2 cookies cred credential credentials creds csrf dpop hmac jwt key login oauth oidc otp passcode passphrase
    passwd password principal pwd saml sas secret sid sig signature sso token totp userinfo wsse xsrf
    """.split()  # noqa: SIM905 - a table
)
_JOINED = re.compile(r"accesskey|accessid|apikey|credential|password|secretkey|subscriptionkey|(?:access|auth|id)token")
"""Words that products write as one, within longer ones."""
_PREFIXES: Final = ("x-amz-", "x-amzn-oidc-", "x-goog-iam-", "x-goog-iap-", "x-ms-token-", "cf-access-", "ssl-client-")
_WHOLE: Final = frozenset(
    """
    code jsessionid phpsessid remote-user session sessionid x-firebase-appcheck x-forwarded-email x-forwarded-user
    x-honeycomb-team x-jfrog-art-api x-remote-user
    """.split()  # noqa: SIM905 - a table
)
"""Names without a word of the table."""
_HARMLESS: Final = frozenset("idempotency-key x-idempotency-key sec-websocket-key".split())  # noqa: SIM905 - a table
"""Keys that identify a repetition or a handshake."""
# Narrower, for what is shown: a name that is hidden without need hides what a reader looks for.
_LONGEST: Final = 80
"""Characters of such a name that are looked at, from its end."""
_HEADERS = re.compile(r"(?i)(?:.*-)?(?:authorization|cookie|assertion)")
_SIGNATURES = re.compile(r"(?i)(?:.*[^a-z])?(?:signature|sig|hmac|assertion|sessionid|sid)")
_PARAMETERS = re.compile(r"(?i)key|code|auth|upload_id")
"""Of a URL's query; who has Cloud Storage's `upload_id` continues that upload without a further credential."""
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_OTHERS = re.compile(r"[^a-z0-9]+")


def is_credential_name(name: str) -> bool:
    """Whether a header or query parameter of this name carries a credential, in any spelling."""
    # A change of case may begin a word (`apiKey`) or mean nothing (`APIkey`, `X-JFrog-Art-Api`): both readings count.
    readings = [_OTHERS.split(_HUMP.sub("-", name).lower().strip("-")), _OTHERS.split(name.lower())]
    whole = {"-".join(reading) for reading in readings}
    if not _HARMLESS.isdisjoint(whole):
        return False
    return (
        not _WHOLE.isdisjoint(whole)
        or any(one.startswith(_PREFIXES) for one in whole)
        or any(not _WORDS.isdisjoint(reading) for reading in readings)
        or bool(_JOINED.search("".join(readings[1])))
    )


def is_credential_header(name: str) -> bool:
    """Whether a header of this name holds a credential as its whole value, as `Proxy-Authorization` does."""
    return _HEADERS.fullmatch(name[-_LONGEST:]) is not None


def is_signature(name: str) -> bool:
    """Whether a value of this name signs, or stands for, its bearer: `X-Goog-Signature`, `sig`, `sid`."""
    return _SIGNATURES.fullmatch(name[-_LONGEST:]) is not None


@lru_cache(maxsize=1024)
def is_credential_parameter(name: str) -> bool:
    """Whether a parameter of a URL's query with this name holds a credential: `key` does, `pageToken` does not."""
    return _PARAMETERS.fullmatch(name) is not None or is_signature(name) or names_secret(name)
