"""Id of the project of a folder: the one that its first start was given, for good.

Names of resources, accounts and images hold it, in the folder's data as well as in a daemon's modules.
"""

import json
import re
from pathlib import Path

from bezel_base.errors import Problem, WrongValueError
from bezel_localcloud.core.paths import PROJECT, Paths

# Source: Resource Manager's reference of projects: 6 to 30 lowercase letters, digits or hyphens, a letter first, no
# hyphen last.
_ID = re.compile(r"[a-z][a-z0-9-]{4,28}[a-z0-9]")


def project_for(directory: Path | None, wanted: str = "", option: str = "--project") -> str:
    """The id of the project that a daemon of a folder serves.

    Args:
        directory: The folder of the data; None for a new one.
        wanted: The id that a user has given; "" for the folder's own, or the usual one.
        option: What the user has given it by, for the error.

    Raises:
        WrongValueError: Google has no such id, or the folder holds another project.
    """
    if wanted and not _ID.fullmatch(wanted):
        consequence = "expected 6 to 30 lowercase letters, digits and hyphens, a letter first and no hyphen last."
        raise WrongValueError(
            Problem(option, wanted, consequence, "write an id as Google's projects have, e.g. my-project.")
        )
    stored = _own_project(directory) if directory else ""
    if wanted and stored not in {"", wanted}:
        consequence = f"{directory} holds the project {stored}, whose resources bear that name, so nothing was started."
        raise WrongValueError(Problem(option, wanted, consequence, "leave it out, or choose another folder."))
    return wanted or stored or PROJECT


def _own_project(directory: Path) -> str:
    """The project that a folder's key file names; "" in a new folder."""
    try:
        return str(json.loads(Paths(directory).credentials.read_text(encoding="utf-8"))["project_id"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""
