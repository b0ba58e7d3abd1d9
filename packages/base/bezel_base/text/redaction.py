r"""Redaction: any text without what has the form, or stands under the name, of a credential.

The one way by which problems, logs, reports, comments and results hide credentials. Owns where a value stands: after a
name (`DB_PASS=...`, YAML, JSON at any level of escaping, XML), after an option (on a command line, in a list of
arguments), as the password of a URL, in a header. Forms are in `credential_forms`, names in `secret_names`. Works in
linear time on any text. Pure.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import TYPE_CHECKING, Any

from bezel_base.text.credential_forms import replace_forms
from bezel_base.text.private_keys import HIDDEN, without_private_keys
from bezel_base.text.secret_names import holds_secret, names_secret
from bezel_base.text.secret_places import places_of_values

if TYPE_CHECKING:
    from collections.abc import Callable

PLACEHOLDER = HIDDEN
_SHORTEST = 6
"""Characters of a known secret that is replaced: a shorter one would eat ordinary words."""

_PASSWORD_OF_URL = re.compile(r"(:(?:\\?/){2}[^\s/:@\"'<>]*:)([^\s/]+)(?=@)")
_USER_OF_URL = re.compile(r"(:(?:\\?/){2})([^\s/:@\"'<>]{20,}+)(?=@)")
_DATA_SOURCE = re.compile(r"(?<![\w.-])([\w.-]++:)([^\s@/:\"']++)(?=@(?:tcp|unix)\()")
_USER_OF_CURL = re.compile(r"((?<![\w-])(?:-u ?|--user[ =])[\"']?[^\s:\"']{1,64}:)(?!\d+(?!\S))([^\s\"']++)")
_SCHEME = re.compile(r"(?i)(?<![\w-])(bearer|basic)((?:[ \t]|%20|\+)+|[:=][ \t]*+)")
_SCHEME_VALUE = re.compile(r"[\w.~+/=%-]++")
_OF_SCHEME = re.compile(
    r"(?i)auth\w*|credentials?|header|headers|scheme|tokens?|realm=.*|error=.*|scope=.*|format|or|%[sdv]"
)
# A name and what stands between it and its value; the name is taken whole, so no character is read twice.
_NAMED = re.compile(
    r"(?<![\w.-])(?P<name>[\w.-]++)(?P<quote>\\*+[\"'`]?)(?:\[[\w.-]{0,20}+\]|\])?"
    r"(?P<sep>[ \t]*+(?:=>|:=|==?|::(?=[ \t])|:(?!//)|%(?:25)*3[Dd])[ \t]*+)"
)
_ELEMENT = re.compile(r"<([\w.:-]++)>([^<\n]++)(?=</)")
_OPTION = re.compile(
    r"(?<![\w-])--?(?P<name>[A-Za-z_][\w.-]*+)(?P<sep>[ \t]++|\\*+[\"'][ \t]*+,\s*+|\\*+[\"'][ \t]++)(?=[^\s-])"
)
_PAIR = re.compile(r"\(\s*+b?\\*+[\"'](?P<name>[\w.-]++)\\*+[\"']\s*+,\s*+(?=b?\\*+[\"'])")
_ENTRY = re.compile(
    r"(?i)(?<![\w])(?:name|key)\\*+[\"']?\s*+[:=]\s*+\\*+[\"']?(?P<name>[\w.-]++)\\*+[\"']?[\s,]*+-?\s*+\\*+[\"']?"
    r"value\\*+[\"']?\s*+[:=]\s*+"
)
_REVERSED_ENTRY = re.compile(
    r"(?i)(?<!\w)value\\{0,15}+[\"']?\s*+[:=]\s*+(?:\\{0,15}+[\"'])?(?P<value>[^\n\"'\\,{}]{1,300}+)\\{0,15}+[\"']?[\s,]*+\\{0,15}+[\"']?"
    r"(?:name|key)\\{0,15}+[\"']?\s*+[:=]\s*+\\{0,15}+[\"']?(?P<name>[\w.-]++)"
)
# A value as the only text of a map, e.g. `{"type": "string", "value": "..."}`, or on the next line in YAML.
_WRAPPED = re.compile(
    r"(?i)(?:\{\s*+|\r?\n[ \t]++)"
    r"(?:\\{0,15}+[\"']?(?!value)\w{1,20}\\{0,15}+[\"']?\s*+:\s*+\\{0,15}+[\"']?[\w.-]{0,40}+\\{0,15}+[\"']?\s*+,\s*+){0,4}"
    r"\\{0,15}+[\"']?(?:value|stringvalue|string_value|plaintext|plain|raw|default)\\{0,15}+[\"']?[ \t]*+[:=][ \t]*+"
)
_BLOCK = re.compile(r"[|>][-+0-9]{0,2}[ \t]*(?:#[^\n]*)?\r?\n")
_NEXT_LINE = re.compile(r"\r?\n(?:[ \t]++(?:-[ \t]++)?|-[ \t]++|(?=\\*[\"']))")
_ONE_WORD = re.compile(r"(?:\\*[\"'][^\n]*|[^\s\"'{\[:#,][^\s:]*(?::[^\s:]+)*)[ \t]*+,?[ \t]*+\r?(?=\n|$)")
_LINE = re.compile(r"([ \t]*)([^\n]*)(?:\n|$)")
_PLAIN = re.compile(r"(?:\[redacted\]|[^\s\"'`,;&)\]}\\]|\\(?![nrtu\"'\\]))+")
_QUOTE = re.compile(r"[bBrRuUfF]{0,2}(\\*+)([\"'`])")
_QUOTE_OR_END = re.compile(r"(\\*+)([\"'`\n])")
_BRACKET_OR_END = re.compile(r"[\[\]{}\n]")
_LONGEST_LIST = 60
"""Lines and brackets of a list of several lines in which its end is searched for."""
_LONGEST_MAP = 240
"""Characters before a name in which the map is looked for that it stands in."""
_SIGNATURES = re.compile(r"(?i)(?:.*[^a-z])?(?:signature|sig|hmac|assertion|sessionid|sid)")
_HEADERS = re.compile(r"(?i)(?:.*-)?(?:authorization|cookie|assertion)")
_KNOWN_SCHEME = re.compile(r"(?i)(?:bearer|basic|digest|token|key)[ \t]+(?!(?:is|was|of|for|must|may|has)\b)")
_HEADER_SCHEME = re.compile(r"[A-Za-z][\w-]{0,40}[ \t]++")
_HEADER_VALUE = re.compile(r"(?:[^\n\"'`\\]|\\(?![nr\"']))+")
_QUERY_KEYS = re.compile(r"(?i)key|code|auth")
_HARMLESS = re.compile(
    r"(?i)|true|false|yes|no|on|off|none|null|nil|undefined|unset|empty|redacted|[01]|\*+|x{3,}|\.{2,}|…|%s|%\(\w+\)s"
    r"|bearer|basic|digest|<[^>]*>?|\$.*|\{+.*|\(.*|\[redacted\].*|\[secret\]|projects/.*|\[\[:.*|\[?[\"']?urn:.*|your[_-].*|bezel:[a-z][\w.-]*|(?:self|cls|args|os|config|settings"
    r"|options|kwargs|params|environ)\..*"
)
_TYPE_TOKEN = re.compile(r"[a-z][\w-]*:[\w./-]*:\w+")
"""Type token of Pulumi, e.g. `gcp:storage/bucket:Bucket`, which stands under `token` in states and schemas."""
# The name of a secret, in Cloud Run's and Kubernetes' references to one.
_VERSION_NEXT = re.compile(r"\\*[\"']?\s*,\s*\\*[\"']?version\b")
_REFERENCE = re.compile(r"(?i)(?:KeyRef|secretRef|secret_key_ref)\b[\"'\\]*\s*[:=]?\s*\{\s*[\"'\\]*$")
# Below `secrets: {` and `secrets:`, variables have the names of secrets as values (Secret Manager's rule).
_IN_SECRETS = re.compile(
    r"(?<![\w-])secrets\\*[\"']?[ \t]*:[ \t]*(?:\{[^{}]*|\r?\n(?:[ \t]+[\w.-]+:[ \t]+[^\s:]+[ \t]*\r?\n)*[ \t]+)$"
)
_SECRET_ID = re.compile(r"[A-Za-z][\w-]{0,254}", re.ASCII)
_QUOTE_END = re.compile(r"\\*[\"']")
_PLAIN_END = re.compile(r"[ \t]*(?:[,}\r\n]|$)")
_PERMISSION = re.compile(r"(?:write|read|none)(?![\w.-])")
"""Values of `id-token` below `permissions` of a workflow."""
# A sentence that says that there is no token: a reason follows it.
_NO_TOKEN_BEFORE = re.compile(
    r"(?i)(?<!\w)(?:no|without(?: an?)?|(?:cannot|not)(?: be)? (?:get|got|obtain(?:ed)?|fetch(?:ed)?|read)(?: \w+)?)"
    r"(?: [a-z]+){0,2}[ ]$"
)
_REASON = re.compile(r"(?:[A-Za-z]+|\d{3}|\[Errno)(?=[\s.,:;)]|$)")
_WORD_BEFORE = re.compile(r"([A-Za-z]+)[ \t]$")
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
_KEY_FILE = re.compile(r"\"private_key\"\s*:")
_NUMBER = re.compile(r"\d{1,7}(?:\.\d+)?(?:%|[a-z]{1,2})?")


def redact(text: str, *secrets: str) -> str:
    """A text without anything in the form or under the name of a credential, and without the given values.

    Args:
        text: Any text; it may have several lines.
        secrets: Values known to be secret; those shorter than six characters are left alone.
    """
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= _SHORTEST:
            text = text.replace(secret, PLACEHOLDER)
    return _without_named(redact_forms(text))


def is_secret(name: str, value: str) -> bool:
    """Whether a value is a secret in plain text, by the name that it stands under, by its form or by a name in it.

    A value of one line may hold entries, as `Server=x;Password=y` and `host=x password=y` do; a script is code.
    """
    without = redact_forms(value) if "\n" in value else redact(value)
    return holds_secret(name, value) or without != value or _KEY_FILE.search(value) is not None


def redact_forms(text: str) -> str:
    """A text without what is a credential wherever it stands; what only has the name of one stays, as in code."""
    text = replace_forms(without_private_keys(text), PLACEHOLDER)
    if "@" in text:
        for pattern in (_PASSWORD_OF_URL, _USER_OF_URL, _DATA_SOURCE):
            text = pattern.sub(rf"\g<1>{PLACEHOLDER}", text)
    if "-u" in text:
        text = _USER_OF_CURL.sub(rf"\g<1>{PLACEHOLDER}", text)
    return _without_schemes(text)


def redact_values(content: Any) -> Any:
    """JSON content with every text in it redacted, keys as they are."""
    return _redacted_values(content, redact)


def redact_forms_of_values(content: Any) -> Any:
    """JSON content with every text in it as of `redact_forms`."""
    return _redacted_values(content, redact_forms)


def _redacted_values(content: Any, redaction: Callable[[str], str]) -> Any:
    if isinstance(content, str):
        return redaction(content)
    if isinstance(content, dict):
        return {key: _redacted_values(value, redaction) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_redacted_values(value, redaction) for value in content]
    return content


def _without_schemes(text: str) -> str:
    """A text without what follows `Bearer`, and what follows `Basic` where it is a user and a password."""
    parts, end = [], 0
    for found in _SCHEME.finditer(text):
        value = _SCHEME_VALUE.match(text, found.end())
        if found.start() < end or value is None or _OF_SCHEME.fullmatch(value[0]):
            continue
        if found[1].lower() == "basic" and not _is_user_and_password(value[0]):
            continue
        parts += [text[end : found.end()], PLACEHOLDER]
        end = value.end()
    return "".join([*parts, text[end:]])


def _is_user_and_password(value: str) -> bool:
    try:
        return b":" in base64.b64decode(value[:4096].rstrip("=") + "=" * (-len(value[:4096].rstrip("=")) % 4))
    except (binascii.Error, ValueError):
        return False


def _without_named(text: str) -> str:
    """A text without the values that stand under names of secrets."""
    places = [*_named(text), *_elements(text), *_after_names(_OPTION, text)]
    places += [*_after_names(_PAIR, text), *_after_names(_ENTRY, text), *_before_names(text)]
    values = (_value(text, start, "password", is_sentence=True) for start in places_of_values(text))
    places += [place for place in values if place]
    parts, end = [], 0
    for start, stop in sorted(places):
        if stop <= end:
            continue
        parts += [text[end : max(start, end)], PLACEHOLDER if start >= end else ""]
        end = stop
    return "".join([*parts, text[end:]])


Place = tuple[int, int]


def _named(text: str) -> list[Place]:
    places: list[Place] = []
    end = 0
    for found in _NAMED.finditer(text):
        name, separator = _name_of(text, found), found["sep"]
        if found.end() <= end or _is_other(text, found):
            continue  # within a value that is hidden, or no name of a value
        place: Place | None = None
        if below := _below(text, found, name):
            places += below
            end = below[-1][1]
            continue
        if _HEADERS.fullmatch(name[-80:]):
            place = _header(text, found.end())
        elif _is_of_workflow(text, found, name) or _names_a_secret(text, found):
            continue
        elif names_secret(name) or (("=" in separator or "%" in separator) and _is_parameter(text, found)):
            place = _value(text, found.end(), name, is_sentence=":" in separator and separator[-1:] in (" ", "\t"))
        if place:
            places.append(place)
            end = place[1]
    return places


def _below(text: str, found: re.Match[str], name: str) -> list[Place]:
    """The places of the value that stands on the lines after a name's, as YAML and JSON allow."""
    start = found.end()
    if ":" not in found["sep"] or not names_secret(name) or name.lower() in ("secret", "secrets"):
        return []
    if block := _BLOCK.match(text, start):
        line_of_name = text[text.rfind("\n", 0, start) + 1 : start]
        indent = len(line_of_name) - len(line_of_name.lstrip(" \t"))
        return _of_block(text, block.end(), indent)
    places: list[Place] = []
    line = _NEXT_LINE.match(text, start)
    while line and _ONE_WORD.match(text, line.end()):
        if place := _value(text, line.end(), name, is_sentence=True):
            places.append(place)
        if "-" not in line[0]:
            break
        line = _NEXT_LINE.match(text, _end_of_line(text, line.end()))
        line = line if line and "-" in line[0] else None
    return places


