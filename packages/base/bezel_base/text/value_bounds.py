"""Bounds of a value that stands under a name: a quoted text, a word, a list, a header, the rest of a line.

Owns which values under the name of a secret are none: a switch, a reference, a sentence about the secret. Leaves out
the names (`named_values`). Works in linear time on any text. Pure.
"""

from __future__ import annotations

import re

from bezel_base.credentials.names import holds_secret, names_secret
from bezel_base.credentials.private_keys import HIDDEN

# A value as the only text of a map, e.g. `{"type": "string", "value": "..."}`, or on the next line in YAML.
_WRAPPED = re.compile(
    r"(?i)(?:\{\s*+|\r?\n[ \t]++)"
    r"(?:\\{0,15}+[\"']?(?!value)\w{1,20}\\{0,15}+[\"']?\s*+:\s*+\\{0,15}+[\"']?[\w.-]{0,40}+\\{0,15}+[\"']?\s*+,\s*+){0,4}"
    r"\\{0,15}+[\"']?(?:value|stringvalue|string_value|plaintext|plain|raw|default)\\{0,15}+[\"']?[ \t]*+[:=][ \t]*+"
)
_PLAIN = re.compile(r"(?:\[redacted\]|[^\s\"'`,;&)\]}\\]|\\(?![nrtu\"'\\]))+")
QUOTE = re.compile(r"[bBrRuUfF]{0,2}(\\*+)([\"'`])")
_QUOTE_OR_END = re.compile(r"(\\*+)([\"'`\n])")
_BRACKET_OR_END = re.compile(r"[\[\]{}\n]")
_LONGEST_LIST = 60
"""Lines and brackets of a list of several lines in which its end is searched for."""
_KNOWN_SCHEME = re.compile(r"(?i)(?:bearer|basic|digest|token|key)[ \t]+(?!(?:is|was|of|for|must|may|has)\b)")
_HEADER_SCHEME = re.compile(r"[A-Za-z][\w-]{0,40}[ \t]++")
_HEADER_VALUE = re.compile(r"(?:[^\n\"'`\\]|\\(?![nr\"']))+")
# What stands under the name of a credential in prose, code and usage texts and is none itself.
HARMLESS = re.compile(
    r"(?i)|true|false|yes|no|on|off|none|null|nil|undefined|unset|empty|redacted|[01]|\*+|x{3,}|\.{2,}|…|%s|%\(\w+\)s"
    r"|bearer|basic|digest|<[^>]*>?|\$.*|\{+.*|\(.*|\[redacted\].*|\[secret\]|projects/.*|\[\[:.*|\[?[\"']?urn:.*|your[_-].*|bezel:[a-z][\w.-]*|(?:self|cls|args|os|config|settings"
    r"|options|kwargs|params|environ)\..*"
)
_TYPE_TOKEN = re.compile(r"[a-z][\w-]*:[\w./-]*:\w+")
"""Type token of Pulumi, e.g. `gcp:storage/bucket:Bucket`, which stands under `token` in states and schemas."""
# The name of a secret, in Cloud Run's and Kubernetes' references to one.
_VERSION_NEXT = re.compile(r"\\*[\"']?\s*,\s*\\*[\"']?version\b")
_REFERENCE = re.compile(r"(?i)(?:KeyRef|secretRef|secret_key_ref)\b[\"'\\]*\s*[:=]?\s*\{\s*[\"'\\]*$")
# Words of a sentence about a secret: what follows `HF_TOKEN: ` is not its value.
_SENTENCE = re.compile(
    r"(?i)(?:an?|the|this|that|it|its|is|are|was|were|be|has|have|had|must|may|can|cannot|could|should|would|will|not?"
    r"|none|of|for|from|to|in|on|at|by|with|without|and|or|as|if|when|which|who|what|where|how|why|uses?|used|sets?"
    r"|unset|given|takes?|needs?|needed|requires?|required|expect\w*|missing|invalid|unknown|empty|wrong|names?|named"
    r"|values?|variables?|option|argument|secret|token|key|password|credentials?|file|path|there|only|also|write|see"
    r"|make|create|add|run|replace|remove|server|service|cloud|program|permission|access|failed|failure|error|found|read|put|text|stack|everyone|header)"
    r"(?=[ \t]+[A-Za-z`'\"(]|[.,:;](?:\s|$))"
)
_META = re.compile(r"\[?[A-Z]+(?:_[A-Z]+)*\]?")
"""A variable of a usage text, e.g. `--hf-token [HF_TOKEN]`."""
_NUMBER = re.compile(r"\d{1,7}(?:\.\d+)?(?:%|[a-z]{1,2})?")

