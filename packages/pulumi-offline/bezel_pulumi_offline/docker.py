"""Entry point of the `docker` stand-in: `python -m bezel_pulumi_offline.docker`, started by the engine."""

import signal

from bezel_pulumi_offline.plugin.fast_import import lighten


def main() -> None:
    """Start the provider; it prints its port and serves."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # no traceback when stopped while still importing
    lighten()
    # Imported only after `lighten`: these modules import the protocol, which would otherwise import the whole SDK.
    from bezel_pulumi_offline.plugin.docker_plugin import DockerPlugin
    from bezel_pulumi_offline.plugin.server import serve

    serve(DockerPlugin())


if __name__ == "__main__":
    main()
