"""A terminal has its own width and colours, a pipe 80 columns and none; variables of the user change both."""

from __future__ import annotations

import io
import os
import pty
import struct
from fcntl import ioctl
from termios import TIOCSWINSZ
from typing import TYPE_CHECKING, TextIO

import pytest

from bezel_base.terminal.blocks import Line, Role
from bezel_base.terminal.screen import Screen, screen_of, show, show_message, show_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


@pytest.fixture
def terminal() -> Iterator[TextIO]:
    """A terminal of 100 columns."""
    outer, inner = pty.openpty()
    ioctl(inner, TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
    with os.fdopen(inner, "w") as stream:
        yield stream
    os.close(outer)


@pytest.mark.parametrize(
    ("environ", "on_terminal", "in_pipe"),
    [
        ({}, Screen(100, is_coloured=True), Screen(80, is_coloured=False)),
        ({"TERM": "dumb"}, Screen(100, is_coloured=False), Screen(80, is_coloured=False)),
        ({"NO_COLOR": "1"}, Screen(100, is_coloured=False), Screen(80, is_coloured=False)),
        ({"NO_COLOR": ""}, Screen(100, is_coloured=True), Screen(80, is_coloured=False)),
        ({"FORCE_COLOR": "1", "TERM": "dumb"}, Screen(100, is_coloured=True), Screen(80, is_coloured=True)),
        ({"CLICOLOR_FORCE": "0", "FORCE_COLOR": ""}, Screen(100, is_coloured=True), Screen(80, is_coloured=False)),
        ({"CLICOLOR_FORCE": "1", "NO_COLOR": "x"}, Screen(100, is_coloured=False), Screen(80, is_coloured=False)),
        ({"COLUMNS": "120"}, Screen(120, is_coloured=True), Screen(120, is_coloured=False)),
        ({"COLUMNS": "7"}, Screen(40, is_coloured=True), Screen(40, is_coloured=False)),
        ({"COLUMNS": "many"}, Screen(100, is_coloured=True), Screen(80, is_coloured=False)),
    ],
)
def test_width_and_colours_follow_the_stream_and_the_variables(
    terminal: TextIO, environ: Mapping[str, str], on_terminal: Screen, in_pipe: Screen
) -> None:
    assert screen_of(terminal, environ) == on_terminal
    assert screen_of(io.StringIO(), environ) == in_pipe


def test_a_message_fits_a_terminal_and_a_log_keeps_its_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    sentence, example = "Repair: " + "word " * 30, "     - {item: vcpu}" + " " * 90 + "# copied"
    log = io.StringIO()
    show_message(f"{sentence}\n{example}", log)
    assert log.getvalue() == f"{sentence}\n{example}\n"
    screen = io.StringIO()
    screen.isatty = lambda: True  # type: ignore[method-assign]
    show_message(f"{sentence}\n{example}", screen)
    text = io.StringIO()
    show_text(f"{sentence}\n{example}", text)
    assert text.getvalue() == screen.getvalue()
    rows = text.getvalue().splitlines()
    assert [len(row) <= 80 for row in rows] == [True, True, True, False]
    assert rows[-1] == example


def test_blocks_are_shown_in_the_width_of_the_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "40")
    out = io.StringIO()
    show([Line("a" * 30 + " " + "b" * 20, Role.HEADING)], out, edit=str.upper)
    assert out.getvalue() == f"{'A' * 30}\n  {'B' * 20}\n"
