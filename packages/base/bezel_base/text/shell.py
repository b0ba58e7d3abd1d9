"""Values in commands that a person copies into a shell: each stays one word, whatever characters it has."""

from __future__ import annotations

import shlex

from bezel_base.text.printable import encodable, printable

# A backtick would end the code of Markdown that a message puts a command into.
_BACKTICK = "\"$(printf '\\140')\""


def shell_word_for_make(value: object) -> str:
    """A value of a variable on the command line of make, which expands `$` in it before a shell sees it."""
    return shell_word(str(value).replace("$", "$$"))


def shell_word(value: object) -> str:
    """A value as one word of a POSIX shell, on one line and without a backtick.

    Args:
        value: Text or number of a user, a cloud or a forge.
    """
    text = " ".join(encodable(printable(str(value))).split("\n"))
    first, *others = text.split("`")
    if not others:
        return shlex.quote(text)
    parts = [shlex.quote(first) if first else ""]
    for other in others:
        parts += [_BACKTICK, shlex.quote(other) if other else ""]
    return "".join(parts)
