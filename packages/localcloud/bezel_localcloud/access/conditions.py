"""Conditions of IAM bindings: the common part of the Common Expression Language. Pure.

Supports `request.time` compared with `timestamp("...")`; `resource.name`, `resource.type` and `resource.service`
compared (== and !=) with a text; `.startsWith("...")` and `.endsWith("...")` of them; the limit on the roles that a
caller may grant, `api.getAttribute("iam.googleapis.com/modifiedGrantsByRole", []).hasOnly(["ROLE"])`; `&&`, `||`, `!`,
parentheses.
Any other expression is refused when a policy is written, so that localcloud grants nothing that Google would withhold.
"""

import functools
import operator
import re
from collections.abc import Callable
from datetime import datetime

# Name of a resource, Unix seconds, roles whose grants a setIamPolicy changes: [] in any other request, as with Google.
Request = tuple[str, float, frozenset[str]]
Test = Callable[[Request], bool]

_TOKEN = re.compile(
    r"""\s*(?:(?P<text>"[^"\\]*"|'[^'\\]*')|(?P<word>\.?[A-Za-z_][\w.]*)|(?P<sign>&&|\|\||[=!<>]=|[][!<>(),]))""",
    re.ASCII,
)
_LONGEST, _MOST_TOKENS = 10_000, 150  # characters of an expression, its words and signs
_LONGEST_SHOWN = 100  # characters of a part that is not understood
_COMPARISONS = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
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
    "projects": ("cloudresourcemanager", "Project"),
}
_MODIFIED = "iam.googleapis.com/modifiedGrantsByRole"
_ATTRIBUTES = frozenset({"resource.name", "resource.type", "resource.service"})


class ConditionError(Exception):
    """An unsupported expression, or a part of one; the text names it."""

    def __init__(self, text: str) -> None:
        super().__init__(text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}...")


def holds(expression: str, resource: str, now: float, modified: frozenset[str] = frozenset()) -> bool:
    """Whether a condition is fulfilled.

    Args:
        expression: Text of the condition.
        resource: Name of the requested resource, e.g. "projects/_/buckets/b/objects/o".
        now: Unix seconds.
        modified: Roles whose grants the request changes.

    Raises:
        ConditionError: If the expression is not understood.
    """
    return parsed(expression)((resource, now, modified))


@functools.lru_cache(maxsize=2048)  # each request evaluates those of the policies above its resource
def parsed(expression: str) -> Test:
    """Return an expression as a function of the requested resource and time.

    Raises:
        ConditionError: If it is not understood.
    """
    parser = _Parser(expression)
    test = parser.either()
    if parser.left():
        raise ConditionError(parser.rest())
    return test


class _Parser:
    """Recursive descent over the tokens."""

    def __init__(self, expression: str) -> None:
        if len(expression) > _LONGEST:
            raise ConditionError(f"an expression of more than {_LONGEST} characters")
        self._tokens: list[str] = []
        position, text = 0, expression.rstrip()
        while position < len(text):
            match = _TOKEN.match(text, position)
            if match is None:
                raise ConditionError(text[position:])
            self._tokens.append(match[0].strip())
            if len(self._tokens) > _MOST_TOKENS:
                raise ConditionError(f"an expression of more than {_MOST_TOKENS} words and signs")
            position = match.end()

    def left(self) -> bool:
        return bool(self._tokens)

    def rest(self) -> str:
        return " ".join(self._tokens) or "the end"

    def either(self) -> Test:
        tests = [self._both()]
        while self._accept("||"):
            tests.append(self._both())
        return lambda request: any(test(request) for test in tests)

    def _both(self) -> Test:
        tests = [self._single()]
        while self._accept("&&"):
            tests.append(self._single())
        return lambda request: all(test(request) for test in tests)

    def _single(self) -> Test:
        if self._accept("!"):
            test = self._single()
            return lambda request: not test(request)
        if self._accept("("):
            test = self.either()
            self._expect(")")
            return test
        return self._comparison()

    def _comparison(self) -> Test:
        rest, word = self.rest(), self._next()
        if word == "api.getAttribute":
            return self._roles(rest)
        attribute, _, function = word.rpartition(".")
        if attribute in _ATTRIBUTES and function in {"startsWith", "endsWith"}:
            self._expect("(")
            text = self._text()
            self._expect(")")
            begins = function == "startsWith"
            return lambda request: (str.startswith if begins else str.endswith)(_attribute(attribute, request[0]), text)
        sign = self._next()
        if word in _ATTRIBUTES and sign in {"==", "!="}:
            text = self._text()
            return lambda request: (_attribute(word, request[0]) == text) == (sign == "==")
        if word == "request.time" and sign in _COMPARISONS:
            self._expect("timestamp")
            self._expect("(")
            moment = _moment(self._text())
            self._expect(")")
            return lambda request: bool(_COMPARISONS[sign](request[1], moment))
        raise ConditionError(rest)

    def _roles(self, rest: str) -> Test:
        """The rest of a limit on the roles that may be granted."""
        self._expect("(")
        if self._text() != _MODIFIED:
            raise ConditionError(rest)
        for token in (",", "[", "]", ")", ".hasOnly", "(", "["):
            self._expect(token)
        roles = {self._text()}
        while self._accept(","):
            roles.add(self._text())
        self._expect("]")
        self._expect(")")
        return lambda request: request[2] <= roles

    def _accept(self, token: str) -> bool:
        if self._tokens[:1] == [token]:
            del self._tokens[0]
            return True
        return False

    def _expect(self, token: str) -> None:
        if not self._accept(token):
            raise ConditionError(self.rest())

    def _next(self) -> str:
        if not self._tokens:
            raise ConditionError(self.rest())
        return self._tokens.pop(0)

    def _text(self) -> str:
        if not self._tokens or self._tokens[0][0] not in "\"'":
            raise ConditionError(self.rest())
        return self._next()[1:-1]


def _moment(text: str) -> float:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ConditionError(text) from None
    if moment.tzinfo is None:
        raise ConditionError(text)
    return moment.timestamp()


def _attribute(name: str, resource: str) -> str:
    if name == "resource.name":
        return resource
    owner, is_object, _ = resource.partition("/objects/")
    collections = [*owner.split("/")[::2], *(["objects"] if is_object else [])]
    service, kind = next((_TYPES[part] for part in reversed(collections) if part in _TYPES), ("", ""))
    address = f"{service}.googleapis.com"
    return address if name == "resource.service" else f"{address}/{kind}"
