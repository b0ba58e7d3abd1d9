"""A real server refuses what its classes refuse in one process, with the same words, and starts with the twins."""

from __future__ import annotations

import json
import os

import pytest

from tests.support.real_vllm import real_vllm
from tests.support.start_relations.real import ask

# A start and the classes before it, on a busy machine.
pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

NGRAM = {"method": "ngram", "num_speculative_tokens": 2, "prompt_lookup_min": 4, "prompt_lookup_max": 2}
# option that is refused -> one of the same relation that is taken; the server's model has 4096 tokens and 8 sequences
STARTS = {
    ("--max-num-active-seqs=9",): ("--max-num-active-seqs=8",),
    ("--long-prefill-token-threshold=5000",): ("--long-prefill-token-threshold=1024",),
    ("--prefix-match-unit=48",): ("--prefix-match-unit=64",),
    ("--reasoning-parser=deepseek_r1",): ("--reasoning-parser=gemma4",),
    ("--enable-auto-tool-choice", "--tool-call-parser=mistral"): (
        "--enable-auto-tool-choice",
        "--tool-call-parser=gemma4",
    ),
    ('--structured-outputs-config={"backend": "outlines", "disable_any_whitespace": true}',): (
        '--structured-outputs-config={"backend": "xgrammar", "disable_any_whitespace": true}',
    ),
    (f"--speculative-config={json.dumps(NGRAM)}",): (),
    ("--enable-lora", "--lora-modules=a=/nowhere"): (),
}
_COMMON = ("--dtype=bfloat16", "--enforce-eager", "--max-model-len=4096", "--max-num-seqs=8")


@pytest.fixture(scope="module")
def verdicts_of_starts():
    """What the classes say of the refused ones, by their options, and of all the twins together."""
    installed = os.environ.get("BEZEL_REAL_VLLM")
    if installed is None:
        pytest.skip("BEZEL_REAL_VLLM names no folder with a real vLLM (see tools/vllm/contract.py)")
    model = f"{installed}/models/tiny-gemma4"
    tried = [*STARTS, [option for twin in STARTS.values() for option in twin]]
    questions = [{"words": [model, *_COMMON, *options], "variables": {}, "device": {}} for options in tried]
    return dict(zip([*STARTS, "twins"], ask(f"{installed}/venv/bin/python", questions), strict=True))


@pytest.mark.parametrize("options", STARTS, ids=" ".join)
def test_a_real_server_ends_as_its_classes_do(tmp_path, verdicts_of_starts, options):
    assert verdicts_of_starts[options]["verdict"] == "refused", verdicts_of_starts[options]
    with pytest.raises(AssertionError) as caught, real_vllm(tmp_path, *options):
        pass
    assert caught.type is AssertionError
    kind, _, message = verdicts_of_starts[options]["said"].partition(": ")
    log = " ".join((tmp_path / "serve.log").read_text(encoding="utf-8").split())
    assert kind in log
    # The first words after the class's own heading.
    assert message.partition("Value error, ")[2][:50] in log or message[:50] in log, verdicts_of_starts[options]


def test_a_real_server_starts_with_the_twins(tmp_path, verdicts_of_starts):
    assert verdicts_of_starts["twins"]["verdict"] == "accepted", verdicts_of_starts["twins"]
    with real_vllm(tmp_path, *[option for twin in STARTS.values() for option in twin]):
        pass
