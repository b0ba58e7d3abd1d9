"""Messages of the engine: each failure once, its cause first, and nothing is dropped that says something else."""

import io
import os
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bezel.engine.run.output import display_output
from bezel.engine.run.texts import Display, cause_first, plain_errors

SENTENCE = (
    "Revision 'r-1' is not ready and cannot serve traffic. The user-provided container failed to start and listen on "
    "the port."
)
LINK = "Logs URL: https://console.cloud.google.com/logs/viewer?project=p"
WAITED = f"Error waiting to create Service: Error waiting for Creating Service: Error code 9, message: {SENTENCE}"
BARE = f"{WAITED}\n\n{LINK}"
LOGGED = f"  sdk-v2/provider2.go:571: sdk.helper_schema: {BARE}: provider=google-beta@10.2.0"
LISTED = f"1 error occurred:\n\t* creating urn:pulumi:dev::b::gcp:x:Service::s: 1 error occurred:\n\t* {BARE}\n\n"
EXPLAINED = "\n   ".join(
    [
        "service llm",
        f"platform: Ready failed (X): {SENTENCE} {LINK}",
        "container's last lines:",
        "  | CUDA out of memory",
        "cause: the memory is too small",
        "consequence: r-1 gets no traffic",
        "Repair: take a larger accelerator.",
    ]
)


def test_the_platform_s_sentence_is_said_once_below_the_cause() -> None:
    (text,) = plain_errors([LOGGED, EXPLAINED, LISTED])
    assert text.count(SENTENCE) == 1
    assert text.splitlines()[:4] == [
        "service llm",
        "   cause: the memory is too small",
        "   consequence: r-1 gets no traffic",
        "   Repair: take a larger accelerator.",
    ]
    assert "CUDA out of memory" in text


CLOSED = "Resource monitor has terminated, shutting down"
CANCELLED = "failed to run policy: context canceled"


@pytest.mark.parametrize("ended", [CLOSED, CANCELLED])
def test_what_the_failed_run_ended_is_no_cause_beside_one_and_kept_alone(ended: str) -> None:
    assert plain_errors([ended, BARE]) == [BARE]
    assert plain_errors([ended]) == [ended]
    assert plain_errors([f"{ended}: {BARE}"]) == [f"{ended}: {BARE}"]


def test_the_stack_s_own_row_stays_last_where_the_port_was_closed_too() -> None:
    display = Display()
    stack = ["  pulumi:pulumi:Stack (s):", "    error: update failed", f"    error: {CLOSED}", ""]
    resource = ["  gcp:x:Service (s):", f"    error: {SENTENCE}", ""]
    shown = [line for group in ["Diagnostics:", *stack, *resource] for line in display.take(group)]
    assert [*shown, *display.end()] == ["Diagnostics:", *resource, *stack[:2], ""]


def test_without_an_explanation_the_provider_s_words_are_kept_once() -> None:
    assert plain_errors([LOGGED, LISTED]) == [BARE]


@pytest.mark.parametrize(
    "other",
    [
        BARE.replace("r-1", "r-2"),  # of another service
        "Error 403: Permission 'run.services.create' denied on resource 'projects/p'.",
        "2 errors occurred:\n\t* one\n\t* two",
    ],
)
def test_another_failure_is_kept_beside_it(other: str) -> None:
    errors = plain_errors([LOGGED, other, EXPLAINED, LISTED])
    assert len(errors) == 2
    assert errors[0].startswith("service llm")
    assert errors[1] == other


@pytest.mark.slow
@given(st.lists(st.text(max_size=60), max_size=6))
def test_some_error_is_left_of_any(texts: list[str]) -> None:
    assert bool(plain_errors(texts)) is bool(texts)


@pytest.mark.slow
@given(st.text(max_size=200))
def test_no_line_is_lost_by_putting_the_cause_first(text: str) -> None:
    explained = f"head\n   {text}\n   cause: c\n   Repair: r"
    assert sorted(cause_first(explained).split("\n")) == sorted(explained.split("\n"))
    assert cause_first("no cause:\nhere") == "no cause:\nhere"


