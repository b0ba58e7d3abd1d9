"""Container variables that are withheld from its process, since it shares a machine with the daemon.

A container on Cloud Run is isolated: a variable for the loader, a shell or Python affects only itself. Here the same
variable would choose the code that the daemon's interpreter runs, or the instance that a process is attributed to.
"""

import re
from collections.abc import Mapping

# Read by the dynamic loader and the C library, by shells, by Python (HOME: the user's own packages), by OpenSSL, by
# tools that hook into every Python process; and localcloud's own marks. The variables for the simulated engine's speed
# are passed on.
_MACHINE = re.compile(
    r"PATH|HOME|TMPDIR|LANG|LANGUAGE|LC_.*|TZDIR"
    r"|LD_.*|DYLD_.*|GLIBC_.*|GCONV_PATH|LOCPATH|NLSPATH|MALLOC_.*|HOSTALIASES|LOCALDOMAIN|RES_OPTIONS"
    r"|IFS|ENV|BASH.*|SHELL.*|PS4|CDPATH"
    r"|PYTHON.*|VIRTUAL_ENV|COVERAGE_.*|OPENSSL_.*|SSL.*"
    r"|LOCALCLOUD_(?!SERVING_SPEED$).*"
)


def passed_on(variables: Mapping[str, str]) -> dict[str, str]:
    """The variables of a container that are passed to its process."""
    return {name: value for name, value in variables.items() if not _MACHINE.fullmatch(name)}


def notes_of_withheld(variables: Mapping[str, str]) -> tuple[str, ...]:
    """Messages of the platform's log about the withheld variables, without their values."""
    withheld = sorted(variables.keys() - passed_on(variables).keys())
    if not withheld:
        return ()
    return (
        f"{', '.join(withheld)} not passed on: on this machine they would change the programs that the daemon runs.",
    )
