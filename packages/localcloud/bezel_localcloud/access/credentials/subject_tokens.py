"""Tokens of outside issuers: signature, times, issuer and audience, and the attributes that a provider maps. Pure.

Owns the checks, in Google's order, and their errors. Leaves out where the keys come from and what the identity may do.
A text is Google's where one is publicly reported (marked below); the others are localcloud's own, in the same form.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from bezel_localcloud.access.cel.evaluator import Expression, compile_expression
from bezel_localcloud.access.cel.values import EvaluationError, Meter
from bezel_localcloud.access.credentials.claim_times import is_time
from bezel_localcloud.access.credentials.token_parts import TokenParts, from_base64url, token_parts
from bezel_localcloud.core.json_types import Json
from bezel_localcloud.core.work import TooMuchWorkError

SUBJECT = "google.subject"
GROUPS = "google.groups"
_ALGORITHMS = {"RS256": "RSA", "ES256": "EC"}
_SKEW = 300.0  # seconds by which an issuer's clock may be ahead
_LONGEST_SUBJECT = 127  # bytes
_LARGEST_ATTRIBUTES = 8192  # bytes
_MOST_KEYS = 20  # of one id that a token is tried with
_LONGEST_EXPONENT, _LONGEST_MODULUS = 64, 8192  # bits of an RSA key: a longer one takes seconds
_COORDINATE = 32  # bytes of a number of the curve P-256


class ExchangeError(Exception):
    """A refused exchange, as OAuth words it.

    Attributes:
        error: Its code, e.g. "invalid_grant".
    """

    def __init__(self, error: str, description: str) -> None:
        super().__init__(description)
        self.error = error


class UnknownKeyError(ExchangeError):
    """The token names a key that the issuer's keys do not have: they may have been changed."""


class Attributes(NamedTuple):
    """What a provider maps a token to: `google.subject`, `google.groups`, and its own attributes by their names."""

    subject: str
    groups: list[str]
    custom: dict[str, str]


def claims_of(token: str) -> tuple[Json, Json]:
    """Return header and claims of a token, not verified.

    Raises:
        ExchangeError: It is not a JSON Web Token.
    """
    parts = _parts(token)
    return parts.header, parts.claims


def _parts(token: str) -> TokenParts:
    try:
        return token_parts(token)
    except ValueError:
        raise ExchangeError("invalid_grant", "Unable to parse the ID Token.") from None


def check_issuer(claims: Json, issuer: str) -> None:
    """Check that a token is of the provider's issuer, before its keys are fetched.

    Raises:
        ExchangeError: It is of another one.
    """
    token_issuer = str(claims.get("iss", ""))
    if token_issuer != issuer:  # Google's text
        text = f"The issuer in ID Token {token_issuer} does not match the expected ones: {issuer}"
        raise ExchangeError("invalid_grant", text)


def verify(token: str, keys: Sequence[Mapping[str, Any]], audiences: Sequence[str], now: float) -> Json:
    """Return the claims of a valid token.

    Args:
        token: The token.
        keys: The issuer's public keys, as JSON Web Keys.
        audiences: The audiences that the provider accepts.
        now: Unix seconds.

    Raises:
        UnknownKeyError: None of the keys is the token's.
        ExchangeError: Signature, times or audience are wrong.
    """
    parts = _parts(token)
    claims = parts.claims
    _check_signature(parts, keys)
    _check_times(claims, now)
    token_audiences = claims.get("aud")
    token_audiences = token_audiences if isinstance(token_audiences, list) else [token_audiences]
    if not set(audiences) & {item for item in token_audiences if isinstance(item, str)}:  # Google's text
        listed = ", ".join(str(item) for item in token_audiences)
        text = f"The audience in ID Token [{listed}] does not match the expected audience {', '.join(audiences)}."
        raise ExchangeError("invalid_grant", text)
    return claims


def map_attributes(claims: Json, mapping: Mapping[str, str], condition: str) -> Attributes:
    """Return the attributes of a token's claims.

    Args:
        claims: The claims.
        mapping: Attribute -> expression; both were checked when the provider was written.
        condition: The provider's condition; "" for none.

    Raises:
        ExchangeError: An attribute has no value or the wrong kind, the condition is not fulfilled, or all expressions
            together take more work than they may.
    """
    try:
        return _attributes_within(claims, mapping, condition, Meter())
    except TooMuchWorkError as error:
        text = f"localcloud does not finish the provider's mapping and condition for this credential: {error}."
        raise ExchangeError("invalid_request", text) from None


