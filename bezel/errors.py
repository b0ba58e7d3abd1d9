"""The root of the errors that a user reads: the command prints their text, and no traceback. Imports nothing."""


class UserError(Exception):
    """Something that the user has to mend; the text says what to do."""
