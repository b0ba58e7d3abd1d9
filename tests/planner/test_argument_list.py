"""The argument list says exactly what was chosen, in one spelling, whatever spelling the stack file used."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bezel.planner.vllm.arguments import chosen_arguments, default_options, merge
from bezel.planner.vllm.engine_args import read_engine
from bezel.planner.vllm.loading import FUSE
from bezel.planner.vllm.option_checks import check_options
from bezel_catalog import model, vllm_options, vllm_versions
from bezel_catalog.option_values import as_float, as_int, human_int
from tests.support.planner import command_line

QAT = model("gemma-4-12b-it-qat-w4a16")
OPTIONS = vllm_options("0.32.0")


def words(chosen, version="0.32.0"):
    options = vllm_options(version)
    return command_line.option_words(merge({}, chosen_arguments(chosen, options), options), options)


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ({"max-model-len": 4096}, ["--max-model-len=4096"]),
        ({"max_model_len": "4K"}, ["--max-model-len=4K"]),
        ({"--max-num-seqs": 8}, ["--max-num-seqs=8"]),
        ({"device-memory-utilization": 0.9}, ["--gpu-memory-utilization=0.9"]),
        ({"enforce-eager": True}, ["--enforce-eager"]),
        ({"enforce-eager": "true"}, ["--enforce-eager"]),
        ({"enable-prefix-caching": False}, ["--no-enable-prefix-caching"]),
        ({"no-enable-prefix-caching": True}, ["--no-enable-prefix-caching"]),
        ({"no-enable-prefix-caching": False}, ["--enable-prefix-caching"]),
        ({"disable-log-stats": False}, []),
        ({"limit-mm-per-prompt": {"image": 4, "audio": 1}}, ['--limit-mm-per-prompt={"audio":1,"image":4}']),
        ({"limit-mm-per-prompt": '{"image": 4}'}, ['--limit-mm-per-prompt={"image":4}']),
        ({"served-model-name": ["a"]}, ["--served-model-name=a"]),
        ({"served-model-name": ["a", "b"]}, ["--served-model-name", "a", "b"]),
        ({"middleware": ["a", "b"]}, ["--middleware=a", "--middleware=b"]),
        ({"max-model-len": None}, []),
    ],
)
def test_a_choice_is_written_in_one_spelling(chosen, expected):
    assert list(words(chosen)) == expected


def test_the_negation_is_that_of_the_release():
    assert words({"enable-prefix-caching": False}, "0.33.0") == ("--disable-prefix-caching",)


@pytest.mark.slow
@given(st.permutations([("max-num-seqs", 8), ("max-model-len", 4096), ("dtype", "auto"), ("enforce-eager", True)]))
def test_the_order_of_the_stack_file_does_not_count(chosen):
    assert words(dict(chosen)) == ("--dtype=auto", "--enforce-eager", "--max-model-len=4096", "--max-num-seqs=8")


@pytest.mark.parametrize("version", vllm_versions())
def test_bezels_own_defaults_pass_every_check_of_every_release(version):
    options = vllm_options(version)
    arguments = merge(default_options(QAT, loading=FUSE.options), {}, options)
    assert not list(check_options(arguments, options))
    assert read_engine(arguments, QAT)[1] == []


@pytest.mark.parametrize("version", vllm_versions())
def test_every_option_of_the_list_can_be_written_and_read_back(version):
    options = vllm_options(version)
    for option in options.options:
        value = _fitting(option)
        written = command_line.option_words(
            merge({}, chosen_arguments({option.name: value}, options), options), options
        )
        match = options.find(written[0].partition("=")[0])
        assert match == (option, False), written
        if option.kind not in ("switch", "switch-pair"):
            assert written[0].partition("=")[2]


def _fitting(option):
    if option.kind in ("switch", "switch-pair"):
        return True
    by_type = {"int": 1, "float": 0.5, "json": {"a": 1}, "human-int": "1K", "human-int-or-auto": "1K"}
    return option.choices[0] if option.choices else by_type.get(option.type, "x")


def test_an_option_that_nobody_knows_is_never_written():
    with pytest.raises(ValueError, match="nonsense"):
        command_line.option_words(merge({}, chosen_arguments({"nonsense": 1}, OPTIONS), OPTIONS), OPTIONS)


def test_ngram_needs_no_draft_model_in_memory_and_mtp_does():
    ngram = merge(
        default_options(QAT, loading=FUSE.options),
        chosen_arguments({"speculative-config": json.dumps({"method": "ngram", "num_speculative_tokens": 3})}, OPTIONS),
        OPTIONS,
    )
    mtp = merge(
        default_options(QAT, loading=FUSE.options),
        chosen_arguments({"spec-model": "/mnt/models/a", "spec-tokens": 3}, OPTIONS),
        OPTIONS,
    )
    neither = merge(default_options(QAT, loading=FUSE.options), {}, OPTIONS)
    engines = [read_engine(arguments, QAT)[0] for arguments in (ngram, mtp, neither)]
    assert [(engine.speculative, engine.assistant_loaded) for engine in engines] == [
        (True, False),
        (True, True),
        (False, False),
    ]


@pytest.mark.parametrize(
    ("method", "release", "environment", "overlaps"),
    [
        ("ngram", "0.32.0", {}, False),
        ("ngram", "0.33.0", {}, True),
        ("ngram", "0.33.0", {"VLLM_USE_V2_MODEL_RUNNER": "0"}, False),
        ("suffix", "0.33.0", {}, False),
        ("mtp", "0.32.0", {}, True),
    ],
)
def test_steps_overlap_with_drafts_as_the_release_schedules_them(method, release, environment, overlaps):
    options = vllm_options(release)
    chosen = chosen_arguments({"spec-method": method, "spec-tokens": 3}, options)
    arguments = merge(default_options(QAT, loading=FUSE.options), chosen, options)
    engine, _ = read_engine(arguments, QAT, release=release, environment=environment)
    assert engine.async_scheduling is overlaps


@pytest.mark.parametrize(
    ("chosen", "cached"),
    [
        ({}, True),
        ({"mamba-cache-mode": "align"}, True),
        ({"mamba-cache-mode": "all"}, False),
        ({"enable-prefix-caching": False}, False),
    ],
)
def test_states_are_kept_for_prefixes_unless_switched_off(chosen, cached):
    arguments = merge(default_options(QAT, loading=FUSE.options), chosen_arguments(chosen, OPTIONS), OPTIONS)
    assert read_engine(arguments, QAT)[0].cached_states is cached


@pytest.mark.parametrize(
    ("written", "number"),
    [
        (4096, 4096),
        ("4096", 4096),
        ("16k", 16_000),
        ("16K", 16_384),
        ("25.6k", 25_600),
        ("2M", 2_097_152),
        (-1, -1),
        (4096.0, 4096),
        ("1.5K", None),
        ("16 k", None),
        ("many", None),
        (True, None),
        (1.5, None),
        (None, None),
        ([], None),
    ],
)
def test_human_numbers_are_read_as_vllm_reads_them(written, number):
    assert human_int(written) == number


@pytest.mark.slow
@given(st.one_of(st.booleans(), st.text(), st.none(), st.lists(st.integers()), st.floats(), st.integers()))
def test_values_are_numbers_or_none_and_never_a_crash(value):
    for read in (as_int, as_float, human_int):
        number = read(value)
        assert number is None or isinstance(number, int | float)
    if isinstance(value, bool):
        assert as_int(value) is as_float(value) is human_int(value) is None