def _end_of_line(text: str, start: int) -> int:
    end = text.find("\n", start)
    return len(text) if end < 0 else end


def _of_block(text: str, start: int, indent: int) -> list[Place]:
    """The place of a block of YAML: the lines with a greater indent than the line of its name."""
    place, end = start, start
    while place < len(text) and (line := _LINE.match(text, place)):
        if line[2].strip():
            if len(line[1]) <= indent:
                break
            end = line.end(2)
        place = line.end()
    first = _LINE.match(text, start)
    return [(first.end(1), end)] if first and end > first.end(1) else []


def _is_secret_under(name: str, value: str) -> bool:
    return holds_secret(name, value) and not _is_harmless(name, value)


def _before_names(text: str) -> list[Place]:
    """The places of values of entries that have their name behind their value."""
    found = _REVERSED_ENTRY.finditer(text)
    return [each.span("value") for each in found if _is_secret_under(each["name"], each["value"])]


def _name_of(text: str, found: re.Match[str]) -> str:
    """The name, without the letter of an escape of JSON before it."""
    name = found["name"]
    is_escaped = name[0] in "nrt" and text[max(found.start() - 1, 0) : found.start()] == "\\"
    return name[1:] if is_escaped else name


def _is_other(text: str, found: re.Match[str]) -> bool:
    """Whether a name is a part of a path or a URN, that of a pinned package, or `token` in "a token of text"."""
    before = text[max(found.start() - 20, 0) : found.start()]
    if found["sep"].strip() == "==" or (before.endswith(("/", ":")) and found["sep"] == ":"):
        return True
    if found["name"].lower() != "token":
        return False
    sentence = text[max(found.start() - 60, 0) : found.start()]
    if ":" in found["sep"] and _NO_TOKEN_BEFORE.search(sentence) and _REASON.match(text, found.end()):
        return True
    word = _WORD_BEFORE.search(before)
    return word is not None and not names_secret(f"{word[1]}_token")


