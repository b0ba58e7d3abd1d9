"""What a folder must hold to be a model."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bezel.weights.layout import is_wanted, missing_parts

WHOLE = {"config.json": 1, "model.safetensors": 8, "tokenizer.json": 3}
SHARDS = {f"model-{n:05}-of-00004.safetensors": 9 for n in range(1, 5)}


@pytest.mark.parametrize(
    "files",
    [
        WHOLE,
        {"config.json": 1, "tokenizer.model": 3, **SHARDS},
        {**WHOLE, "README.md": 0, "generation_config.json": 2},
        {**WHOLE, "tokenizer_config.json": 4},
    ],
)
def test_a_whole_model_lacks_nothing(files: dict[str, int]) -> None:
    assert missing_parts(files) == []


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, ["config.json is missing", "no weights", "tokenizer"]),
        ({**WHOLE, "config.json": 0}, ["config.json is empty"]),
        ({**WHOLE, "config.json": 0, "model.safetensors": 0}, ["config.json, model.safetensors are empty"]),
        ({"config.json": 1, "tokenizer.json": 3}, ["no weights"]),
        ({"config.json": 1, "model.safetensors": 8}, ["the tokenizer (tokenizer.json) is missing"]),
        ({"config.json": 1, "pytorch_model.bin": 8, "tokenizer.json": 3}, ["no weights"]),
    ],
)
def test_each_missing_part_is_named(files: dict[str, int], message: list[str]) -> None:
    problems = missing_parts(files)
    assert len(problems) == len(message)
    assert all(word in problem for word, problem in zip(message, problems, strict=True))


@pytest.mark.slow
@given(st.sets(st.sampled_from(sorted(SHARDS)), min_size=1))
def test_a_copy_that_stopped_half_way_names_the_shards_that_did_not_come(arrived: set[str]) -> None:
    files = {"config.json": 1, "tokenizer.json": 3, **dict.fromkeys(arrived, 9)}
    absent = set(SHARDS) - arrived
    problems = missing_parts(files)
    assert bool(problems) == bool(absent)
    assert all(name in problems[0] for name in absent)


def test_a_long_list_of_missing_shards_is_cut() -> None:
    files = {"config.json": 1, "tokenizer.json": 3, "model-00001-of-00040.safetensors": 9}
    (problem,) = missing_parts(files)
    assert problem.startswith("39 weight files are missing")
    assert problem.endswith("and 34 more")


def test_a_draft_model_needs_no_tokenizer() -> None:
    files = {"config.json": 1, "model.safetensors": 8}
    assert missing_parts(files, draft=True) == []
    assert missing_parts(files) == ["the tokenizer (tokenizer.json) is missing"]
    assert missing_parts({}, draft=True)


def test_a_shard_that_only_the_index_names_is_missing_too() -> None:
    assert missing_parts(WHOLE, ["model.safetensors"]) == []
    (problem,) = missing_parts(WHOLE, ["model.safetensors", "other.safetensors"])
    assert problem == "1 weight files are missing: other.safetensors"


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "chat_template.jinja", "LICENSE", "a b/ü.json"])
def test_what_vllm_may_read_is_wanted(name: str) -> None:
    assert is_wanted(name)


@pytest.mark.parametrize("name", ["original/consolidated.00.pth", "pytorch_model.bin", "m-Q4.gguf", ".gitattributes"])
def test_other_forms_of_the_same_weights_are_not(name: str) -> None:
    assert not is_wanted(name)
