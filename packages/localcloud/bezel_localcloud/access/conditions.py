"""Conditions of IAM bindings: what they may read and call, and their evaluation for a request. Pure.

They are expressions of the Common Expression Language (`bezel_localcloud.access.cel`) over `request.time`;
`resource.name`, `resource.type` and `resource.service`; and the roles whose grants a request changes,
`api.getAttribute("iam.googleapis.com/modifiedGrantsByRole", []).hasOnly(["ROLE"])`. The operators and functions are
those that Google documents for these attributes. Any other expression is refused when a policy is written, so that
localcloud grants nothing that Google would withhold.

Source: cloud.google.com/iam/docs/conditions-attribute-reference, as of 2026-04.
"""

import functools

from bezel_localcloud.access.cel.checker import type_of
from bezel_localcloud.access.cel.evaluator import Expression, compile_tree
from bezel_localcloud.access.cel.parser import Bounds, parse
from bezel_localcloud.access.cel.syntax import (
    CelError,
    Comprehension,
    FunctionCall,
    ListOf,
    Literal,
    MapOf,
    Name,
    Node,
    Presence,
    walk,
)
from bezel_localcloud.access.cel.times import SECOND, Timestamp
from bezel_localcloud.access.cel.types import (
    BOOL,
    DURATION,
    INT,
    LOGIC,
    OF_TIMESTAMPS,
    STRING,
    SUMS_OF_TIMES,
    TIMESTAMP,
    Declarations,
    list_of,
    record,
    signatures,
)
from bezel_localcloud.access.cel.values import EvaluationError
from bezel_localcloud.core.work import TooMuchWorkError

_BOUNDS = Bounds(longest=10_000, most_tokens=300)
_LONGEST_SHOWN = 100  # characters of a part that is not understood
# The types of the resources that localcloud has: the collection in a name -> (service, type).
_TYPES = {
    "objects": ("storage", "Object"),
    "buckets": ("storage", "Bucket"),
    "versions": ("secretmanager", "SecretVersion"),
    "cryptoKeyVersions": ("cloudkms", "CryptoKeyVersion"),
    "cryptoKeys": ("cloudkms", "CryptoKey"),
    "keyRings": ("cloudkms", "KeyRing"),
    "secrets": ("secretmanager", "Secret"),
    "repositories": ("artifactregistry", "Repository"),
    "services": ("run", "Service"),
    "serviceAccounts": ("iam", "ServiceAccount"),
    "rrsets": ("dns", "ResourceRecordSet"),
    "managedZones": ("dns", "ManagedZone"),
    "projects": ("cloudresourcemanager", "Project"),
}
_MODIFIED = "iam.googleapis.com/modifiedGrantsByRole"
_API, _ROLES = record("api", {}), list_of(STRING)
_COMPARED = ((INT, INT), (TIMESTAMP, TIMESTAMP))
_DECLARATIONS = Declarations(
    {
        "request": record("request", {"time": TIMESTAMP}),
        "resource": record("resource", {"name": STRING, "type": STRING, "service": STRING}),
        "api": _API,
    },
    {
        **LOGIC,
        **dict.fromkeys(("==", "!="), signatures(BOOL, (STRING, STRING), *_COMPARED)),
        **dict.fromkeys(("<", "<=", ">", ">="), signatures(BOOL, *_COMPARED)),
        **SUMS_OF_TIMES,
        "date": signatures(TIMESTAMP, (STRING,)),
        "timestamp": signatures(TIMESTAMP, (STRING,)),
        "duration": signatures(DURATION, (STRING,)),
        **OF_TIMESTAMPS,
        **dict.fromkeys((".startsWith", ".endsWith"), signatures(BOOL, (STRING, STRING))),
        ".extract": signatures(STRING, (STRING, STRING)),
        ".getAttribute": signatures(_ROLES, (_API, STRING, _ROLES)),
        ".hasOnly": signatures(BOOL, (_ROLES, _ROLES)),
    },
)


class ConditionError(Exception):
    """An unsupported expression, or a part of one; the text names it."""

    def __init__(self, text: str) -> None:
        super().__init__(text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}...")


def holds(expression: str, resource: str, now: float, modified: frozenset[str] = frozenset()) -> bool:
    """Whether a condition is fulfilled; one without a value for this request is not.

    Args:
        expression: Text of the condition.
        resource: Name of the requested resource, e.g. "projects/_/buckets/b/objects/o".
        now: Unix seconds.
        modified: Roles whose grants a setIamPolicy changes; none in any other request, as with Google.

    Raises:
        ConditionError: If the expression is not understood.
    """
    condition = compile_condition(expression)
    service, kind = _service_and_type(resource)
    values = {
        "request": {"time": Timestamp(int(now * SECOND))},
        "resource": {"name": resource, "service": service, "type": kind},
        "api": {_MODIFIED: list(modified)},
    }
    try:
        return condition(values) is True
    except (EvaluationError, TooMuchWorkError):
        return False


@functools.lru_cache(maxsize=2048)  # each request evaluates those of the policies above its resource
def compile_condition(expression: str) -> Expression:
    """A condition as a function of the attributes of a request.

    Raises:
        ConditionError: It is not understood.
    """
    try:
        tree = parse(expression, _BOUNDS)
        _check_type(tree)
        _check_attributes(tree)
        return compile_tree(tree)
    except CelError as error:
        raise ConditionError(str(error)) from None


def _check_type(tree: Node) -> None:
    type_ = type_of(tree, _DECLARATIONS)
    if type_ != BOOL:
        raise CelError(f"the expression is neither true nor false: its type is {type_}")


def _check_attributes(tree: Node) -> None:
    """Check what the types of a condition do not tell: which attributes it reads."""
    nodes = list(walk(tree))
    if not any(isinstance(node, Name) for node in nodes):
        raise CelError("the expression reads no attribute of a request")
    for node in nodes:
        match node:
            case Presence() | MapOf() | Comprehension():
                raise CelError("localcloud evaluates no maps and no macros in a condition of a binding")
            case FunctionCall(".getAttribute", (_, name, default)):
                if name != Literal(_MODIFIED) or default != ListOf(()):
                    raise CelError(f"api.getAttribute() takes '{_MODIFIED}' and the empty list")
            case FunctionCall(".hasOnly", (_, roles)):
                texts = isinstance(roles, ListOf) and roles.items and all(isinstance(r, Literal) for r in roles.items)
                if not texts:
                    raise CelError("hasOnly() takes a list of the roles that may be granted")


@functools.lru_cache(maxsize=1024)
def _service_and_type(resource: str) -> tuple[str, str]:
    owner, is_object, _ = resource.partition("/objects/")
    collections = [*owner.split("/")[::2], *(["objects"] if is_object else [])]
    service, kind = next((_TYPES[part] for part in reversed(collections) if part in _TYPES), ("", ""))
    return f"{service}.googleapis.com", f"{service}.googleapis.com/{kind}"