def _attributes_within(claims: Json, mapping: Mapping[str, str], condition: str, meter: Meter) -> Attributes:
    compiled = {key: compile_expression(expression, ["assertion"]) for key, expression in mapping.items()}
    values = {key: _value(key, expression, claims, meter) for key, expression in compiled.items()}
    subject, groups = values[SUBJECT], values.get(GROUPS, [])
    if not subject:  # Google's text
        raise ExchangeError("unauthorized_client", f"Could not obtain a value for {SUBJECT} from the given credential.")
    if len(subject.encode()) > _LONGEST_SUBJECT:
        text = f"The size of mapped attribute {SUBJECT} exceeds the {_LONGEST_SUBJECT} bytes limit. Either modify your "
        text += "attribute mapping or the incoming assertion to produce a mapped attribute that is less than "
        raise ExchangeError("invalid_request", f"{text}{_LONGEST_SUBJECT} bytes.")  # Google's text
    if len(json.dumps(values).encode()) > _LARGEST_ATTRIBUTES:
        raise ExchangeError("invalid_request", "The total size of all mapped attributes exceeds the 8 KB limit.")
    custom = {key.removeprefix("attribute."): value for key, value in values.items() if key.startswith("attribute.")}
    if condition:
        variables = {"google": {"subject": subject, "groups": groups}, "attribute": custom, "assertion": claims}
        try:
            fulfilled = compile_expression(condition, variables)(variables, meter)
        except EvaluationError:
            fulfilled = False
        if fulfilled is not True:  # Google's text
            text = "The given credential is rejected by the attribute condition."
            raise ExchangeError("unauthorized_client", text)
    return Attributes(subject, groups, custom)


def _value(attribute: str, expression: Expression, claims: Json, meter: Meter) -> Any:
    try:
        value = expression({"assertion": claims}, meter)
    except EvaluationError:
        value = None
    if value is None:
        if attribute == GROUPS:
            return []
        text = f"Could not obtain a value for {attribute} from the given credential."  # Google's text
        raise ExchangeError("unauthorized_client", text)
    if attribute == GROUPS:
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise ExchangeError("unauthorized_client", f"The mapped attribute '{GROUPS}' must be a list of STRING.")
        return value
    if not isinstance(value, str):  # Google's text
        raise ExchangeError("unauthorized_client", f"The mapped attribute '{attribute}' must be of type STRING.")
    return value


def _check_signature(token: TokenParts, keys: Sequence[Mapping[str, Any]]) -> None:
    header = token.header
    algorithm = header.get("alg")
    # Never by the token's own word: `none`, or a public key as a shared secret.
    if not isinstance(algorithm, str) or algorithm not in _ALGORITHMS:
        shown = str(algorithm)[:40]
        text = f"The signing algorithm {shown} of the ID Token is not supported. Use one of: RS256, ES256."
        raise ExchangeError("invalid_grant", text)
    fitting = [key for key in keys if key.get("kty") == _ALGORITHMS[algorithm]]
    named = [key for key in fitting if key.get("kid") == header.get("kid")]
    if not named:
        raise UnknownKeyError("invalid_grant", "No key of the issuer has the id that the ID Token names.")
    if not any(_fits(key, token.signed.encode(), token.signature) for key in named[:_MOST_KEYS]):
        raise ExchangeError("invalid_grant", "Unable to verify the ID Token signature.")


def _fits(key: Mapping[str, Any], signed: bytes, signature: bytes) -> bool:
    try:
        if key["kty"] == "RSA":
            exponent, modulus = _number(key["e"]), _number(key["n"])
            if exponent.bit_length() > _LONGEST_EXPONENT or modulus.bit_length() > _LONGEST_MODULUS:
                return False
            public = rsa.RSAPublicNumbers(exponent, modulus).public_key()
            public.verify(signature, signed, padding.PKCS1v15(), hashes.SHA256())
        else:
            curve = ec.EllipticCurvePublicNumbers(_number(key["x"]), _number(key["y"]), ec.SECP256R1()).public_key()
            halves = (int.from_bytes(half, "big") for half in (signature[:_COORDINATE], signature[_COORDINATE:]))
            curve.verify(encode_dss_signature(*halves), signed, ec.ECDSA(hashes.SHA256()))
    except (InvalidSignature, KeyError, TypeError, ValueError):
        return False
    return True


def _check_times(claims: Json, now: float) -> None:
    times = {name: claims.get(name) for name in ("iat", "exp", "nbf")}
    if not is_time(times["iat"]) or not is_time(times["exp"]):
        raise ExchangeError("invalid_grant", "The ID Token must have the claims iat and exp, in seconds.")
    if times["nbf"] is not None and not is_time(times["nbf"]):
        raise ExchangeError("invalid_grant", "The claim nbf of the ID Token must be a time, in seconds.")
    begins = times["iat"] if times["nbf"] is None else times["nbf"]
    if now >= float(times["exp"] or 0):  # Google's text
        raise ExchangeError("invalid_grant", f"ID Token issued at {times['iat']} is stale to sign-in.")
    if max(float(times["iat"] or 0), float(begins or 0)) > now + _SKEW:
        raise ExchangeError("invalid_grant", f"ID Token is not valid before {begins}.")


def _number(text: str) -> int:
    return int.from_bytes(from_base64url(text), "big")
