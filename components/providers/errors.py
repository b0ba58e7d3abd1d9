"""Error of a dynamic provider: shown to the user without a traceback. Leaves out the texts."""

import sys

from bezel.errors import Problem, UserError


class DeployError(UserError):
    """A problem that ends the deploy and that the user has to repair.

    A subclass sets `__module__ = "builtins"`, so that it is shown without a module before its name.
    """

    def __init__(self, *problems: Problem | str) -> None:
        super().__init__(*problems)
        main = getattr(sys.modules.get("__main__"), "__spec__", None)
        if main is not None and main.name == "pulumi.dynamic.__main__":
            # The plugin sends a formatted traceback to the engine; its frames would bury the text.
            sys.tracebacklimit = 0
