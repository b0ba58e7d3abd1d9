r"""Values that stand under the name of a credential, hidden: assignments, options, YAML, JSON at any level, XML.

Owns where such a name stands, and where its value begins. Where the value ends is for `value_bounds`; which names are
those of credentials is in `bezel_base.credentials`. Works in linear time on any text. Pure.
"""

from __future__ import annotations

import re

from bezel_base.credentials.commands import places_of_values
from bezel_base.credentials.headers import is_credential_header, is_credential_parameter, is_signature
from bezel_base.credentials.names import holds_secret, names_secret, option_names_secret
from bezel_base.credentials.private_keys import HIDDEN
from bezel_base.text.value_bounds import HARMLESS, QUOTE, Place, header_place, is_harmless, value_place

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
# Cloud Run draws the last three letters of a revision's name: those may be `pwd` or `jwt`.
_OF_REVISION = re.compile(r"-\d{5}-[a-z]{3}")
_BLOCK = re.compile(r"[|>][-+0-9]{0,2}[ \t]*(?:#[^\n]*)?\r?\n")
_NEXT_LINE = re.compile(r"\r?\n(?:[ \t]++(?:-[ \t]++)?|-[ \t]++|(?=\\*[\"']))")
_ONE_WORD = re.compile(r"(?:\\*[\"'][^\n]*|[^\s\"'{\[:#,][^\s:]*(?::[^\s:]+)*)[ \t]*+,?[ \t]*+\r?(?=\n|$)")
_LINE = re.compile(r"([ \t]*)([^\n]*)(?:\n|$)")
_LONGEST_MAP = 240
"""Characters before a name in which the map is looked for that it stands in."""
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


def without_named_values(text: str) -> str:
    """A text without the values that stand under names of secrets."""
    places = [*_named_places(text), *_elements(text), *_after_names(_OPTION, text)]
    places += [*_after_names(_PAIR, text), *_after_names(_ENTRY, text), *_before_names(text)]
    values = (value_place(text, start, "password", is_sentence=True) for start in places_of_values(text))
    places += [place for place in values if place]
    parts, end = [], 0
    for start, stop in sorted(places):
        if stop <= end:
            continue
        parts += [text[end : max(start, end)], HIDDEN if start >= end else ""]
        end = stop
    return "".join([*parts, text[end:]])


def _named_places(text: str) -> list[Place]:
    places: list[Place] = []
    end = 0
    for match in _NAMED.finditer(text):
        name, separator = _name_of(text, match), match["sep"]
        if match.end() <= end or _is_other(text, match):
            continue  # within a value that is hidden, or no name of a value
        place: Place | None = None
        if below := _below(text, match, name):
            places += below
            end = below[-1][1]
            continue
        if is_credential_header(name):
            place = header_place(text, match.end())
        elif _is_of_workflow(text, match, name) or _names_a_secret(text, match):
            continue
        elif names_secret(name) or (("=" in separator or "%" in separator) and _is_parameter(text, match, name)):
            place = value_place(text, match.end(), name, is_sentence=":" in separator and separator[-1:] in (" ", "\t"))
        if place:
            places.append(place)
            end = place[1]
    return places


def _below(text: str, match: re.Match[str], name: str) -> list[Place]:
    """The places of the value that stands on the lines after a name's, as YAML and JSON allow."""
    start = match.end()
    if ":" not in match["sep"] or not names_secret(name) or name.lower() in ("secret", "secrets"):
        return []
    if block := _BLOCK.match(text, start):
        line_of_name = text[text.rfind("\n", 0, start) + 1 : start]
        indent = len(line_of_name) - len(line_of_name.lstrip(" \t"))
        return _of_block(text, block.end(), indent)
    places: list[Place] = []
    line = _NEXT_LINE.match(text, start)
    while line and _ONE_WORD.match(text, line.end()):
        if place := value_place(text, line.end(), name, is_sentence=True):
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
    return holds_secret(name, value) and not is_harmless(name, value)


def _before_names(text: str) -> list[Place]:
    """The places of values of entries that have their name behind their value."""
    entries = _REVERSED_ENTRY.finditer(text)
    return [each.span("value") for each in entries if _is_secret_under(each["name"], each["value"])]


def _name_of(text: str, match: re.Match[str]) -> str:
    """The name, without the letter of an escape of JSON before it; of a revision, with letters that say nothing."""
    name = match["name"]
    if _OF_REVISION.fullmatch(name[-10:]):
        name = f"{name[:-3]}xyz"
    is_escaped = name[0] in "nrt" and text[max(match.start() - 1, 0) : match.start()] == "\\"
    return name[1:] if is_escaped else name


def _is_other(text: str, match: re.Match[str]) -> bool:
    """Whether a name is a part of a path or a URN, that of a pinned package, or `token` in "a token of text"."""
    before = text[max(match.start() - 20, 0) : match.start()]
    if match["sep"].strip() == "==" or (before.endswith(("/", ":")) and match["sep"] == ":"):
        return True
    if match["name"].lower() != "token":
        return False
    sentence = text[max(match.start() - 60, 0) : match.start()]
    if ":" in match["sep"] and _NO_TOKEN_BEFORE.search(sentence) and _REASON.match(text, match.end()):
        return True
    word = _WORD_BEFORE.search(before)
    return word is not None and not names_secret(f"{word[1]}_token")


def _is_of_workflow(text: str, match: re.Match[str], name: str) -> bool:
    """Whether a name and its value are a permission of a workflow's job, not a token."""
    return name.lower() == "id-token" and bool(_PERMISSION.match(text, match.end()))


def _names_a_secret(text: str, match: re.Match[str]) -> bool:
    """Whether a value is the name of a secret, in a map of variables to such names: `hf-token`, not `hunter2`."""
    quote = QUOTE.match(text, match.end())
    start = quote.end() if quote else match.end()
    value = _SECRET_ID.match(text, start)
    if value is None or not (_QUOTE_END if quote else _PLAIN_END).match(text, value.end()):
        return False
    if not (names_secret(value[0]) or value[0].isupper()):  # a word in capitals stands for a name
        return False
    return bool(_IN_SECRETS.search(text[max(match.start() - _LONGEST_MAP, 0) : match.start("name")].rstrip("\"'\\")))


def _is_parameter(text: str, match: re.Match[str], name: str) -> bool:
    """Whether a name is that of a signature, of a key in a URL's query, or of a password in lower case alone."""
    before = text[max(match.start() - 1, 0) : match.start()]
    if before in ("?", "&") and is_credential_parameter(name):
        return True
    return is_signature(name) or name.lower() in ("pass", "pw")


def _elements(text: str) -> list[Place]:
    elements = _ELEMENT.finditer(text) if "</" in text else ()
    return [each.span(2) for each in elements if holds_secret(each[1], each[2]) and not HARMLESS.fullmatch(each[2])]


def _after_names(pattern: re.Pattern[str], text: str) -> list[Place]:
    places = []
    for match in pattern.finditer(text):
        name = match["name"]
        if option_names_secret(name):
            place = value_place(text, match.end(), name, is_sentence=pattern is _OPTION)
            places += [place] if place else []
    return places
