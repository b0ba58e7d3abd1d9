"""Folders of the policy packs that this environment has, for `pulumi --policy-pack` of any program.

A pack's folder has a PulumiPolicy.yaml, which names the environment that the engine starts it in. Leaves out the packs
of a project of one's own (`pipeline_file`).
"""

import difflib
import importlib.util
import sys
from pathlib import Path

from bezel_base.errors import Problem, UserError, WrongValueError

_PACKAGE = "bezel_policies"
_FILE = "PulumiPolicy.yaml"


class UnknownPackError(WrongValueError):
    """No pack has this name."""


def installed_pack(name: str) -> Path:
    """The folder of a pack; the shipped limits stand beside it, e.g. `hardware_cost.dev.json`.

    Raises:
        UnknownPackError: No pack has this name.
        UserError: The packs are not installed, or not into a virtual environment.
    """
    folder = packs_folder()
    names = sorted(file.parent.name for file in folder.glob(f"*/{_FILE}"))
    if name not in names:
        near = difflib.get_close_matches(name.replace("-", "_"), names, n=1)
        repair = f"name {' or '.join(near or names)}."
        consequence = f"there is no such policy pack: there are {', '.join(names)}."
        raise UnknownPackError(Problem("NAME", name, consequence, repair))
    return folder / name


def packs_folder() -> Path:
    """The folder that holds the packs: of a checkout its own, else that of the installed package.

    Raises:
        UserError: The packs are not installed, or not into a virtual environment.
    """
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or spec.origin is None:
        consequence = f"{sys.executable} has no policy packs: its environment lacks this distribution."
        raise UserError(Problem("bezel-policies", None, consequence, "run `pip install bezel-policies`."))
    package = Path(spec.origin).parent
    if (package.parent / "pyproject.toml").is_file():
        return package.parent
    # As PulumiPolicy.yaml names it: VENV/lib/pythonX.Y/site-packages/bezel_policies.
    environment = package.parents[3]
    if not (environment / "bin" / "python").exists():
        consequence = f"they are installed outside of a virtual environment, and {environment}/bin/python is missing: "
        repair = "install bezel-policies with pip into a virtual environment (`python3 -m venv FOLDER`)."
        raise UserError(Problem(str(package), None, f"{consequence}the engine could not start a pack.", repair))
    return package / "packs"
