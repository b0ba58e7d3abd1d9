"""Hint that commands of a message need localcloud's variables, which the user's shell does not have.

`make up` and `bezel local` run the engine with these variables; what the engine and its checks print names commands for
whatever cloud they run against. Owns which commands need them, and the hint's text.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from bezel_base.text.shell import shell_word

_BACKEND = "PULUMI_BACKEND_URL"
# A command in a sentence: between backticks, with or without the folder of the program.
_COMMAND = re.compile(r"`(?:[\w./~-]*/)?(?P<program>bezel|gcloud|gsutil|pulumi|curl)\s+(?P<first>[\w-]*)[^`]*`")
# Commands of bezel that find localcloud by themselves, or need no cloud.
_OWN = frozenset({"local", "explain", "catalog", "completion", "new", "plan", "compare", "policies", "upgrade"})


def commands_in(text: str) -> list[str]:
    """The commands that a text names in backticks and that need the variables, each once."""
    commands = {
        match[0].strip("`"): None
        for match in _COMMAND.finditer(text)
        if match["program"] != "bezel" or match["first"] not in _OWN
    }
    return list(commands)


def shell_hint(texts: Iterable[str], folder: Path, environ: Mapping[str, str]) -> str:
    """The line to print beside messages that name such a command; "" where none does, or the shell has the variables.

    Args:
        texts: The messages.
        folder: Localcloud's folder.
        environ: The variables of the user's shell.
    """
    if environ.get(_BACKEND) == backend_of(folder) or not any(commands_in(text) for text in texts):
        return ""
    option = "" if folder.name == ".localcloud" and folder.parent == Path.cwd() else f" --dir {shell_word(folder)}"
    return (
        "Commands that these messages name are for localcloud: they need its variables in this shell, by\n"
        f'  eval "$(.venv/bin/bezel local env{option})"'
    )


def backend_of(folder: Path) -> str:
    """The address of the state that the engine keeps in localcloud's folder."""
    return f"file://{folder.absolute() / 'state'}"
