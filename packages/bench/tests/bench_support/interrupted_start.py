"""Prompts that are interrupted where a worker process receives them, before any code of a worker runs."""

import os
import signal

from bench_support.wire import Prompts


def interrupt_group() -> Prompts:
    """Do what Ctrl-C does: tell all processes of a terminal's group."""
    os.killpg(0, signal.SIGINT)
    return Prompts()


class InterruptedPrompts(Prompts):
    """The first worker interrupts its group, once."""

    has_gone = False

    def __reduce__(self) -> tuple[object, tuple[()]]:
        is_first, self.has_gone = not self.has_gone, True
        return (interrupt_group if is_first else Prompts), ()
