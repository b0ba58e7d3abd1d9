"""The entry of the `gcp` stand-in: `python -m bezel.localcloud.providers.gcp`, started by the engine."""

from .lean import lighten


def main() -> None:
    """Start the provider; it prints its port and serves."""
    lighten()
    # Only now: what follows imports the protocol, which would otherwise bring the whole SDK with it.
    from .google_plugin import GooglePlugin
    from .server import serve

    serve(GooglePlugin())


if __name__ == "__main__":
    main()