def _is_of_workflow(text: str, found: re.Match[str], name: str) -> bool:
    """Whether a name and its value are a permission of a workflow's job, not a token."""
    return name.lower() == "id-token" and bool(_PERMISSION.match(text, found.end()))


def _names_a_secret(text: str, found: re.Match[str]) -> bool:
    """Whether a value is the name of a secret, in a map of variables to such names: `hf-token`, not `hunter2`."""
    quote = _QUOTE.match(text, found.end())
    start = quote.end() if quote else found.end()
    value = _SECRET_ID.match(text, start)
    if value is None or not (_QUOTE_END if quote else _PLAIN_END).match(text, value.end()):
        return False
    if not (names_secret(value[0]) or value[0].isupper()):  # a word in capitals stands for a name
        return False
    return bool(_IN_SECRETS.search(text[max(found.start() - _LONGEST_MAP, 0) : found.start("name")].rstrip("\"'\\")))


def _is_parameter(text: str, found: re.Match[str]) -> bool:
    """Whether a name is that of a signature, of a key in a URL's query, or of a password in lower case alone."""
    name = found["name"][-80:]
    before = text[max(found.start() - 1, 0) : found.start()]
    if before in ("?", "&") and _QUERY_KEYS.fullmatch(name):
        return True
    return bool(_SIGNATURES.fullmatch(name)) or name.lower() in ("pass", "pw")


