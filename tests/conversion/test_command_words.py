"""Words of a command as a shell splits them, and the options of a server in them."""

import shlex
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bezel.conversion.inputs.gcloud_flags import Flag, list_of, map_of, read_flags
from bezel.conversion.inputs.server_words import read_server_options, server_words, starts_server
from bezel.conversion.inputs.shell_words import commands_of
from bezel.conversion.inputs.variable_expansion import expand
from bezel.operations.config.flags import list_value
from bezel_base.errors import UserError
from bezel_catalog import vllm_options

OPTIONS = vllm_options("0.32.0")


@pytest.mark.slow
@given(st.lists(st.text(min_size=1, max_size=8).filter(lambda word: "\r" not in word), min_size=1, max_size=6))
def test_quoted_words_are_read_as_they_were_meant(tokens: list[str]) -> None:
    (command,) = commands_of(shlex.join(["x", *tokens]))
    assert command.tokens == ["x", *tokens]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("a b \\\n  c", [["a", "b", "c"]]),
        ('a \'b c\' "d \\"e\\"" f\\ g', [["a", "b c", 'd "e"', "f g"]]),
        ("a # b\nc #d e#f", [["a"], ["c"]]),
        ("a#b", [["a#b"]]),
        ("a && b || c; d | e &", [["a"], ["b"], ["c"], ["d"], ["e"]]),
        ("a > log 2>&1 <in b", [["a", "b"]]),
        ("a --x=<HERE> <YOUR ID>", [["a", "--x=<HERE>", "<YOUR ID>"]]),
        ("$ a ''", [["a", ""]]),
        ("M=x\na $M ${M}y ${N} '$M' \"$M\" ${N:-z} ${M:+w}", [["a", "x", "xy", "${N}", "$M", "x", "z", "w"]]),
        ("export A=1 B=2; a $A$B", [["export"], ["a", "12"]]),
        ("A=1 a B=2", [["a", "B=2"]]),
        (
            'P=$(gcloud config get project)\na --p=$P `b c` "$(d (e))"',
            [["a", "--p=$(gcloud config get project)", "`b c`", "$(d (e))"]],
        ),
        ("cat <<EOF > f\nx 'y\nEOF\na <<-'E' b\nc\n\tE\nd <<< e f", [["cat"], ["a", "b"], ["d", "f"]]),
        (
            'a ${R:-"us-east4"} ${S:-x-${R:=y}-z} ${1:-m} ${L[@]} $1',
            [["a", "us-east4", "x-y-z", "m", "${L[@]}", "${1}"]],
        ),
    ],
)
def test_a_text_is_split_into_commands(text: str, tokens: list[list[str]]) -> None:
    assert [command.tokens for command in commands_of(text) if command.tokens] == tokens


@pytest.mark.parametrize(
    "text",
    [
        "A0=xxxxxxxxxxxxxxxx\n" + "".join(f"A{number + 1}=$A{number}$A{number}\n" for number in range(60)),
        "a $" + "{b:-$" * 20_000,
        "a " + "$(" * 20_000,
        "a " + "<" * 20_000,
        "a <<E " * 2_000,
    ],
    ids=["doubled", "nested defaults", "open outputs", "angles", "here-documents"],
)
def test_a_text_that_would_grow_is_bounded(text: str) -> None:
    with suppress(UserError):
        assert sum(len(token) for command in commands_of(text) for token in command.tokens) <= len(text)


def test_variables_that_double_are_refused() -> None:
    text = "A=x\n" + "A=$A$A\n" * 40
    with pytest.raises(UserError, match="characters together"):
        commands_of(text)


