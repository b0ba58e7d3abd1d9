"""docs/bench.md shows what a run prints: the same lines with other numbers, on a simulated server."""

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from bezel.cli.main import main, parse
from bezel_bench.commands.measure.load_options import load_of
from bezel_bench.result.document import load
from simulated_vllm_support.process import simulated_vllm
from tests.support.docs.markdown import ROOT, after, blocks
from tests.support.rest.fake_google import Answer, serving

DOCUMENT = ROOT / "docs" / "bench.md"
# Said only where the machine that measures was too slow for it.
OF_A_BUSY_MACHINE = {"why"}


def commands() -> list[list[str]]:
    lines = [line for text in blocks(DOCUMENT, "sh") for line in text.splitlines()]
    return [shlex.split(line)[1:] for line in lines if " bench run " in line]


def shape(text: str) -> list[str]:
    """What each line begins with: the name of a figure, a latency or a check."""
    names = [re.match(r"  ([a-z_]+)", line) for line in text.splitlines()]
    return [word[1] for word in names if word and word[1] not in OF_A_BUSY_MACHINE]


def test_every_load_that_it_shows_can_be_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from bezel_bench.load.plan import Target

    monkeypatch.chdir(tmp_path)
    Path("conversation_trace.jsonl").write_text('{"timestamp": 0, "input_length": 9, "output_length": 9}')
    write_options()
    assert len(commands()) >= 7
    for command in commands():
        options = parse(command)
        options.file = "questions.csv" if options.dataset else options.file
        assert load_of(options, Target("http://127.0.0.1:8000", "m", endpoint=options.endpoint or "chat")).stop


def write_options() -> None:
    """The files of options that the document shows, and the result that a command takes them from."""
    (text,) = blocks(DOCUMENT, "yaml")
    name = text.splitlines()[0].removeprefix("# ")
    Path(name).write_text(text)
    options = {"url": "http://127.0.0.1:8000", "public": True, "users": 8}
    Path("first.json").write_text(json.dumps({"schema": "bezel.bench/1", "manifest": {"options": options}}))


# What would take minutes is shortened; everything else is sent as it stands there.
SHORT = {
    "--requests": "4", "--seconds": "0.4", "--users": "3", "--rate": "20", "--repeats": "1", "--warmup": "2",
    "--turns": "2", "--think-time": "0.01", "--user-stages": "1:0.2,2:0.2", "--input-tokens": "128",
    "--prefix-tokens": "64", "--documents": "3", "--audio-seconds": "0.1",
    "--warmup-seconds": "0.2", "--cancel-after": "30",
    # Lengths differ from run to run; of the shown ones, one in 200 is longer than the server takes.
    "--input-lengths": "lognormal:64,0.5",
}  # fmt: skip
ANSWERED = {
    "/v1/embeddings": {"data": [{"index": 0, "embedding": [0.5]}], "usage": {"prompt_tokens": 9, "total_tokens": 9}},
    "/v1/rerank": {"results": [{"index": 0, "relevance_score": 0.5}], "usage": {"total_tokens": 9}},
    "/v1/models": {"object": "list", "data": [{"id": "m", "object": "model", "max_model_len": 4096}]},
}


def shorten_command(command: list[str], url: str) -> list[str]:
    """The command for another server, with small numbers."""
    arguments = [re.sub(r"^http://[^=]*", url, word) for word in command]
    for place, word in enumerate(arguments[:-1]):
        arguments[place + 1] = SHORT.get(word, arguments[place + 1])
    if not {"--requests", "--seconds", "--user-stages", "--trace"} & set(arguments):
        arguments += ["--requests", "4"]
    return [*arguments, "--simulated"]


@pytest.fixture(scope="module")
def generating(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    arguments = ("--max-model-len=4096", "--api-key=sk-tested", "--enable-prompt-tokens-details")
    with simulated_vllm(tmp_path_factory.mktemp("models"), *arguments, serving_speed=50.0, multimodal=True) as url:
        yield url


@pytest.fixture(scope="module")
def computing() -> Iterator[str]:
    with serving() as server:
        server.routes[:] = [lambda call: Answer(json=ANSWERED[call.path]) if call.path in ANSWERED else None]
        yield server.url


@pytest.fixture(scope="module")
def hub() -> Iterator[str]:
    listed = Answer(json={"sha": "c" * 40, "siblings": [{"rfilename": "test.csv"}, {"rfilename": "train.csv"}]})
    with serving() as server:
        server.routes[:] = [
            lambda call: listed if call.path == "/api/datasets/acme/questions/revision/v2" else None,
            lambda call: Answer(text="question\nWhy?\nHow?\n") if call.path.endswith("/test.csv") else None,
        ]
        yield server.url


@pytest.mark.wide_except("0", "15")
@pytest.mark.slow
@pytest.mark.parametrize("number", range(len([one for one in commands() if "--url" in one])))
def test_every_load_that_it_shows_is_measured(
    number: int, generating: str, computing: str, hub: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = [one for one in commands() if "--url" in one][number]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("VLLM_API_KEY", "sk-tested")
    trace = {"timestamp": 0, "input_length": 99, "output_length": 4, "hash_ids": [1]}
    Path("conversation_trace.jsonl").write_text(json.dumps(trace))
    asked = [{"from": who, "value": f"Question {number}?"} for number in range(2) for who in ("human", "gpt")]
    questions = [{"conversations": [*asked, {"from": "human", "value": f"{number}?"}]} for number in range(4)]
    Path("questions.csv").write_text("question,tokens\nWhy?,4\nHow?,5\n")
    Path("sharegpt.json").write_text(json.dumps(questions))
    write_options()
    computes = {"embeddings", "rerank"} & set(command)
    monkeypatch.setenv("HF_ENDPOINT", hub)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    arguments = shorten_command(command, computing if computes else generating)
    if not computes and "--api-key-env" not in arguments:
        arguments += ["--api-key-env", "VLLM_API_KEY"]
    out = tmp_path / "shown.json"
    if "--out" in arguments:
        arguments[arguments.index("--out") + 1] = str(out)
    else:
        arguments += ["--out", str(out)]
    main(arguments)
    for cell in load(out).cells:
        assert cell.requests > 0, arguments
        assert cell.failures == {}, (arguments, cell.failure_examples)


@pytest.mark.slow
def test_the_first_run_prints_what_it_shows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = commands()[0]
    arguments = ("--enable-prompt-tokens-details", "--max-model-len=4096")
    with simulated_vllm(tmp_path / "models", *arguments, serving_speed=20.0) as url:
        command_line = [url if word.startswith("http") else word for word in first]
        command_line[command_line.index("--out") + 1] = str(tmp_path / "first.json")
        command_line[command_line.index("--requests") + 1] = "40"  # of 240: it prints the same lines
        main([*command_line, "--simulated"])
    printed = capsys.readouterr().out
    assert shape(printed) == shape(after(DOCUMENT, "output of bezel bench run"))
    assert (tmp_path / "first.samples.npz").is_file()
