"""Further options of a load for agents: those of the command that shape what is sent, and none that reaches beyond."""

import pytest
from pydantic import TypeAdapter, ValidationError

from bezel.operations.bench.load_options import NAMES, LoadOption, option_words
from bezel_base.errors import UserError
from bezel_bench.commands.table import shared_table

REACHING = ("url", "also-url", "file", "trace", "config", "header", "api-key-env", "ca-file", "out", "workers", "like")


def test_each_name_is_an_option_of_the_command_that_takes_a_value() -> None:
    arguments = shared_table().arguments_of("run")
    assert all("action" not in arguments[f"--{name}"] for name in NAMES)
    assert not set(NAMES) & set(REACHING)
    every = [f"{name}=1" for name in NAMES]
    assert option_words(every) == [f"--{option}" for option in every]
    assert TypeAdapter(tuple[LoadOption, ...]).validate_python(every)


def test_what_reaches_beyond_the_load_is_refused_at_once() -> None:
    wrong = [f"{name}=x" for name in REACHING] + ["input-lengths=file:/etc/passwd", "seed=1", "seed=2"]
    with pytest.raises(UserError) as refused:
        option_words(wrong)
    assert len(refused.value.problems) == len(wrong)
    with pytest.raises(UserError, match="write max-concurrency, or one of"):
        option_words(["max-concurency=4"])
    for text in ("seed", "seed=", "seed=1 --out=x", "--seed=1\n"):
        with pytest.raises(ValidationError):
            TypeAdapter(LoadOption).validate_python(text)
