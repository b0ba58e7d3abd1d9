"""Commands of a shell's text as lists of words: variables replaced, substitutions taken out, one list a command. Pure.

It is no shell: quotes only separate words, so a text in quotes that looks like a command counts as one. Leaves what a
command does to `commands`.
"""

import re
from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple

_ENDS = frozenset(";&|\n()`")
_WORD = re.compile(r"[;&|\n()`]|\[\[?(?=\s)|[^\s;&|()`'\"{}\[\],\\]+")
_JOINED = re.compile(r"\\\r?\n")
_HARMLESS_OUTPUT = re.compile(r"\d?>&\d|[\d&]?>\s*/dev/(?:null|stderr|stdout)")
_COMMENT = re.compile(r"(?<=\s)#\s[^\n;&|`\"']*$", re.MULTILINE)
_QUOTE_IN_WORD = re.compile(r"(?<=\w)(?:\"\"|''|[\"'](?=\w)|\\(?![ntr])|\$\(\)|\$[@*])(?=\w)")
_DEFAULT = re.compile(r"\$\{\w+:?[-=]([^${}\n]*)\}")
_ASSIGNED = re.compile(
    r"(?<![\w$-])([A-Za-z_]\w*)=(?:\"([^\"\n$]{1,500})\"|'([^'\n$]{1,500})'|([^\s;&|()`\"'$]{1,500}))"
)
_USED = re.compile(r"\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))")
_SUBSTITUTION = re.compile(r"\$\(([^()]*)\)")
_RUNNERS = frozenset(
    {
        "sudo", "env", "exec", "time", "nohup", "nice", "timeout", "retry", "command", "builtin", "if", "then", "else",
        "elif", "do", "while", "until", "!", "sh", "bash", "dash", "zsh", "ash", "eval", "xargs", "setsid", "stdbuf",
    }
)  # fmt: skip
"""Words before a command that they run."""
_INERT = frozenset(
    {
        "echo", "printf", "#", "which", "type", "hash", "apt-get", "apt", "yum", "dnf", "apk", "pip", "pip3", "npm",
        "brew", "mkdir", "ls", "cat", "cd", "test", "[", "[[", "rm", "cp", "mv", "tar", "unzip", "chmod", "chown",
        "install", "grep", "logger", "git", "say",
    }
)  # fmt: skip
"""Programs that run nothing of what they are called with."""
_NO_COMMAND = re.compile(r"-.*|\d+[smhd]?|[A-Za-z_]\w*=.*")
_DEPTH, _MOST = 8, 1_000_000


class Command(NamedTuple):
    """The words of one command, the number of the word that it begins with, and whether a pipe takes its output."""

    shell_words: list[str]
    first: int
    piped: bool

    @property
    def name(self) -> str:
        """The program that runs, without its folder; "" without one."""
        return self.shell_words[self.first].rpartition("/")[2] if self.first < len(self.shell_words) else ""

    @property
    def is_inert(self) -> bool:
        """Whether it runs nothing of its words, nor stores them in a file or passes them to another command."""
        kept = self.piped or any(word.startswith((">", "1>")) for word in self.shell_words)
        return (self.name in _INERT or self.name.startswith("#")) and not kept


def expand(text: str) -> str | None:
    """A text with its variables replaced and each substitution on a line of its own; None for one that grows too long.

    A variable with several values has all of them.
    """
    text = _JOINED.sub(" ", _HARMLESS_OUTPUT.sub(" ", _COMMENT.sub("", text)))
    text = _DEFAULT.sub(r"\1", _QUOTE_IN_WORD.sub("", text))
    for _ in range(2):
        assignments: dict[str, dict[str, None]] = defaultdict(dict)
        for name, *values in _ASSIGNED.findall(text):
            assignments[name]["".join(values)] = None
        assigned = {name: " ".join(each) for name, each in assignments.items()}
        replaced = [_value(use, assigned) for use in _USED.finditer(text)]
        if len(text) + sum(map(len, replaced)) > _MOST:
            return None
        values = iter(replaced)
        text = _USED.sub(lambda _, values=values: next(values), text)  # type: ignore[misc]
    inside: list[str] = []
    for _ in range(_DEPTH):
        found_here = _SUBSTITUTION.findall(text)
        if not found_here:
            break
        inside += found_here
        text = _SUBSTITUTION.sub("$_", text)
    return "\n".join([text, *inside])


def _value(use: re.Match[str], assigned: Mapping[str, str]) -> str:
    return assigned.get(use[1] or use[2], use[0])


def split_commands(text: str) -> list[Command]:
    """The commands of an expanded text."""
    made: list[Command] = []
    shell_words: list[str] = []
    for word in [*_WORD.findall(text), "\n"]:
        if word not in _ENDS:
            shell_words.append(word)
        elif shell_words:
            made.append(Command(shell_words, _first(shell_words), word == "|"))
            shell_words = []
    return made


def _first(shell_words: list[str]) -> int:
    for number, word in enumerate(shell_words):
        if word.rpartition("/")[2] not in _RUNNERS and not _NO_COMMAND.fullmatch(word):
            return number
    return len(shell_words)
