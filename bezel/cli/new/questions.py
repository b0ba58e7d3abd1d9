"""Questions of `bezel new` on a terminal: each with its default, asked again after an answer that cannot be used."""

import sys
from collections.abc import Callable
from dataclasses import dataclass

from bezel_base.errors import NOT_SET, Problem, UserError, WrongValueError
from bezel_base.terminal.screen import show_text

ATTEMPTS = 5
"""Answers that are read before the command gives up: a pipe of a terminal may repeat a wrong one for ever."""


@dataclass(frozen=True)
class Questions:
    """Asks for what the command line leaves open.

    Attributes:
        are_asked: Whether a person is asked; else each default is taken.
    """

    are_asked: bool

    def answer(self, key: str, question: str, default: str, check: Callable[[str], object]) -> str:
        """The answer; the default where it is empty, or where no person is asked.

        Args:
            key: The option or argument, for messages.
            question: What is asked.
            default: What an empty answer means; "" where there is no default.
            check: Raises a WrongValueError for an answer that cannot be used.

        Raises:
            WrongValueError: There is no default and no person to ask, the input ended, or no answer could be used.
        """
        if not self.are_asked:
            if default:
                return default
            raise WrongValueError(
                Problem(key, NOT_SET, "it is needed, and has no default.", "write e.g. `bezel new chat`.")
            )
        for _ in range(ATTEMPTS):
            answer = _read(key, f"{question} [{default}] " if default else f"{question} ").strip() or default
            try:
                if answer:
                    check(answer)
                    return answer
                show_text("type a value.")
            except UserError as error:
                show_text(str(error))
        consequence = f"none of {ATTEMPTS} answers can be used, so nothing was made."
        raise WrongValueError(Problem(key, NOT_SET, consequence, "add it to the command."))


def is_terminal() -> bool:
    """Whether a person can be asked."""
    return sys.stdin is not None and sys.stdin.isatty()


def _read(key: str, prompt: str) -> str:
    try:
        return input(prompt)
    except (EOFError, UnicodeDecodeError) as error:
        show_text("")
        what = "the input ended before the answer" if isinstance(error, EOFError) else "the answer is not text"
        repair = "add it to the command, or --yes for the defaults."
        raise WrongValueError(Problem(key, NOT_SET, f"{what}, so nothing was made.", repair)) from None
