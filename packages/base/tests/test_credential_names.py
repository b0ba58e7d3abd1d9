"""Names of headers and query parameters that carry a credential."""

import pytest

from bezel_base.credentials.headers import is_credential_header, is_credential_name, is_credential_parameter
from bezel_base.credentials.names import option_names_secret

# By where they are from; see the module's table.
CARRY = {
    "HTTP": """
    Authorization Proxy-Authorization authorization AUTHORIZATION X-Authorization X-Original-Authorization
    HTTP_AUTHORIZATION Authentication Cookie Cookie2 Client-Cert Client-Cert-Chain DPoP Sec-Token-Binding Signature
    Signature-Input X-WSSE X-CSRF-Token X-XSRF-TOKEN bearer_token jwt hmac""",
    "OAuth 2": """
    access_token accessToken AccessTOKEN id_token refresh_token client_secret password passwd pwd code assertion
    client_assertion oauth_token oauth_signature auth auth_token authtoken xauthtoken X-ID-Token""",
    "Google": """
    key X-Goog-Api-Key X-Serverless-Authorization X-Goog-IAP-JWT-Assertion X-Goog-Authenticated-User-Email
    X-Goog-Authenticated-User-ID X-Goog-IAM-Authorization-Token X-Goog-IAM-Authority-Selector X-Forwarded-Authorization
    X-Endpoint-API-UserInfo X-Apigateway-Api-Userinfo X-Goog-Signature X-Goog-Credential GoogleAccessId
    X-Goog-Encryption-Key X-Firebase-AppCheck Firebase-Instance-ID-Token""",
    "AWS": """
    X-Amz-Security-Token X-Amz-Credential X-Amz-Signature X-Amz-Date X-Amz-Content-Sha256 AWSAccessKeyId
    x-amzn-oidc-data x-amzn-oidc-accesstoken x-amzn-oidc-identity X-aws-ec2-metadata-token Signature""",
    "Azure": """
    api-key Ocp-Apim-Subscription-Key subscription-key X-Functions-Key X-ZUMO-AUTH X-MS-CLIENT-PRINCIPAL
    X-MS-CLIENT-PRINCIPAL-ID x-ms-token-aad-access-token sig""",
    "gateways of models": """
    X-Api-Key x-api-key x_api_key X-ApiKey API-KEY apikey apiKey ApiKey APIKey APIkey api_key api%key x-litellm-api-key
    x-portkey-api-key x-portkey-virtual-key Helicone-Auth cf-aig-authorization X-RapidAPI-Key X-NEWPRODUCT-API-KEY""",
    "front ends": """
    X-Forwarded-Access-Token X-Auth-Request-Email X-Auth-Request-Access-Token X-Forwarded-User X-Forwarded-Email
    X-Forwarded-Client-Cert X-Remote-User Remote-User CF-Access-Client-Id CF-Access-Client-Secret
    Cf-Access-Jwt-Assertion SSL-Client-Verify SSL-Client-S-DN""",
    "forges, vaults, monitoring": """
    Private-Token Job-Token Deploy-Token X-Gitlab-Token X-Vault-Token X-Consul-Token X-Registry-Auth X-Docker-Token
    DD-API-KEY DD-APPLICATION-KEY X-Honeycomb-Team X-JFrog-Art-Api X-Shopify-Access-Token Circle-Token""",
    "anybody": """
    token X-Token Token X-Auth-Token X-Access-Token X-User-Token X-Session-Token session sessionid JSESSIONID PHPSESSID
    sid X-Auth-Key X-Auth-Email X-Secret secret secretkey secret_key credential credentials sas otp""",
}
CARRY_NOTHING = """
    Content-Type Content-Length Content-Encoding Accept Accept-Language Accept-Encoding User-Agent X-Request-Id
    X-Correlation-Id traceparent tracestate baggage X-Session-Id x-data-parallel-rank Idempotency-Key X-Idempotency-Key
    Sec-WebSocket-Key OpenAI-Organization OpenAI-Project OpenAI-Beta anthropic-version anthropic-beta X-Stainless-Lang
    X-Stainless-Retry-Count X-Forwarded-For X-Forwarded-Proto Forwarded Range If-None-Match Referer Origin
    Cache-Control X-Cloud-Trace-Context X-Goog-User-Project X-Goog-Api-Client X-Goog-Request-Params Sec-Fetch-Mode
    Priority DNT X-Author max_tokens x-max-tokens model stream limit after before order page timeout api-version alt
    prettyPrint uploadType keyword keys monkey tokenizer sort authority side assign design status_code encode passage
    """


@pytest.mark.parametrize("source", CARRY)
def test_a_name_of_a_credential_counts_in_every_spelling(source: str) -> None:
    names = CARRY[source].split()
    spellings = [form for name in names for form in (name, name.lower(), name.upper(), name.replace("-", "_"))]
    assert [name for name in spellings if not is_credential_name(name)] == []


def test_other_names_carry_nothing() -> None:
    assert [name for name in CARRY_NOTHING.split() if is_credential_name(name)] == []


@pytest.mark.parametrize("name", ["", "-", "é", "a" * 100_000, "-" * 100_000, "aA" * 50_000])
def test_a_name_of_any_length_and_kind_is_judged(name: str) -> None:
    assert not is_credential_name(name)


@pytest.mark.parametrize(
    "name", ["Authorization", "Proxy-Authorization", "cookie", "Set-Cookie", "x-goog-iap-jwt-assertion"]
)
def test_header_with_credential_is_hidden(name: str) -> None:
    assert is_credential_header(name)


@pytest.mark.parametrize("name", ["Content-Type", "WWW-Authenticate", "X-Authorization-Mode", "cookies-accepted", ""])
def test_other_header_is_shown(name: str) -> None:
    assert not is_credential_header(name)


@pytest.mark.parametrize(
    "name",
    [
        "key",
        "code",
        "access_token",
        "token",
        "assertion",
        "upload_id",
        "X-Goog-Signature",
        "x-goog-signature",
        "Signature",
        "sig",
    ],
)
def test_query_parameter_with_credential_is_hidden(name: str) -> None:
    assert is_credential_parameter(name)


@pytest.mark.parametrize(
    "name",
    [
        "pageToken",
        "nextPageToken",
        "uploadType",
        "uploads",
        "keyRingId",
        "cryptoKeyId",
        "secretId",
        "kmsKeyName",
        "filter",
        "alt",
        "max",
    ],
)
def test_query_parameter_of_other_name_is_shown(name: str) -> None:
    assert not is_credential_parameter(name)


def test_option_takes_secret_unless_it_names_a_variable() -> None:
    assert [name for name in ("--api-key", "--token", "--hf-token", "-password") if not option_names_secret(name)] == []
    assert [name for name in ("--api-key-env", "--max-num-seqs", "--input-tokens") if option_names_secret(name)] == []
