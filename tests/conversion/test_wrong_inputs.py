"""Wrong inputs of a conversion: each is refused with its value, what follows from it, and how to repair it."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bezel.conversion.conversion import convert
from bezel.conversion.converted import Wishes
from bezel.conversion.inputs.readers import MOST_BYTES
from bezel.conversion.sources import convert_source
from bezel.planner.base.stack_file import read_stack_file
from bezel_base.errors import UserError
from tests.support.conversion.published_lines import PUBLISHED
from tests.support.conversion.six_inputs import SIX

BOMB = "services: &a\n  b: &b [1, 1, 1, 1, 1, 1, 1, 1]\n" + "".join(
    f"  {name}: &{name} [{', '.join([f'*{before}'] * 8)}]\n" for before, name in zip("bcdef", "cdefg", strict=True)
)
# input; the key or the value that is named; the consequence; the repair
WRONG = {
    "nothing": ("", "FILE", "it is empty", "give a Cloud Run service"),
    "comments alone": ("# vllm serve google/gemma-4-12B-it\n", "FILE", "it is empty", "vllm serve"),
    "another program": ("llama-server -m gemma.gguf", "llama-server -m gemma.gguf", "no command in it", "vllm serve"),
    "an open quote": ("vllm serve 'google/gemma", "'google/gemma", "a quote is opened", "close the quote"),
    "a substitution": ("vllm serve $(cat model)", "$(cat model)", "no command is run", "hub id"),
    "a substitution in quotes": ('vllm serve "`cat model`"', "`cat model`", "no command is run", "hub id"),
    "a variable": ("vllm serve $MODEL", "${MODEL}", "no variable of yours is read", "hub id"),
    "a here-document": ("cat <<EOF\nvllm serve a\nEOF", "cat", "no command in it starts", "vllm serve"),
    "no model": ("vllm serve --max-model-len 8", "model", "its default, a small test model", "--model"),
    "no image": ("gcloud run deploy a --region us-east4", "--image", "names no image", "add --image"),
    "no image in docker": ("docker run --gpus all", "docker run --gpus all", "names no image", "the whole command"),
    "an image without vLLM": (
        "gcloud run deploy a --image ollama/ollama --gpu 1",
        "ollama/ollama",
        "does not run vLLM's server",
        "vllm/vllm-openai",
    ),
    "a command about another file": (
        "gcloud run services replace service.yaml --region us-east4",
        "service.yaml",
        "what another file says",
        "give that file: service.yaml",
    ),
    "half a document": ('{"template": ', "FILE", "not valid JSON", "correct it"),
    "half a file": ("services:\n  a: [", "FILE", "not valid YAML", "correct the file at that line"),
    "a key twice": ("services:\n  v:\n    image: vllm/a\n    image: b\n", "image", "listed twice", "remove one"),
    "no server in a compose file": (
        "services:\n  web:\n    image: nginx\n",
        "web (nginx)",
        "no service",
        "name a service",
    ),
    "a Deployment": ("apiVersion: apps/v1\nkind: Deployment\n", "FILE", "it is a Deployment", "gcloud run deploy"),
    "an unknown document": ('{"a": 1}', "FILE", "its form is not known", "compose file"),
    "a service without a container": (
        '{"template": {"containers": []}}',
        "template.containers",
        "no container",
        "whole",
    ),
    "references to references": (BOMB, "FILE", "levels or", "give a Cloud Run service"),
    "a deep document": ("services: " + "[" * 9000, "FILE", "levels or", "give a Cloud Run service"),
    "a file that refers to itself": ("services: &a\n  x: *a\n", "services.x", "refers to itself", "plain keys"),
    "too long": ("vllm serve a " + "b" * MOST_BYTES, "FILE", "more than 262144 bytes", "give a Cloud Run service"),
    "no text": ("vllm serve \0", "FILE", "it is not text", "give a Cloud Run service"),
}


@pytest.mark.parametrize(("text", "named", "consequence", "repair"), WRONG.values(), ids=WRONG)
def test_a_wrong_input_is_refused_with_its_repair(text: str, named: str, consequence: str, repair: str) -> None:
    with pytest.raises(UserError) as caught:
        convert(text, "FILE")
    (problem,) = caught.value.problems
    shown = str(problem)
    assert named in shown
    assert consequence in shown
    assert repair in shown.partition("Repair: ")[2]


def never() -> Any:
    raise AssertionError("a file is read without Cloud Run")


SOURCES = {
    "no such file": ("deploy.sh", Wishes(), "there is no such file", "correct the path"),
    "a folder": (".", Wishes(), "there is no such file", "correct the path"),
    "a service without a place": (
        "chat",
        Wishes(region="us-east4"),
        "by its project too",
        "projects/PROJECT/locations",
    ),
    "a file of bytes": ("bytes.sh", Wishes(), "not encoded in UTF-8", "give a command"),
}


@pytest.mark.parametrize(("source", "wishes", "consequence", "repair"), SOURCES.values(), ids=SOURCES)
def test_a_wrong_source_is_refused(source: str, wishes: Wishes, consequence: str, repair: str, tmp_path: Path) -> None:
    (tmp_path / "bytes.sh").write_bytes(b"vllm serve \xff")
    with pytest.raises(UserError) as caught:
        convert_source(source, folder=tmp_path, wishes=wishes, google=never, endpoint="")
    assert consequence in str(caught.value)
    assert repair in str(caught.value)


def test_a_file_is_converted_without_asking_the_cloud(tmp_path: Path) -> None:
    (tmp_path / "deploy.sh").write_text(SIX["gcloud_run_deploy"])
    made = convert_source("deploy.sh", folder=tmp_path, wishes=Wishes(stack="own"), google=never, endpoint="")
    assert made.stack == "own"
    assert made.converted.settings["service_name"] == "gemma"


TEXTS = [line.text for line in PUBLISHED.values()] + [*SIX.values()]


@pytest.mark.slow
@given(st.sampled_from(TEXTS), st.integers(0, 2000), st.integers(0, 60), st.text(max_size=12))
def test_a_damaged_input_is_converted_or_refused(text: str, start: int, length: int, put: str) -> None:
    """Whatever is cut out and put in, there is a problem, or a stack file that is read as it was meant."""
    start %= len(text)
    with suppress(UserError):
        made = convert(text[:start] + put + text[start + length :], "FILE")
        content, problems = read_stack_file(made.stack_file(), "Pulumi.x.yaml")
        assert problems == []
        config = {key: value for key, value in content["config"].items() if key != "gcp:project"}
        assert config == {f"bezel:{key}": value for key, value in made.converted.settings.items()}
        assert made.text()
