"""Root of the errors that a user reads: the command prints their text without a traceback. Imports nothing."""


class UserError(Exception):
    """An error that the user has to repair; the text gives the repair."""
