"""Script of `bezel`: imports the program, while an interrupt shows no traceback, and runs a command."""

from bezel_base.start import import_and_run


def main() -> int:
    """Run the command of this process; return its exit code."""
    return import_and_run("bezel.cli.main")
