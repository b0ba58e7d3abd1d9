"""Variables of a container that its process may not have here, where it shares a machine with the daemon.

A container on Cloud Run is by itself: whatever it says to the loader, to a shell or to Python reaches nobody else. Here
the same variables would choose what code the daemon's interpreter runs, or whose process it is taken for.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

# Read by the dynamic loader and the C library, by shells, by Python (HOME: the user's own packages), by OpenSSL, by
# tools that hook into every Python process; and localcloud's own marks. How fast a simulated engine computes is free.
_MACHINE = re.compile(
    r"PATH|HOME|TMPDIR|LANG|LANGUAGE|LC_.*|TZDIR"
    r"|LD_.*|DYLD_.*|GLIBC_.*|GCONV_PATH|LOCPATH|NLSPATH|MALLOC_.*|HOSTALIASES|LOCALDOMAIN|RES_OPTIONS"
    r"|IFS|ENV|BASH.*|SHELL.*|PS4|CDPATH"
    r"|PYTHON.*|VIRTUAL_ENV|COVERAGE_.*|OPENSSL_.*|SSL.*"
    r"|LOCALCLOUD_(?!SERVING_SPEED$).*"
)


def handed_on(given: Mapping[str, str]) -> dict[str, str]:
    """The variables of a container that its process gets."""
    return {name: value for name, value in given.items() if not _MACHINE.fullmatch(name)}


def note_of_kept_back(given: Mapping[str, str]) -> tuple[str, ...]:
    """What the platform's log says of those that it does not get; never a value."""
    kept_back = sorted(given.keys() - handed_on(given).keys())
    if not kept_back:
        return ()
    return (f"{', '.join(kept_back)} left out: on this machine they would change what the daemon's own programs run.",)