def display(text: str) -> list[str]:
    shown, taken = Display(), []
    for line in text.splitlines():
        taken += shown.take(line)
    return taken + shown.end()


def indent(message: str) -> str:
    head, *lines = message.splitlines()
    return "\n".join([f"    error: {head}", *(f"    {line}" for line in lines)])


OUTPUT = "\n".join(
    [
        "Updating (dev):",
        " +  gcp:x:Service s creating (0s) ",
        f" +  gcp:x:Service s creating (1s) error: {LOGGED.splitlines()[0]}",
        " +  gcp:x:Service s creating (1s) error: service llm",
        " +  gcp:x:Service s **creating failed** error: 1 error occurred:",
        "Diagnostics:",
        "  pulumi:pulumi:Stack (bezel-dev):",
        "    a line that the program printed",
        "    error: update failed",
        "",
        "  gcp:x:Service (s):",
        "    warning: it may take long",
        indent(LOGGED),
        indent(EXPLAINED),
        indent(LISTED),
        "",
        "Resources:",
        "    1 errored",
    ]
)


def test_the_display_shows_each_failure_once_and_the_cause_before_the_rest() -> None:
    lines = display(OUTPUT)
    text = "\n".join(lines)
    assert text.count(SENTENCE) == 1
    assert " +  gcp:x:Service s **creating failed**" in lines
    assert lines.count(" +  gcp:x:Service s creating (1s)") == 1
    at = lines.index("Diagnostics:")
    assert lines[at + 1 : at + 6] == [
        "  gcp:x:Service (s):",
        "    error: service llm",
        "       cause: the memory is too small",
        "       consequence: r-1 gets no traffic",
        "       Repair: take a larger accelerator.",
    ]
    for kept in ("a line that the program printed", "warning: it may take long", "error: update failed", "1 errored"):
        assert kept in text
    assert text.index("cause: ") < text.index("update failed")


def test_output_without_a_failure_is_as_the_engine_wrote_it() -> None:
    well = (
        "Updating (dev):\n +  a:b:C d created (1s) \nDiagnostics:\n  a:b:C (d):\n    warning: old\n\nResources:\n    1"
    )
    assert display(well) == well.splitlines()


@pytest.mark.parametrize("operation", ["destroy", "up"])
def test_a_destroy_names_no_command_of_another_backend(operation: str) -> None:
    """The engine's `pulumi stack rm` finds no stack without localcloud's variables."""
    lines = ["Resources:", "    - 2 deleted", "", "Duration: 3s", ""]
    if operation == "destroy":
        rest = "but the history and configuration associated with the stack are still maintained. "
        lines += [f"The resources in the stack have been deleted, {rest}"]
        lines += ["If you want to remove the stack completely, run `pulumi stack rm dev`."]
    display = Display()
    shown = [text for line in lines for text in display.take(line)]
    assert [*shown, *display.end()] == lines[:5]


def test_diagnostics_at_the_very_end_are_shown() -> None:
    assert "    error: broken" in display("Diagnostics:\n  a:b:C (d):\n    error: broken")


def test_the_engine_s_lines_come_through_the_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO()
    monkeypatch.setattr(sys, "stdout", out)
    with display_output() as streams:
        assert streams is not None
        os.write(streams[0], OUTPUT.encode())
    assert out.getvalue().count(SENTENCE) == 1
    assert out.getvalue().endswith("    1 errored\n")


def test_a_closed_output_does_not_hold_the_engine_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    closed = (tmp_path / "out").open("w")
    closed.close()
    monkeypatch.setattr(sys, "stdout", _Closed())
    with display_output() as streams:
        assert streams is not None
        for _ in range(200):  # more than a pipe holds
            os.write(streams[0], b"x" * 1000 + b"\n")


class _Closed(io.StringIO):
    def write(self, _: str) -> int:
        raise BrokenPipeError


def test_on_a_terminal_the_engine_has_its_own_display(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdout", terminal)
    with display_output() as streams:
        assert streams is None
