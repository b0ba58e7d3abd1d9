"""Entry point of the `docker` stand-in: `python -m bezel.standin_providers.docker`, started by the engine."""

from bezel.standin_providers.plugin.fast_import import lighten


def main() -> None:
    """Start the provider; it prints its port and serves."""
    lighten()
    # Imported only after `lighten`: these modules import the protocol, which would otherwise import the whole SDK.
    from bezel.standin_providers.plugin.docker_plugin import DockerPlugin
    from bezel.standin_providers.plugin.server import serve

    serve(DockerPlugin())


if __name__ == "__main__":
    main()
