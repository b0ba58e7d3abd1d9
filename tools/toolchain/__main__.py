"""`python3 tools/toolchain [dev|site|wheels]`: installs what is needed beyond Python, git, and Go or the internet.

Without `dev` it is what `make up` needs; HAProxy follows when a gateway starts. `dev` adds what lint and tests need.
`site` installs the generator of `make site` alone, `wheels` what builds and attaches wheels of the compiled engine.

Standard library only: it runs before anything is installed. Leaves out localcloud and the stacks: see `bezel local`.
"""

import sys

PYTHON_MINIMUM = (3, 11)


def main() -> int:
    """Set up uv, `.venv` and the Pulumi CLI, for developers also HAProxy and Chromium; return 1 if that fails."""
    if sys.version_info < PYTHON_MINIMUM:
        python_version = ".".join(str(part) for part in sys.version_info[:3])
        sys.stderr.write(
            f"python3 is {python_version}, too old for this project: put Python 3.11 or newer first on PATH.\n"
        )
        return 1
    import chromium
    import environment
    import haproxy
    import progress
    import pulumi_cli

    developer = sys.argv[1:] == ["dev"]
    try:
        if len(sys.argv) == 2 and sys.argv[1] in environment.GROUPS:
            environment.sync_group(environment.find_uv(), sys.argv[1])
            return 0
        with environment.sync(environment.find_uv(), developer=developer):
            pulumi = pulumi_cli.find()
        environment.link_pulumi(pulumi)
        if developer:
            haproxy.link()
            chromium.link()
        else:
            haproxy.prepare()
    except (progress.StepError, pulumi_cli.NoWayError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("\nstopped; run it again to go on\n")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
