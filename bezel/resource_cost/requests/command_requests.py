"""Requests to Google's APIs that commands and programs' texts send: whether they only read. Pure.

An address of Google's in a text is understood only with curl or wget, and options that read. Leaves out what a program
inside an image does with an address of stored objects.
"""

import re
from functools import lru_cache

from bezel.resource_cost.requests.command_lines import Command
from bezel.resource_cost.requests.google_hosts import is_google_api

_SCOPE = re.compile(r"https://www\.googleapis\.com/auth/[\w.-]*")
_HOST = re.compile(r"googleapis(?:-cn)?\.(?:com|cn)\b|\bclients\d\.google\.com\b|\bgke\.goog\b", re.IGNORECASE)
_STORED = re.compile(r"(?:https?://)?storage\.googleapis\.com(?:/|$)", re.IGNORECASE)
_LOG_ENTRIES = "https://logging.googleapis.com/v2/entries:write"
_SENDS = re.compile(
    r"-X\s*\W?(?!GET|HEAD)[A-Z]|--request\b|\b(?:POST|PUT|PATCH|DELETE)\b|\.(?:post|put|patch|delete|request)\("
    r"|\bRequest\(|\bdata\s*="
)
_CLIENTS = frozenset({"curl", "wget", "http", "https", "xh", "xhs"})
_DECLARES = frozenset({"export", "readonly", "local", "declare"})
# Letters of curl that read; those of the second group take a value.
_CURL_LETTERS = re.compile(r"-[fsSLOIivkNJRgjGqn046#]*(?:[oHmwACzuDbceEr].*)?")
_WGET_LETTERS = re.compile(r"-(?:nv|nc|nd|nH|[qcSNvrxk46]*(?:[OPTtUo].*)?)")
_LONG = re.compile(
    r"--(?:silent|show-error|fail|fail-with-body|fail-early|location|output|output-dir|output-document|create-dirs"
    r"|remote-name(?:-all)?|remote-header-name|remote-time|head|include|verbose|max-time|connect-timeout|retry[a-z-]*"
    r"|compressed|write-out|header|user-agent|http[\d.]+|tlsv[\d.]+|proto|oauth2-bearer|noproxy|cacert|progress-bar"
    r"|no-progress-meter|url|continue|continue-at|range|get|max-redirs|speed-limit|speed-time|limit-rate|ipv[46]"
    r"|quiet|timeout|tries|spider|no-verbose|server-response|directory-prefix|no-check-certificate|show-progress"
    r"|time-cond|timestamping|waitretry|wait|user|trace-time)(?:=.*)?"
)
_METHOD = re.compile(r"(?:--request|--method|-[fsSLOIivk]*X)(?:=?(?P<method>\w+))?")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)")
_READ_METHODS = frozenset({"GET", "HEAD"})
_ITEM = re.compile(r"[\w.-]+:?=(?!=).*|[\w.-]+@.+")


def unread_request(command: Command, text: str) -> str | None:
    """The address to which a command of a text sends more than a read; None without one."""
    shell_words = command.shell_words
    plain = _SCOPE.sub("", " ".join(shell_words))
    name = command.name
    if name in _CLIENTS and not _client_reads(name, shell_words[command.first + 1 :]):
        hidden = next((word for word in shell_words if _is_hidden(word, text)), None)
        if hidden:
            return f"this request to {hidden[:80]}"
    addresses = [word for word in plain.split() if _is_google(word)]
    if not addresses:
        return None
    first = f"this request to {addresses[0][:80]}"
    if name in _CLIENTS:
        understood = all(word == _LOG_ENTRIES for word in addresses) or _client_reads(
            name, shell_words[command.first + 1 :]
        )
        return None if understood else first
    if name in _DECLARES or command.is_inert or _sets_variable(shell_words, text):
        return None
    if all(_STORED.match(word.rpartition("=")[2]) for word in addresses):
        return first if _sends(text) else None
    return first


@lru_cache(maxsize=4)
def _sends(text: str) -> bool:
    return _SENDS.search(text) is not None


@lru_cache(maxsize=4)
def _has_token(text: str) -> bool:
    return "print-access-token" in text


@lru_cache(maxsize=4)
def _without_braces(text: str) -> str:
    return text.replace("{", "")


def _is_google(word: str) -> bool:
    return bool(_HOST.search(word)) or any(
        is_google_api(part) for part in (word, word.partition("=")[2]) if "." in part or "%" in part
    )


def _is_hidden(word: str, text: str) -> bool:
    """Whether a word is an address that the text does not say."""
    return bool(re.match(r"https?://\$", word)) or (word.startswith("$") and _has_token(text))


def _sets_variable(shell_words: list[str], text: str) -> bool:
    """Whether an address is the value of a shell's variable, which is judged where it is used."""
    for number, word in enumerate(shell_words):
        if match := _ASSIGNMENT.fullmatch(word):
            return len(shell_words) <= number + (1 if match[2] else 2) and f"${match[1]}" in _without_braces(text)
    return False


def _client_reads(name: str, shell_words: list[str]) -> bool:
    """Whether a client of HTTP has only options that read."""
    letters = _WGET_LETTERS if name == "wget" else _CURL_LETTERS
    for number, word in enumerate(shell_words):
        if "override" in word.lower() or (name not in ("curl", "wget") and _is_item(word)):
            return False
        if not word.startswith("-") or word == "-":
            continue
        if match := _METHOD.fullmatch(word):
            method = match["method"] or (shell_words[number + 1] if number + 1 < len(shell_words) else "")
            if method not in _READ_METHODS:
                return False
        elif not (_LONG.fullmatch(word) if word.startswith("--") else letters.fullmatch(word)):
            return False
    return True


def _is_item(word: str) -> bool:
    """Whether a word of HTTPie sends: a method, or an item of data."""
    return word in ("POST", "PUT", "PATCH", "DELETE") or bool(_ITEM.fullmatch(word))