def _header(text: str, start: int) -> Place | None:
    """The place of a header's value; its scheme stays."""
    quote = _QUOTE.match(text, start)
    if not quote and _SENTENCE.match(text, start) and not _KNOWN_SCHEME.match(text, start):
        return None
    start = quote.end() if quote else start
    scheme = _HEADER_SCHEME.match(text, start)
    if scheme and scheme[0].lower().startswith("digest"):  # has quotes of its own
        end = text.find("\n", scheme.end())
        return scheme.end(), len(text) if end < 0 else end
    found = _HEADER_VALUE.match(text, scheme.end() if scheme else start)
    value = found[0].rstrip() if found else ""
    if found is None or _HARMLESS.fullmatch(value[:200]) or PLACEHOLDER in value[:200]:
        return None
    return found.start(), found.start() + len(value)


def _elements(text: str) -> list[Place]:
    found = _ELEMENT.finditer(text) if "</" in text else ()
    return [each.span(2) for each in found if holds_secret(each[1], each[2]) and not _HARMLESS.fullmatch(each[2])]


def _after_names(pattern: re.Pattern[str], text: str) -> list[Place]:
    places = []
    for found in pattern.finditer(text):
        name = found["name"]
        if names_secret(name) and not name.lower().endswith("-env"):  # such an option takes the name of a variable
            place = _value(text, found.end(), name, is_sentence=pattern is _OPTION)
            places += [place] if place else []
    return places


