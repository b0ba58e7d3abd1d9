"""The error of a dynamic provider that the user reads: its text, and no frames. Leaves out what went wrong."""

import sys


class ToldError(Exception):
    """Something that the user has to mend; the text says what to do.

    A subclass sets `__module__ = "builtins"`, so that it is shown without a module before its name.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text)
        main = getattr(sys.modules.get("__main__"), "__spec__", None)
        if main is not None and main.name == "pulumi.dynamic.__main__":
            # The plugin hands a formatted traceback to the engine; its frames would bury the text.
            sys.tracebacklimit = 0
