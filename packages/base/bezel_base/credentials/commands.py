r"""Places of secrets that no name with a separator precedes: arguments of commands, `.netrc`, `ENV` of a Dockerfile.

Each place is where the value begins; how far it reaches is for `redaction`. Works in linear time: no command is read
further than its own line, and no more than `_FAR` characters of it. Pure.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from bezel_base.credentials.names import names_secret

if TYPE_CHECKING:
    from collections.abc import Iterator

_FAR = r"[^\n|;&]{0,200}?[\s\"']"
_NEXT = r"(?:[ \t]++|=|\\*+[\"'][ \t]*+,[ \t]*+)(?=[^\s-])"
"""What stands between an option and its value, on a command line and in a list of arguments."""
_LOGIN = r"(?<![\w.-])(?:docker|podman|nerdctl|buildah|skopeo|crane|oras|helm|oc|az)\b[^\n|;&]{0,80}?[\s\"']login\b"
_WANDB = (
    r"(?<![\w.-])wandb[\s\"',]{1,6}login[\"']?(?:[\s\"',]{1,6}--?[a-z][\w=-]{0,40}){0,8}[ \t,]++"
    r"(?=[\"']?[\w-]{0,80}?\d)"
)
_STUCK = r"(?=[^\s\"'=,\\]|[\"'][^\s,\]])"

# Options as in each program's manual, where one letter is short for the password.
_COMMANDS = tuple(
    (word, re.compile(pattern))
    for word, pattern in (
        ("login", rf"{_LOGIN}{_FAR}-p(?:{_NEXT}|{_STUCK})"),
        ("mysql", rf"(?<![\w.-])mysql(?:dump|admin|show|import|check|slap|sh)?\b{_FAR}-p{_STUCK}"),
        ("mariadb", rf"(?<![\w.-])mariadb(?:-\w{{1,20}})?\b{_FAR}-p{_STUCK}"),
        ("mongo", rf"(?<![\w.-])mongo(?:sh|dump|restore|export|import|stat|top|files)?\b{_FAR}-p(?:{_NEXT}|{_STUCK})"),
        ("cqlsh", rf"(?<![\w.-])cqlsh\b{_FAR}-p{_NEXT}"),
        ("sshpass", rf"(?<![\w.-])sshpass\b{_FAR}-p(?:{_NEXT}|{_STUCK})"),
        ("redis-", rf"(?<![\w.-])redis-(?:cli|benchmark)\b{_FAR}-a{_NEXT}"),
        ("valkey-", rf"(?<![\w.-])valkey-(?:cli|benchmark)\b{_FAR}-a{_NEXT}"),
        ("ldap", rf"(?<![\w.-])ldap(?:search|add|modify|delete|whoami|passwd|compare)\b{_FAR}-w(?:{_NEXT}|{_STUCK})"),
        ("sqlcmd", rf"(?<![\w.-])sqlcmd\b{_FAR}-P(?:{_NEXT}|{_STUCK})"),
        ("zip", rf"(?<![\w.-])(?:un)?zip\b{_FAR}-P{_NEXT}"),
        ("openssl", rf"(?<![\w.-])openssl\b{_FAR}-(?:pass|passin|passout)[\s\"',]{{1,6}}pass:"),
        ("wandb", _WANDB),
        ("machine", r"(?<![\w-])machine\s+\S{1,200}\s+login\s+\S{1,200}\s+(?:account\s+\S{1,200}\s+)?password\s+"),
        ("default", r"(?m)^[ \t]*default\s+login\s+\S{1,200}\s+password\s+"),
    )
)
# A name and its value as two words: Dockerfiles, shells, and commands that set a value.
_TWO_WORDS = re.compile(
    r"(?<![\w-])(?:ENV|setenv|setx|set -[a-zA-Z]{1,4}|config(?:[ \t]+set)?(?:[ \t]+--?[a-z][\w-]{0,30}){0,8})[ \t]+"
    r"(?P<name>[\w./:-]{1,200}+)[ \t]++(?=[^\s=:-])"
)


def places_of_values(text: str) -> Iterator[int]:
    """Where each such value begins."""
    for word, pattern in _COMMANDS:
        if word in text:
            yield from (match.end() for match in pattern.finditer(text))
    for match in _TWO_WORDS.finditer(text):
        if names_secret(match["name"]):
            yield match.end()
