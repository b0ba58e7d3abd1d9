"""The entry of the `docker` stand-in: `python -m bezel.localcloud.providers.docker`, started by the engine."""

from .lean import lighten


def main() -> None:
    """Start the provider; it prints its port and serves."""
    lighten()
    # Only now: what follows imports the protocol, which would otherwise bring the whole SDK with it.
    from .docker_plugin import DockerPlugin
    from .server import serve

    serve(DockerPlugin())


if __name__ == "__main__":
    main()
