"""Headers that a user adds to every request: an API key from a variable of the environment, and others as given.

A key is read where it is needed, and is in no result: neither its value nor the names of headers are stored. Pure but
for the environment, which is passed in.
"""

import re
from collections.abc import Mapping, Sequence

from bezel_base.errors import NOT_SET, Problem, UserError

AUTHORIZATION = "Authorization"
IDENTITY_BESIDE_A_KEY = "X-Serverless-Authorization"
"""Cloud Run takes an identity from this header too, and passes Authorization on to the container."""

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[\t -~]*")
# Of the client itself: another value would break the connection or the body.
_OWN = frozenset(
    {"connection", "content-length", "content-type", "expect", "host", "te", "transfer-encoding", "upgrade"}
)


def own_headers(key_variable: str | None, texts: Sequence[str], environ: Mapping[str, str]) -> dict[str, str]:
    """The headers that the options name.

    Args:
        key_variable: Variable with an API key, which is sent as a bearer token.
        texts: Headers as `NAME: VALUE`.
        environ: The environment.

    Raises:
        UserError: A header or the variable cannot be used; the error has every problem, and no value of one.
    """
    problems: list[Problem] = []
    headers: dict[str, str] = {}
    for number, text in enumerate(texts, 1):
        name, colon, value = text.partition(":")
        name, value = name.strip(), value.strip()
        if not colon or not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
            # Not shown: the value may be a secret.
            problems.append(
                Problem(f"--header number {number}", None, "expected NAME: VALUE, ASCII.", "e.g. 'X-Tenant: blue'.")
            )
        elif name.lower() in _OWN:
            consequence = "the client sets it for each request."
            problems.append(Problem("--header", name, consequence, "leave it out."))
        elif name.lower() in {other.lower() for other in headers}:
            problems.append(Problem("--header", name, "it is given twice, and one of them would be lost.", "give one."))
        else:
            headers[name] = value
    if key_variable is not None:
        key = environ.get(key_variable, "").strip()
        if not key or not _VALUE.fullmatch(key):
            repair = "export the variable with the key, and give the variable's name here, not the key itself."
            variable = f"--api-key-env {_variable_name(key_variable)}"
            problems.append(Problem(variable, None if key else NOT_SET, "there is no key to send.", repair))
        elif AUTHORIZATION.lower() in {name.lower() for name in headers}:
            repair = "leave out one of them."
            problems.append(Problem("--header", AUTHORIZATION, "--api-key-env sets it too.", repair))
        headers[AUTHORIZATION] = f"Bearer {key}"
    if problems:
        raise UserError(*problems)
    return headers


def _variable_name(variable: str) -> str:
    """A name that can be a variable's; anything else may be the key itself."""
    return variable if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,60}", variable) else "(not a variable's name)"
