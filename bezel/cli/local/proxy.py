"""The proxy that a gateway of leased machines runs on localcloud: present before a deploy begins.

In a clone `.venv/bin/haproxy` fetches it when it is started first (`tools/toolchain/haproxy.py`), with its progress on
standard error. Leaves out the gateway itself.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from bezel_base.errors import Problem, UserError

PROXY = "haproxy"
SECONDS = 300.0


def require_proxy(path: str | None = None) -> None:
    """Start the proxy once, which fetches it in a clone that has none.

    Args:
        path: Where it is looked for; by default beside this interpreter, then on PATH, as localcloud does.

    Raises:
        UserError: There is none, or it does not start.
    """
    default_path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    program = shutil.which(PROXY, path=default_path if path is None else path)
    if program is not None:
        version = subprocess.run([program, "-v"], stdout=subprocess.DEVNULL, check=False, timeout=SECONDS)
        if version.returncode == 0:
            return
    consequence = "the gateway in front of the leased machines cannot start on localcloud; nothing was deployed."
    repair = "install HAProxy so that it is on PATH (Debian: apt-get install haproxy), then run the command again."
    raise UserError(Problem(PROXY, program, consequence, repair))
