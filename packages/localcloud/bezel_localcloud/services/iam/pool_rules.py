"""Rules of workload identity pools and their providers: ids, lengths, mappings, conditions, keys. Pure.

Source: IAM v1's document (the limits stand in the fields' descriptions) and IAM's page on attribute mappings.
"""

import re
from typing import Any
from urllib.parse import urlsplit

from bezel_base.json_documents import read_encodable_json
from bezel_localcloud.access.cel.evaluator import compile_expression
from bezel_localcloud.access.cel.syntax import CelError
from bezel_localcloud.access.credentials.issuer_keys import is_loopback
from bezel_localcloud.access.credentials.subject_tokens import SUBJECT
from bezel_localcloud.core.errors import NotServedError, invalid
from bezel_localcloud.core.json_types import Json

_LONGEST = {"displayName": 32, "description": 256}
_ATTRIBUTE = re.compile(r"google\.(?:subject|groups)|attribute\.[a-z0-9_]{1,100}")
_MOST_ATTRIBUTES, _LONGEST_MAPPING, _LONGEST_CONDITION = 50, 2048, 4096
_MOST_AUDIENCES, _LONGEST_AUDIENCE = 10, 256
_JWK = frozenset({"kty", "alg", "use", "kid", "n", "e", "x", "y", "crv"})
_ROOTS = ("assertion", "google", "attribute")
_ANY_ROOT = re.compile(rf"\b({'|'.join(_ROOTS)})\b")
# Issuers whose tokens anyone can get: Google requires a condition that reads a claim.
_SHARED_ISSUERS = ("https://token.actions.githubusercontent.com", "https://gitlab.com", "https://app.terraform.io")
_CONDITION_PAGE = "https://cloud.google.com/iam/docs/workload-identity-federation-with-deployment-pipelines#conditions"


def check_id(name: str, value: str) -> None:
    """Check the id of a new pool or provider.

    Raises:
        ApiError: INVALID_ARGUMENT.
    """
    if not re.fullmatch(r"[a-z0-9-]{4,32}", value) or value.startswith("gcp-"):
        text = f"Invalid ID {value!r}: 4 to 32 of the characters [a-z0-9-], and not the prefix 'gcp-'."
        raise invalid(text, (name, value))


def check_texts(body: Json) -> None:
    """Check the lengths of the texts that pools and providers have.

    Raises:
        ApiError: INVALID_ARGUMENT.
    """
    for name, longest in _LONGEST.items():
        if len(body.get(name, "")) > longest:
            raise invalid(f"{name} cannot exceed {longest} characters.", (name, "is too long"))


def check_provider(body: Json) -> None:
    """Check a provider as it is to be stored.

    Raises:
        ApiError: INVALID_ARGUMENT; NotServedError for an expression that localcloud does not evaluate.
    """
    check_texts(body)
    if not body.get("oidc"):
        raise invalid("Exactly one of aws, oidc, saml and x509 is required.", ("oidc", "is required"))
    _check_oidc(body["oidc"])
    _check_mapping(body.get("attributeMapping") or {})
    condition = body.get("attributeCondition", "")
    if len(condition) > _LONGEST_CONDITION:
        raise invalid(f"The attribute condition exceeds {_LONGEST_CONDITION} characters.", ("attribute_condition", ""))
    if body["oidc"]["issuerUri"].rstrip("/") in _SHARED_ISSUERS and not _ANY_ROOT.search(condition):
        text = "The attribute condition must reference one of the provider's claims. For more information, see "
        raise invalid(text + _CONDITION_PAGE, ("attribute_condition", condition))
    if condition:
        _check_expression("attribute_condition", condition, _ROOTS)


def _check_oidc(oidc: Json) -> None:
    issuer = oidc.get("issuerUri", "")
    parts = urlsplit(issuer)
    if not parts.hostname or not (parts.scheme == "https" or (parts.scheme == "http" and is_loopback(issuer))):
        raise invalid(f"The issuer URI {issuer!r} must be an HTTPS endpoint.", ("oidc.issuer_uri", issuer))
    audiences = oidc.get("allowedAudiences") or []
    if len(audiences) > _MOST_AUDIENCES or any(not 0 < len(item) <= _LONGEST_AUDIENCE for item in audiences):
        text = f"At most {_MOST_AUDIENCES} audiences of at most {_LONGEST_AUDIENCE} characters can be configured."
        raise invalid(text, ("oidc.allowed_audiences", "too many, or too long"))
    if keys := oidc.get("jwksJson"):
        _check_keys(keys)


def _check_keys(text: str) -> None:
    try:
        keys: Any = read_encodable_json(text)["keys"]
        fitting = bool(keys) and all(key.keys() <= _JWK and key["kty"] in {"RSA", "EC"} for key in keys)
    except (ValueError, LookupError, TypeError, AttributeError):
        fitting = False
    if not fitting:
        raise invalid("Input JWK is not in a valid json format.", ("oidc.jwks_json", "keys with other fields"))


def _check_mapping(mapping: Json) -> None:
    if SUBJECT not in mapping:
        text = f"Attribute mapping must include a mapping to {SUBJECT}."
        raise invalid(text, ("attribute_mapping", f"{SUBJECT} is required"))
    if len(mapping) > _MOST_ATTRIBUTES:
        raise invalid(f"At most {_MOST_ATTRIBUTES} attributes can be mapped.", ("attribute_mapping", "too many"))
    for attribute, expression in mapping.items():
        if not _ATTRIBUTE.fullmatch(attribute):
            text = f"Invalid attribute {attribute!r}: google.subject, google.groups or attribute.NAME in [a-z0-9_]."
            raise invalid(text, ("attribute_mapping", attribute))
        if len(expression) > _LONGEST_MAPPING:
            text = f"The mapping of {attribute} exceeds {_LONGEST_MAPPING} characters."
            raise invalid(text, ("attribute_mapping", attribute))
        _check_expression("attribute_mapping", expression, ("assertion",))


def _check_expression(field: str, expression: str, roots: tuple[str, ...]) -> None:
    try:
        compile_expression(expression, roots)
    except CelError as error:
        text = f"Failed to parse the expression {expression!r} of {field}: {error}."
        if "localcloud" in str(error):
            raise NotServedError(text) from None
        raise invalid(text, (field, str(error))) from None
