"""Error of a dynamic provider for the user: its text, without a traceback. Leaves out the texts."""

import sys


class ToldError(Exception):
    """A problem that the user has to repair; the text says what to do.

    A subclass sets `__module__ = "builtins"`, so that it is shown without a module before its name.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text)
        main = getattr(sys.modules.get("__main__"), "__spec__", None)
        if main is not None and main.name == "pulumi.dynamic.__main__":
            # The plugin sends a formatted traceback to the engine; its frames would bury the text.
            sys.tracebacklimit = 0