Place = tuple[int, int]
"""First character of a value, and the one behind its last."""


def header_place(text: str, start: int) -> Place | None:
    """The place of a header's value; its scheme stays."""
    quote = QUOTE.match(text, start)
    if not quote and _SENTENCE.match(text, start) and not _KNOWN_SCHEME.match(text, start):
        return None
    start = quote.end() if quote else start
    scheme = _HEADER_SCHEME.match(text, start)
    if scheme and scheme[0].lower().startswith("digest"):  # has quotes of its own
        end = text.find("\n", scheme.end())
        return scheme.end(), len(text) if end < 0 else end
    match = _HEADER_VALUE.match(text, scheme.end() if scheme else start)
    value = match[0].rstrip() if match else ""
    if match is None or HARMLESS.fullmatch(value[:200]) or HIDDEN in value[:200]:
        return None
    return match.start(), match.start() + len(value)


def value_place(text: str, start: int, name: str, *, is_sentence: bool) -> Place | None:
    """The place of the value that begins at a place; None where it is no secret.

    Args:
        text: The whole text.
        start: Where the value begins.
        name: The name that it stands under.
        is_sentence: Whether the name may be the beginning of a sentence about the secret.
    """
    if wrapped := _WRAPPED.match(text, start):
        start = wrapped.end()
    if quote := QUOTE.match(text, start):
        first, last = quote.end(), _closing(text, quote)
        value = text[first:last]
        if is_harmless(name, value) or value.startswith("--") or _is_reference(text, first, last, name):
            return None
        return first, last
    if text.startswith(("[", "{"), start) and not text.startswith((HIDDEN, "[[:"), start):
        return _bracket(text, start, name)
    match = _PLAIN.match(text, start)
    if match is None or is_harmless(name, match[0]):
        return None
    if is_sentence and (_SENTENCE.match(text, start) or match[0].endswith(":")):
        return None
    return match.span()


def is_harmless(name: str, value: str) -> bool:
    """Whether a value under a name is no secret: a switch, a reference, a placeholder, a count of tokens."""
    if _META.fullmatch(value) and names_secret(value.strip("[]")):
        return True
    if HARMLESS.fullmatch(value[:200]) or (names_secret(name) and not holds_secret(name, value)):
        return True
    # A token is no short number, which counts tokens of text, and no token of a type.
    is_token = name.lower().rstrip("_0123456789").endswith("token")
    return is_token and bool(_NUMBER.fullmatch(value) or _TYPE_TOKEN.fullmatch(value))


def _is_reference(text: str, start: int, end: int, name: str) -> bool:
    """Whether a value is the name of a secret, not a secret."""
    if name.lower() != "secret":
        return False
    place = text.rfind("secret", 0, start) if start > 7 else start
    before = text[max(start - 60, 0) : max(place, 0)] if name == "secret" else ""
    return bool(_VERSION_NEXT.match(text, end)) or bool(_REFERENCE.search(before))


def _closing(text: str, quote: re.Match[str]) -> int:
    """Where a quoted value ends: at a quote behind as many backslashes, at an outer quote, or with its line.

    A text inside of JSON inside of JSON has its quotes behind 0, 1, 3, 7, ... backslashes.
    """
    depth, mark, place = len(quote[1]), quote[2], quote.end()
    for match in _QUOTE_OR_END.finditer(text, place):
        if match[2] == "\n":
            return match.start(2)
        backslashes = len(match[1])
        if match[2] == mark and (backslashes < depth or (backslashes - depth) % (2 * (depth + 1)) == 0):
            return match.start(2) - min(depth, backslashes)
    return len(text)


def _bracket(text: str, start: int, name: str) -> Place | None:
    """The place of a list, or of a map without further maps, as a value, brackets included."""
    if text[start] == "{" and name.lower().endswith(("secrets", "credentials", "key")):
        return None  # a map of names to names, or a description
    depth, first_line = 0, -1
    for number, match in enumerate(_BRACKET_OR_END.finditer(text, start)):
        mark, place = match[0], match.start()
        if mark == "\n":
            first_line = place if first_line < 0 else first_line
            if text[start + 1 : first_line].strip() or number > _LONGEST_LIST:
                break
            continue
        depth += 1 if mark in "[{" else -1
        if depth > 1 and mark == "{":
            return None
        if depth == 0:
            inside = text[start + 1 : place].strip()
            is_none = inside in ("", HIDDEN) or is_harmless(name, text[start : place + 1])
            return None if is_none else (start, place + 1)
    if text[start] == "{":
        return None
    end = first_line if first_line >= 0 else len(text)
    return (start, end) if end > start + 1 else None