def _value(text: str, start: int, name: str, *, is_sentence: bool) -> Place | None:
    """The place of the value that begins at a place; None where it is no secret.

    Args:
        text: The whole text.
        start: Where the value begins.
        name: The name that it stands under.
        is_sentence: Whether the name may be the beginning of a sentence about the secret.
    """
    if wrapped := _WRAPPED.match(text, start):
        start = wrapped.end()
    if quote := _QUOTE.match(text, start):
        first, last = quote.end(), _closing(text, quote)
        value = text[first:last]
        if _is_harmless(name, value) or value.startswith("--") or _is_reference(text, first, last, name):
            return None
        return first, last
    if text.startswith(("[", "{"), start) and not text.startswith((PLACEHOLDER, "[[:"), start):
        return _bracket(text, start, name)
    found = _PLAIN.match(text, start)
    if found is None or _is_harmless(name, found[0]):
        return None
    if is_sentence and (_SENTENCE.match(text, start) or found[0].endswith(":")):
        return None
    return found.span()


def _is_harmless(name: str, value: str) -> bool:
    if _META.fullmatch(value) and names_secret(value.strip("[]")):
        return True
    if _HARMLESS.fullmatch(value[:200]) or (names_secret(name) and not holds_secret(name, value)):
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
    for found in _QUOTE_OR_END.finditer(text, place):
        if found[2] == "\n":
            return found.start(2)
        backslashes = len(found[1])
        if found[2] == mark and (backslashes < depth or (backslashes - depth) % (2 * (depth + 1)) == 0):
            return found.start(2) - min(depth, backslashes)
    return len(text)


def _bracket(text: str, start: int, name: str) -> Place | None:
    """The place of a list, or of a map without further maps, as a value, brackets included."""
    if text[start] == "{" and name.lower().endswith(("secrets", "credentials", "key")):
        return None  # a map of names to names, or a description
    depth, first_line = 0, -1
    for number, found in enumerate(_BRACKET_OR_END.finditer(text, start)):
        mark, place = found[0], found.start()
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
            is_harmless = inside in ("", PLACEHOLDER) or _is_harmless(name, text[start : place + 1])
            return None if is_harmless else (start, place + 1)
    if text[start] == "{":
        return None
    end = first_line if first_line >= 0 else len(text)
    return (start, end) if end > start + 1 else None
