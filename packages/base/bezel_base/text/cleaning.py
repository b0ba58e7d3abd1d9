"""Text from outside made fit to be shown or sent on: no control characters, no secrets, bounded.

Which texts are credentials, and which characters are hidden, is in the modules beside this one.
"""

from bezel_base.text.printable import printable
from bezel_base.text.redaction import redact


def clean_text(text: str, limit: int, *secrets: str) -> str:
    """A text from outside: printable, redacted, and of at most `limit` characters.

    A credential is hidden before the text is cut: the first half of one is a secret too.
    """
    head = text[: 4 * limit + 4096]
    if len(head) < len(text):
        head = "".join(head.rsplit(None, 1)[:-1])  # the last word may be a part of a credential
    result = redact(printable(head), *secrets)
    is_cut = len(result) > limit or len(head) < len(text)
    return f"{result[: max(limit - 6, 0)]} [...]" if is_cut else result
