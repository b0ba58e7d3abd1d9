"""Commands of a message as they can be typed where it is printed: by the program that the shell there has.

A message names `bezel`, or `.venv/bin/bezel`, and recipes of a Makefile, wherever it is written. Which of these a shell
has depends on the folder: a project of `bezel new` has `.venv/bin/bezel` and the recipes, and maybe no `bezel` on PATH;
a program of one's own with an installed `bezel` has neither `.venv` nor recipes.
"""

import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from bezel_base.text.shell import shell_word

PROGRAM, OF_PROJECT = "bezel", Path(".venv/bin/bezel")
_ANY_COMMAND = re.compile(r"(?:bezel|make) ")
# As messages name commands: in backticks or `$(...)`, or as a line of its own. Elsewhere it is the product's name.
_COMMAND = re.compile(r"(?P<begin>`|\$\(|^ +)(?P<program>(?:\.venv/bin/)?bezel) (?=[a-z-])", re.MULTILINE)
_RECIPE = re.compile(
    r"(?P<begin>`|\$\(|^ +)make (?P<recipe>up|preview|outputs|down)(?: STACK=(?P<stack>[^`)\s]+))?(?=[`)]|$)",
    re.MULTILINE,
)
_RECIPES = re.compile(r"^(?P<name>[a-z-]+):", re.MULTILINE)


def as_typed(text: str, here: Path | None = None, environ: Mapping[str, str] | None = None) -> str:
    """A text whose commands the shell of a folder has; those that it has stay as they are.

    Args:
        text: With commands in backticks or in `$(...)`.
        here: The folder; by default the present one.
        environ: Variables of the shell; by default of this process.
    """
    if not _ANY_COMMAND.search(text):
        return text
    here = Path.cwd() if here is None else here
    search_path = (os.environ if environ is None else environ).get("PATH", os.defpath)
    names = {PROGRAM: _program(here, search_path), str(OF_PROJECT): str(OF_PROJECT)}
    if not (here / OF_PROJECT).is_file():
        names[str(OF_PROJECT)] = names[PROGRAM]
    text = _COMMAND.sub(lambda match: f"{match['begin']}{names[match['program']]} ", text)
    recipes, program = _recipes(here), names[PROGRAM]
    return _RECIPE.sub(lambda match: match[0] if match["recipe"] in recipes else _without_make(match, program), text)


def _program(here: Path, search_path: str) -> str:
    """The name by which a shell in a folder finds the program."""
    if shutil.which(PROGRAM, path=search_path):
        return PROGRAM
    for folder in (here, *here.absolute().parents):
        if (folder / OF_PROJECT).is_file():
            return shell_word(os.path.relpath(folder / OF_PROJECT, here))
    return PROGRAM


def _recipes(here: Path) -> frozenset[str]:
    """The recipes of the folder's Makefile."""
    try:
        return frozenset(_RECIPES.findall((here / "Makefile").read_text(encoding="utf-8", errors="replace")))
    except OSError:
        return frozenset()


def _without_make(match: re.Match[str], program: str) -> str:
    return f"{match['begin']}{program} local {match['recipe']} {match['stack'] or 'STACK'}"
