r"""Text from outside made fit to be shown or sent on: no control characters, no secrets, bounded.

Owns the one way by which operations treat log lines, metrics, a model's answers and a cloud's messages. The forms of
credentials that REST errors hide too are in bezel.rest; here are those of other people's logs. What is hidden in
addition does no harm; vLLM's own lines, which speak of tokens all the time, stay as they are.
"""

import re
from collections.abc import Iterable

from bezel.rest import redact
from bezel.rest.errors import PLACEHOLDER

MAX_LINE = 2000
"""Characters of one shown line; vLLM's list of arguments has about a thousand."""

MAX_TEXT = 256 * 1024
"""Characters of one text of a log: the size of Cloud Logging's largest entry."""

# Escape sequences of terminals (colours, titles, links), then every other control character but tab and newline, and
# those that turn the direction of writing or have no width: a line must not look like another one.
_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[PX^_][^\x1b\n]*(?:\x1b\\)?|[ -/]*[0-~])"
    r"|\x9b[0-?]*[ -/]*[@-~]"
)
_CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)

_KEY = (
    r"(?:(?:access|auth|bearer|github|gitlab|hf|hub|hugging_?face(?:_?hub)?|id|identity|oauth|refresh|session)[_-]?token"
    r"|(?<![\w-])token|api[_-]?keys?|apikey|secret(?:[_-]?(?:key|value|access[_-]?key))?|passw(?:or)?d|passphrase"
    r"|client[_-]?secret|private[_-]?key|signing[_-]?key|credentials?)"
)
_VALUE = r"""\[[^\]\n]*\]?|"(?:[^"\\\n]|\\.)*"?|'(?:[^'\\\n]|\\.)*'?|[^\s"',;&)\]}]+"""
_FORMS = (
    # Tokens with a form of their own: Hugging Face, Google's keys and refresh tokens, forges, other companies'. Two of
    # them without anything in between are hidden as one.
    re.compile(r"(?<![A-Za-z0-9])(?:hf|api_org)_[A-Za-z0-9]{8,}(?:_[A-Za-z0-9]{8,})*"),
    re.compile(r"(?<![A-Za-z0-9])AIza[\w-]{10,}"),
    re.compile(r"(?<![A-Za-z0-9])ya29[.~][\w.~+/-]+"),
    re.compile(r"(?<![A-Za-z0-9])(?:1//0[\w-]{16,}|GOCSPX-[\w-]{10,})"),
    re.compile(r"(?<![A-Za-z0-9])(?:gh[oprsu]_[A-Za-z0-9]{8,}(?:_[A-Za-z0-9]{8,})*|github_pat_\w{8,}|glpat-[\w-]{8,})"),
    re.compile(r"(?<![A-Za-z0-9])(?:sk-[\w-]{8,}|xox[a-z]-[\w-]{8,}|AKIA[0-9A-Z]{12,})"),
    # A JSON Web Token of which only a part is there.
    re.compile(r"(?<![A-Za-z0-9])eyJ[\w-]{8,}(?:\.[\w-]*){0,2}"),
    # The middle of a private key that is logged line by line: nothing but base64. Hashes in hex stay.
    re.compile(r"(?m)^(?=[^\n]*[G-Zg-z+/])[A-Za-z0-9+/]{48,}={0,2}$"),
)
TOKEN_FORMS = tuple(re.compile(form.pattern, re.ASCII) for form in _FORMS[:-1])
"""Forms of credentials that are recognised by themselves, each within one word of printable ASCII."""
# In these the part before the value stays.
_NAMED = (
    re.compile(r"(?i)(://[^\s/:@]*:)[^\s/]+(?=@)"),
    re.compile(r"(?i)(\bbearer[ \t:=]+)(?!\[redacted\])[^\s\"',;]+"),
    re.compile(
        r"(?i)(\b(?:proxy-|x-serverless-)?authorization[\"']?[ \t]*[:=][ \t]*[\"']?(?:basic|digest)[ \t]+)[^\s\"',;]+"
    ),
    re.compile(r"(?i)(\b(?:x-goog-api-key|x-api-key|set-cookie|cookie)[\"']?[ \t]*:[ \t]*)[^\n\"']+"),
    re.compile(
        r"(?i)([?&](?:key|token|access_token|id_token|sig|signature|x-goog-signature|x-goog-credential)=)[^&\s\"'<>]+"
    ),
    re.compile(rf"(?i)(--[\w-]*{_KEY}(?:[ \t]+|=))(?!-)(?:{_VALUE})"),
    re.compile(rf"(?i)({_KEY}[\"']?[ \t]*(?:=|:|=>)[ \t]*)(?!projects/)(?:{_VALUE})"),
)
_BEGIN, _END = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY"), re.compile(r"-----END [A-Z ]*PRIVATE KEY-----")
_KEY_LINES = 120  # of a private key at most: RSA of 8192 bits has 100


def printable(text: str) -> str:
    """A text without escape sequences and control characters, but with its tabs and newlines."""
    return _CONTROLS.sub("", _ESCAPES.sub("", text.replace("\r\n", "\n").replace("\r", "\n")))


def redacted(text: str, *secrets: str) -> str:
    """A text without anything in the form of a credential, and without the given values.

    Args:
        text: Text from outside; it may have several lines.
        secrets: Values known to be secret, of six characters or more.
    """
    text = redact(text, *secrets)
    for pattern in _FORMS:
        text = pattern.sub(PLACEHOLDER, text)
    for pattern in _NAMED:
        text = pattern.sub(rf"\g<1>{PLACEHOLDER}", text)
    return text


def cleaned(text: str, limit: int, *secrets: str) -> str:
    """A text from outside: printable, redacted, and of at most `limit` characters.

    A credential is hidden before the text is cut: the first half of one is a secret too.
    """
    head = text[: 4 * limit + 4096]
    if len(head) < len(text):
        head = "".join(head.rsplit(None, 1)[:-1])  # the last word may be a part of a credential
    result = redacted(printable(head), *secrets)
    is_cut = len(result) > limit or len(head) < len(text)
    return f"{result[: max(limit - 6, 0)]} [...]" if is_cut else result


class LineCleaner:
    """Cleans the texts of a log one after the other: a private key that spans lines and texts is hidden as a whole."""

    def __init__(self, *secrets: str, limit: int = MAX_LINE) -> None:
        self._secrets, self._limit = secrets, limit
        self._hidden = 0

    def lines(self, text: str) -> list[str]:
        """The lines of the log's next text."""
        return [self._cleaned(line) for line in printable(text[:MAX_TEXT]).split("\n")]

    def _cleaned(self, line: str) -> str:
        if self._hidden:
            self._hidden = 0 if _END.search(line) else self._hidden - 1
            return PLACEHOLDER
        if _BEGIN.search(line) and not _END.search(line):
            self._hidden = _KEY_LINES
        return cleaned(line, self._limit, *self._secrets)


def cleaned_lines(texts: Iterable[str], *secrets: str, limit: int = MAX_LINE) -> list[str]:
    """The cleaned lines of a log's texts."""
    cleaner = LineCleaner(*secrets, limit=limit)
    return [line for text in texts for line in cleaner.lines(text)]
