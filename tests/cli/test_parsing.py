"""A command line that is none is told in two lines, by the command that it was for."""

import pytest

from bezel.cli.main import parse

RUN = ("bench", "run", "--url", "http://127.0.0.1:1")
UP = ("local", "up", "l4-qat")
COPY = ("weights", "copy", "l4-qat")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ((*RUN, "--usr", "8"), "bezel bench run: nothing here takes --usr 8; did you mean --users?"),
        (
            (*RUN, "--input-token=3"),
            "bezel bench run: nothing here takes --input-token=3; did you mean --input-tokens?",
        ),
        ((*RUN, "--zzz"), "bezel bench run: nothing here takes --zzz"),
        ((*RUN, "--request", "3"), "bezel bench run: nothing here takes --request 3; did you mean --requests?"),
        ((*RUN, "--users", "many"), "bezel bench run: argument --users: 'many' is no whole number, as 8 is"),
        ((*RUN, "--users", "1.5"), "bezel bench run: argument --users: '1.5' is no whole number, as 8 is"),
        ((*UP, "--deadline", "soon"), "bezel local up: argument --deadline: 'soon' is no number, as 90 and 0.5 are"),
        (
            (*UP, "--deadline", "0"),
            "bezel local up: argument --deadline: 0 is no finite number above 0, as 90 and 0.5 are",
        ),
        (
            (*UP, "--deadline", "nan"),
            "bezel local up: argument --deadline: nan is no finite number above 0, as 90 and 0.5 are",
        ),
        ((*UP, "--speed", "-1"), "bezel local up: argument --speed: -1 is no finite number above 0, as 90 and 0.5 are"),
        (
            (*COPY, "--deadline", "inf"),
            "bezel weights copy: argument --deadline: inf is no finite number above 0, as 90 and 0.5 are",
        ),
        (
            ("bench", "ab", "--start-seconds", "-1"),
            "bezel bench ab: argument --start-seconds: -1 is no finite number above 0, as 90 and 0.5 are",
        ),
        (("plan", "l4-qat", "l4-fp8"), "bezel plan: nothing here takes l4-fp8"),
        (("plan", "l4-qat", "--", "--diff"), "bezel: nothing is passed on to pulumi here: -- --diff"),
        ((*UP, "--dead", "3"), "bezel local up: nothing here takes --dead 3; did you mean --deadline?"),
        ((*UP, "x", "--", "--diff"), "bezel: what is passed on to pulumi stands after --: x stands before it"),
    ],
)
def test_a_mistake_is_told_with_what_was_perhaps_meant(
    capsys: pytest.CaptureFixture[str], given: tuple[str, ...], told: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(given)
    program = told.partition(":")[0]
    assert ended.value.code == 2
    assert capsys.readouterr().err == f"{told}\nEverything it takes: {program} --help\n"


def test_what_is_right_is_read_whole() -> None:
    run = parse((*RUN, "--users", "8", "--input-tokens=3"))
    assert (run.command, run.users, run.input_tokens) == ("bench", 8, 3)
    up = parse((*UP, "--deadline", "3", "--", "--diff", "x"))
    assert (up.action, up.stack, up.deadline, up.pulumi) == ("up", "l4-qat", 3.0, ["--diff", "x"])
    assert not hasattr(up, "parser")
