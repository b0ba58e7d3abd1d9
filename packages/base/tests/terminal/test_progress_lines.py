"""Progress is one line on a terminal, which other text never overwrites, and plain lines elsewhere."""

from __future__ import annotations

import io
import sys

import pytest

from bezel_base.console import note, say
from bezel_base.terminal.blocks import Line
from bezel_base.terminal.screen import show
from bezel_base.terminal.status_line import StatusLine
from bezel_base.terminal.steps import StepLine, Steps


class Terminal(io.StringIO):
    """A terminal of 40 columns."""

    def isatty(self) -> bool:
        return True

    def rows(self) -> list[str]:
        """What a reader sees: a carriage return and the end of the erased line start a row anew."""
        return [row.split("\r\x1b[K")[-1] for row in self.getvalue().split("\n")]


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(autouse=True)
def _narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("TERM", "xterm")


def test_a_terminal_shows_the_last_message_in_one_row() -> None:
    out = Terminal()
    line = StatusLine(out)
    line.prefix = "cell 1: "
    line("1 of 2")
    line("2 of 2 " + "日" * 40)
    assert out.rows() == [f"cell 1: 2 of 2 {'日' * 11}…"]
    line.line("kept")
    line("next")
    assert out.rows() == ["kept", "cell 1: next"]
    line.end()
    assert out.rows() == ["kept", ""]


def test_a_log_gets_a_line_now_and_then_without_any_control_character() -> None:
    out, clock = io.StringIO(), Clock()
    line = StatusLine(out, clock)
    for second in range(25):
        clock.now = second
        line(f"{second} s")
    line.end()
    assert out.getvalue() == "  0 s\n  10 s\n  20 s\n"


def test_a_terminal_that_cannot_redraw_gets_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    out = Terminal()
    StatusLine(out)("1 of 2")
    with Steps(out) as steps:
        steps("asks")
    assert out.getvalue() == "  1 of 2\nasks\n"


def test_other_text_makes_the_line_end_first(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setattr(sys, "stderr", screen)
    line = StatusLine(screen)
    for write in (say, note, lambda text: show([Line(text)])):
        line("working")
        write("text")
    other = StatusLine(screen)
    line("working")
    other("copying")
    other.end()
    assert screen.rows() == ["text", "text", "text", ""]


def test_a_step_stays_with_the_time_that_it_took() -> None:
    out, clock = Terminal(), Clock()
    line = StepLine(out, clock)
    line.begin("previews dev")
    clock.now = 3
    line.tick()
    assert out.rows() == ["previews dev (3 s)"]
    line.begin("asks")
    assert out.rows() == ["previews dev (3 s)", "asks"]
    line.begin("a sentence that is longer than a row of the terminal")
    line.tick()
    line.settle()
    assert out.rows()[1:] == ["asks", "a sentence that is longer than a row of", "  the terminal", ""]


def test_steps_are_lines_without_credentials_where_no_terminal_is() -> None:
    out, terminal = io.StringIO(), Terminal()
    for stream in (out, terminal):
        with Steps(stream) as steps:
            steps("asks with Bearer ya29.a0AfH6SMBx1y2z3")
            steps("done")
    assert out.getvalue() == "asks with Bearer [redacted]\ndone\n"
    assert terminal.rows() == ["asks with Bearer [redacted]", "done", ""]
