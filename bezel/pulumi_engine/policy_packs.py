"""The options that name policy packs, as a user types them, made into those that the engine needs.

The engine runs in the project's folder, so a path that is relative to the user's is made absolute. A pack that comes
without a configuration gets the file beside it that is named after pack and environment, e.g.
`policies/hardware_cost.dev.json`: the environment is the stack's own. Leaves out what the packs judge.
"""

import os
from collections.abc import Sequence
from pathlib import Path

PACK = "--policy-pack"
CONFIG = "--policy-pack-config"


def with_packs(options: Sequence[str], *, here: Path, environment: object) -> list[str]:
    """The options with whole paths, and with the configurations that belong to the packs.

    Args:
        options: for the engine; those that name no pack are left as they are.
        here: the folder that relative paths start from.
        environment: of the stack.
    """
    given = list(_whole(options, here))
    packs = [Path(option.removeprefix(f"{PACK}=")) for option in given if option.startswith(f"{PACK}=")]
    if any(option.startswith(f"{CONFIG}=") for option in given):
        return given
    beside = [pack.parent / f"{pack.name}.{environment}.json" for pack in packs]
    if not any(file.is_file() for file in beside):
        return given
    # The engine wants one for each pack; an empty file says nothing.
    return given + [f"{CONFIG}={file if file.is_file() else os.devnull}" for file in beside]


def judged(options: Sequence[str]) -> bool:
    """Whether policy packs judge the run."""
    return any(option.startswith(f"{PACK}=") for option in options)


def configurations(options: Sequence[str]) -> list[str]:
    """The files that configure the packs."""
    files = (option.removeprefix(f"{CONFIG}=") for option in options if option.startswith(f"{CONFIG}="))
    return [file for file in files if file != os.devnull]


def _whole(options: Sequence[str], here: Path) -> list[str]:
    """Each path of a pack or a configuration absolute, and in one word with its option."""
    made: list[str] = []
    rest = iter(options)
    for option in rest:
        name, equals, value = option.partition("=")
        if name not in (PACK, CONFIG):
            made.append(option)
            continue
        value = value if equals else next(rest, "")
        # Nothing behind it: for the engine to say.
        made.append(f"{name}={here / Path(value).expanduser()}" if value else option)
    return made
