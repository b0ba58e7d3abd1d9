"""Parsers that chat templates call for: those of published models, reduced to what they write, and near misses."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from bezel_catalog import vllm_options
from bezel_catalog.vllm.parser_families import (
    TokenizerFacts,
    added_tokens,
    opens_thought,
    parser_families,
    propose_reasoning_parser,
    propose_tool_parser,
    template_texts,
)

MODELS: dict[str, dict[str, Any]] = tomllib.loads(
    Path(__file__).with_name("fixtures").joinpath("chat_templates.toml").read_text(encoding="utf-8")
)["model"]
QWEN = MODELS["qwen3"]


def facts_of(row, **changes):
    values = {"templates": (row["template"],), "tokens": frozenset(row["tokens"])}
    return TokenizerFacts(**values | changes)


@pytest.mark.parametrize("name", MODELS)
def test_published_models_get_the_parsers_of_their_family(name):
    row = MODELS[name]
    proposed = propose_tool_parser(facts_of(row), row["model_type"])
    assert proposed.parser == row["tool"], proposed.reason
    assert propose_reasoning_parser(facts_of(row), row["model_type"]).parser == row["reasoning"]


@pytest.mark.parametrize("release", ["0.32.0", "0.33.0"])
def test_every_proposed_name_is_registered_in_each_release(release):
    registered = vllm_options(release).registered
    for kind, option in (("tool", "tool-call-parser"), ("reasoning", "reasoning-parser")):
        names = [name for row in parser_families()[kind] for name in row.names]
        assert set(names) <= set(registered[option])
        assert len(names) == len(set(names))


def test_every_expression_of_a_row_compiles():
    rows = [row for rows in parser_families().values() for row in rows]
    assert all(re.compile(text) for row in rows for text in (*row.writes, *row.lacks))
    assert all(row.family for row in rows)


def test_a_model_without_a_template_gets_no_parser():
    proposed = propose_tool_parser(facts_of(QWEN, templates=()), "qwen3")
    assert (proposed.parser, proposed.reason[:16]) == ("", "no chat template")


@pytest.mark.parametrize(("tokens", "reason"), [(frozenset(), "which the tokenizer lacks"), (None, "were not read")])
def test_a_parser_is_not_proposed_without_the_tokens_that_it_needs(tokens, reason):
    row = MODELS["mistral_small"]
    proposed = propose_tool_parser(facts_of(row, tokens=tokens), row["model_type"])
    assert proposed.parser == ""
    assert reason in proposed.reason
    assert propose_tool_parser(facts_of(row), row["model_type"]).parser == "mistral"


def test_neither_of_two_parsers_that_fit_is_proposed():
    both = (MODELS["mistral_small"]["template"], MODELS["hermes3"]["template"])
    proposed = propose_tool_parser(TokenizerFacts(both, frozenset({"[TOOL_CALLS]"})), "mistral")
    assert proposed.parser == ""
    assert "hermes and mistral fit its chat template alike" in proposed.reason


def test_a_reason_quotes_the_template():
    assert propose_tool_parser(facts_of(QWEN), "qwen3").reason.endswith('<tool_call> {"name"')


def test_texts_of_conditions_and_functions_are_not_written():
    template = "{% if '<a>' in x %}{{ x.split('<b>')[0] + '<c>' }}{% set y = x + '<d>' %}{# <e> #}<f>"
    assert template_texts(template) == "<c><d><f>"
    assert template_texts("{{ '<g>' if y == '<h>' else '<i>' }}") == "<g><i>"


def test_blanks_beside_tags_are_trimmed_as_jinja_does():
    assert template_texts("{{- 'a\\n' -}}\n  {{- 'b' }} c {{ 'd' }}\n") == "a\nb c d\n"


@pytest.mark.parametrize("template", ["{{ 'unfinished", "{% set x = 'a", "{#", "{{ \"a' }}", "{{", ""])
def test_a_damaged_template_is_read_to_its_end(template):
    assert isinstance(template_texts(template), str)
    assert opens_thought(template) is False


def test_a_template_without_an_end_takes_little_time():
    """Each quote of a text that is not closed would be looked for from there to the end."""
    assert template_texts("<a>{{ '" + "\\'" * 100_000) == "<a>"
    assert template_texts("<a>{{ '" + "\\'" * 3 + "b' }}") == "<a>" + "'" * 3 + "b"


def test_a_switch_in_the_prompt_is_not_an_opened_thought():
    assert opens_thought(MODELS["qwq"]["template"])
    assert not opens_thought(QWEN["template"])


def test_added_tokens_come_from_both_files():
    configuration = {"added_tokens_decoder": {"1": {"content": "<a>"}}}
    beginning = '{"version": "1.0", "added_tokens": [{"id": 2, "content": "<\\u0062>"}], "model": {"vocab": {'
    assert added_tokens(configuration, beginning) == {"<a>", "<b>"}
    assert added_tokens({}, '{"added_tokens": [{"id": 2, "cont') is None
