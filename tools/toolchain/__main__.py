"""`python3 tools/toolchain`: installs what the project needs beyond Python, git and either internet access or Go.

Standard library only: it runs before anything is installed. Leaves out localcloud and the stacks: see `bezel local`.
"""

import sys

PYTHON_MINIMUM = (3, 11)


def main() -> int:
    """Set up uv, `.venv`, the Pulumi CLI, HAProxy and Chromium; return exit code 1 with the reason if that fails."""
    if sys.version_info < PYTHON_MINIMUM:
        own = ".".join(str(part) for part in sys.version_info[:3])
        sys.stderr.write(f"python3 is {own}, too old for this project: put Python 3.11 or newer first on PATH.\n")
        return 1
    import chromium
    import environment
    import haproxy
    import progress
    import pulumi_cli

    try:
        environment.sync(environment.find_uv())
        environment.link_pulumi(pulumi_cli.find())
        haproxy.link()
        chromium.link()
    except (progress.StepError, pulumi_cli.NoWayError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("\nstopped; run it again to go on\n")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