def test_variables_of_this_process_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODEL", "secret")
    assert commands_of("a $MODEL")[0].tokens == ["a", "${MODEL}"]
    assert expand("$MODEL $$ ${MODEL:-b}", {}) == "${MODEL} $ b"


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("--max-model-len 16K", {"max-model-len": 16384}),
        ("--max_model_len=16k", {"max-model-len": 16000}),
        ("-tp 2 -q fp8", {"tensor-parallel-size": 2, "quantization": "fp8"}),
        ("--enforce-eager --no-enable-prefix-caching", {"enforce-eager": True, "enable-prefix-caching": False}),
        ("--enforce-eager=false", {"enforce-eager": False}),
        ("--served-model-name a b --seed -1", {"served-model-name": ["a", "b"], "seed": -1}),
        ("--middleware a --middleware b", {"middleware": ["a", "b"]}),
        ("""--limit-mm-per-prompt '{"image":4}'""", {"limit-mm-per-prompt": {"image": 4}}),
        ("--compilation-config.pass-config.x=true", {"compilation-config": {"pass_config": {"x": True}}}),
        ("-cc.mode 3 -cc.custom_ops+ none", {"compilation-config": {"mode": 3, "custom_ops": ["none"]}}),
        ("-O2", {"optimization-level": 2}),
        ("--gpu-memory-utilization .9", {"gpu-memory-utilization": 0.9}),
        ("--chat-template x.jinja", {"chat-template": "x.jinja"}),
    ],
)
def test_options_are_read_in_each_of_their_forms(text: str, options: dict[str, Any]) -> None:
    options_read = read_server_options(["google/gemma", *shlex.split(text)], OPTIONS)
    assert (options_read.model, options_read.options, options_read.remarks) == ("google/gemma", options, [])


@pytest.mark.parametrize(
    ("text", "key", "repair"),
    [
        ("--max-model-length 8", "--max-model-length", "did you mean --max-model-len?"),
        ("--swap-space 4", "--swap-space", "remove it"),
        ("--max-model-len", "--max-model-len", "write its value"),
        ("other", "other", "remove it"),
        ("--chat-template $T", "", ""),
        ("--chat-template '${T}'", "--chat-template", "add chat-template"),
    ],
)
def test_what_is_no_option_is_named(text: str, key: str, repair: str) -> None:
    tokens = [*commands_of(f"vllm serve google/gemma {text}")[0].tokens] if key == "" else ["a", *shlex.split(text)]
    options_read = read_server_options(server_words(tokens) if key == "" else tokens, OPTIONS)
    (named,) = options_read.remarks
    assert named.key == (key or "--chat-template")
    assert repair in named.repair


@pytest.mark.parametrize(
    ("tokens", "after"),
    [
        ("vllm serve m --a", "m --a"),
        ("/usr/bin/python3 -m vllm.entrypoints.openai.api_server --model m", "--model m"),
        ("uvx --with x vllm serve m --a", "m --a"),
        ("numactl --membind=0 vllm serve m", "m"),
        ("serve m", "m"),
        ("--model m", "--model m"),
        ("/bin/sh -c 'ls && exec vllm serve m --a'", "m --a"),
    ],
)
def test_the_words_after_the_program_are_the_servers(tokens: str, after: str) -> None:
    assert server_words(shlex.split(tokens)) == tuple(after.split())


def test_another_program_starts_no_server() -> None:
    assert starts_server(["vllm", "serve", "m"])
    assert not starts_server(["vllm", "bench", "serve"])
    assert not starts_server(["python", "-m", "vllm.other"])


@pytest.mark.slow
@given(st.lists(st.text(st.characters(codec="ascii", exclude_characters="@;^"), min_size=1, max_size=9), min_size=1))
def test_a_list_that_config_prints_is_read_back(items: list[str]) -> None:
    assert list_of(list_value(items)) == items


def test_flags_take_their_values_as_gcloud_has_it() -> None:
    plain, flags = read_flags(
        ["run", "deploy", "a", "--region", "r", "--no-cpu-throttling", "--gpu=1", "-q", "--image"]
    )
    assert plain == ["run", "deploy", "a"]
    expected = [("region", "r"), ("cpu-throttling", "false"), ("gpu", "1"), ("quiet", "true"), ("image", None)]
    assert flags == [Flag(*each) for each in expected]
    assert map_of("^:^A=1,2:B=") == {"A": "1,2", "B": ""}
    assert map_of("") == {}
