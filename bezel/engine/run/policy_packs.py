"""Translation of the user's options for policy packs into those that the engine needs.

The engine runs in the project's folder, so a path relative to the user's folder is made absolute. A pack without a
configuration gets that of the stack's environment: the one that `bezel.toml` names, else the file beside it, e.g.
`policies/hardware_cost.dev.json` (`pipeline_file`). Leaves out the rules of the packs.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from bezel.engine.project.pipeline_file import configuration_of

PACK = "--policy-pack"
CONFIG = "--policy-pack-config"


def with_packs(options: Sequence[str], *, here: Path, environment: object) -> list[str]:
    """The options with absolute paths, and with the configurations that belong to the packs.

    Args:
        options: Options for the engine; those that name no pack are unchanged.
        here: The folder that relative paths start from.
        environment: The stack's environment.

    Raises:
        UserError: The `bezel.toml` beside a pack's folder has problems.
    """
    absolute_options = _with_absolute_paths(options, here)
    packs = [Path(option.removeprefix(f"{PACK}=")) for option in absolute_options if option.startswith(f"{PACK}=")]
    if any(option.startswith(f"{CONFIG}=") for option in absolute_options):
        return absolute_options
    files = [configuration_of(pack, environment) for pack in packs]
    if not any(files):
        return absolute_options
    # The engine needs one for each pack; an empty file configures nothing.
    return absolute_options + [f"{CONFIG}={file or os.devnull}" for file in files]


def has_packs(options: Sequence[str]) -> bool:
    """Whether the options name a policy pack."""
    return any(option.startswith(f"{PACK}=") for option in options)


def configurations(options: Sequence[str]) -> list[str]:
    """The files that configure the packs."""
    files = (option.removeprefix(f"{CONFIG}=") for option in options if option.startswith(f"{CONFIG}="))
    return [file for file in files if file != os.devnull]


def _with_absolute_paths(options: Sequence[str], here: Path) -> list[str]:
    """Make each path of a pack or a configuration absolute, and join it with its option by `=`."""
    absolute: list[str] = []
    rest = iter(options)
    for option in rest:
        name, equals, value = option.partition("=")
        if name not in (PACK, CONFIG):
            absolute.append(option)
            continue
        value = value if equals else next(rest, "")
        # An option without a value: the engine reports it.
        absolute.append(f"{name}={here / Path(value).expanduser()}" if value else option)
    return absolute
