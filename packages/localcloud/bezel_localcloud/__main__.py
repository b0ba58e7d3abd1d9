"""`python -m bezel_localcloud DIR`: serve one directory in the background and log to DIR/logs.

Started by `bezel_localcloud.control`. Users start `localcloud serve`.
"""

import argparse
import sys
from pathlib import Path

from bezel_base.errors import UserError
from bezel_base.process_end import collect_seldom, skip_last_collection


def main() -> int:
    """Run the daemon and return the exit status."""
    skip_last_collection()
    collect_seldom()
    from bezel_localcloud.daemon import run  # loaded without collections

    parser = argparse.ArgumentParser(prog="python -m bezel_localcloud", description=__doc__)
    parser.add_argument("directory", type=Path, help="directory for all data")
    parser.add_argument("--server", choices=("sim", "vllm"), default="sim", help="server behind each revision")
    parser.add_argument("--speed", type=float, default=60.0, help="factor by which the platform's waits are shortened")
    parser.add_argument("--idle-seconds", type=float, default=900.0, help="seconds that an idle instance keeps running")
    parser.add_argument("--port", type=int, default=0, help="port of the APIs; 0 for the last one, or any")
    parser.add_argument("--emulator", action="store_true", help="a second port for clients that send no credentials")
    parser.add_argument(
        "--no-default-network", dest="default_network", action="store_false", help="no network of a new project"
    )
    parser.add_argument("--tls", action="store_true", help="another port for clients that know only https")
    parser.add_argument("--parent", type=int, default=0, help="process with whose end it ends too; 0 for none")
    options = vars(parser.parse_args())
    try:
        run(options.pop("directory"), **options)
    except UserError as error:
        sys.stderr.write(f"localcloud: {error}\n")
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
