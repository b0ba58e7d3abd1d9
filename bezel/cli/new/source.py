"""Source of a new project's library: a folder of wheels, an index, or the default index of packages."""

import importlib.metadata
import json
import os
from pathlib import Path

from bezel.cli.new.template import Source
from bezel_base.errors import Problem, WrongValueError

_DISTRIBUTION = "bezel"
_WHEELS = "python3 tools/release/wheel.py"


def library_source(packages: str, here: Path) -> Source:
    """The source that an option names, else that of a clone, whose version is on no index: its folder `dist`.

    Args:
        packages: A folder, an address, or "" for the usual place.
        here: Folder that a relative one starts from.

    Raises:
        WrongValueError: The folder has no wheels of this version, or the address is none.
    """
    if "://" in packages:
        if not packages.startswith(("https://", "http://")) or any(letter.isspace() for letter in packages):
            consequence = "uv reads indexes by http and https alone."
            raise WrongValueError(
                Problem("--packages", packages, consequence, "write e.g. https://packages.example/simple.")
            )
        return Source(packages)
    clone = _clone()
    if not packages and clone is None:
        return Source()
    folder = here / Path(packages).expanduser() if packages or clone is None else clone / "dist"
    folder = Path(os.path.normpath(folder.absolute()))
    version = importlib.metadata.version(_DISTRIBUTION)
    if not any(folder.glob(f"{_DISTRIBUTION}-{version}-*.whl")):
        consequence = f"the folder has no wheel of {_DISTRIBUTION} {version}, so the project could not be installed."
        repair = f"name another one, or in a clone build them: `{_WHEELS} {folder}`."
        raise WrongValueError(Problem("--packages", str(folder), consequence, repair))
    return Source(str(folder))


def _clone() -> Path | None:
    """The checkout that this distribution is installed from; None where it comes from a wheel."""
    recorded = importlib.metadata.distribution(_DISTRIBUTION).read_text("direct_url.json")
    address = json.loads(recorded) if recorded else {}
    if not address.get("dir_info", {}).get("editable"):
        return None
    return Path(str(address["url"]).removeprefix("file://"))
