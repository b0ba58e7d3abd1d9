"""A short command of the engine gives what it prints, or an error that says what to do."""

from pathlib import Path

import pytest

from bezel.engine.run.command import CommandError, command_output

HERE = Path(__file__).parent


def test_what_a_command_prints_comes_back_and_nothing_else() -> None:
    assert command_output(["sh", "-c", "echo told; echo aside >&2"], folder=HERE, seconds=20) == "told\n"


def test_a_command_that_fails_is_an_error_with_its_own_words() -> None:
    with pytest.raises(CommandError, match="sh -c: no such stack"):
        command_output(["sh", "-c", "echo no such stack >&2; exit 3"], folder=HERE, seconds=20)


@pytest.mark.slow
def test_a_command_that_does_not_end_is_ended_and_says_how_to_go_on() -> None:
    with pytest.raises(CommandError, match=r"`sh -c`\n   it was ended after 0.2 s: .*\n.* run the same command again"):
        command_output(["sh", "-c", "exec tail -f /dev/null"], folder=HERE, seconds=0.2)


@pytest.mark.slow
def test_a_shorter_deadline_may_be_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BEZEL_DEADLINE_SECONDS", "0.2")
    with pytest.raises(CommandError, match=r"after 0.2 s"):
        command_output(["sh", "-c", "exec tail -f /dev/null"], folder=HERE, seconds=20)
    monkeypatch.setenv("BEZEL_DEADLINE_SECONDS", "soon")
    with pytest.raises(CommandError, match=r"BEZEL_DEADLINE_SECONDS = soon\n   expected a number of seconds"):
        command_output(["sh", "-c", "echo told"], folder=HERE, seconds=20)
