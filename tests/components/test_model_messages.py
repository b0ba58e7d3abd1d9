"""The command that mends a folder without a model."""

import shlex

import pytest

from bezel_components.providers.model_files import copy_command


@pytest.mark.parametrize("source", ["google/gemma-4-12b-it", "someone/odd name;rm"])
def test_the_copy_command_keeps_odd_names_as_one_word(source: str) -> None:
    parts = shlex.split(copy_command(source, "gs://bucket/some path", "my stack"))
    assert parts[1:] == ["weights", "copy", "my stack", "--from", f"hf:{source}"]


def test_files_that_nobody_publishes_are_copied_from_where_they_are() -> None:
    parts = shlex.split(copy_command("", "gs://bucket/some path", "stack"))
    assert parts[-1] == "gs://bucket/some path/"
    assert "hf:" not in " ".join(parts)


def test_model_of_no_stack_file_is_downloaded_and_copied() -> None:
    command = copy_command("google/gemma-4-12b-it", "gs://bucket/some path", "")
    assert shlex.split(command) == [
        *("hf", "download", "google/gemma-4-12b-it", "--local-dir", "gemma-4-12b-it", "&&"),
        *("gcloud", "storage", "cp", "--recursive", "gemma-4-12b-it/*", "gs://bucket/some path/"),
    ]
