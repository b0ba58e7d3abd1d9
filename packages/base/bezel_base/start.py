"""Start of a program: an interrupt while it is imported ends it as one of a command does, without a traceback.

For the function that a program's script calls; it imports nothing before. Leaves out the interrupts of Python's own
start, and those of a command (bezel_base.command_line.program).
"""

_INTERRUPTED = 130  # as bezel_base.ending_signals has it, which takes a while to import


def import_and_run(module: str) -> int:
    """Import a module and call its `main`; return the exit code."""
    try:
        import importlib

        code: int = importlib.import_module(module).main()
    except KeyboardInterrupt:
        return _INTERRUPTED
    return code
