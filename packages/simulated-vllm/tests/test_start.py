"""Command lines that start and that are refused, against the recorded verdicts of the real parser and engine."""

from __future__ import annotations

import logging
import re
import shlex

import pytest

from bezel_catalog import vllm_options
from bezel_simulated_vllm.configuration.failures import StartError
from bezel_simulated_vllm.configuration.hardware import machine_from_environment
from bezel_simulated_vllm.configuration.logs import UvicornFormatter
from bezel_simulated_vllm.configuration.options import parse
from bezel_simulated_vllm.startup import start
from simulated_vllm_support.arguments import L4_QAT
from simulated_vllm_support.samples import FIXTURES


def verdicts() -> list[tuple[str, str]]:
    """The recorded command lines (what follows `vllm serve T`) and the first line of their verdicts."""
    text = (FIXTURES / "flag-verdicts-0.32.0.txt").read_text(encoding="utf-8")
    return re.findall(r"^\$ vllm serve T ?(.*)\n {3}-> (.*)$", text, flags=re.MULTILINE)


def local(arguments: str) -> list[str]:
    """The recorded arguments with the assistant where these tests keep it."""
    rest = [re.sub(r"\bA\b", "/mnt/models/tiny-assistant", word) for word in shlex.split(arguments)]
    return ["/mnt/models/tiny", *rest]


# These verdicts are the configuration's; an unknown tool parser is refused later, when the server starts.
ACCEPTED = [row for row in verdicts() if row[1].startswith("OK") and "nonsense" not in row[0]]


@pytest.mark.parametrize(("arguments", "verdict"), ACCEPTED)
def test_what_the_real_server_accepts_is_accepted(settings, arguments, verdict):
    made = settings(*local(arguments))
    assert f'"maxlen": {made.max_model_len}' in verdict
    if "--max-num-batched-tokens" in arguments:
        assert f'"batched": {made.max_batched_tokens}' in verdict
    drafting = made.speculation
    assert ('"spec": null' in verdict) == (drafting is None)
    if drafting:
        assert f'"method": "{drafting.method}"' in verdict
        assert f'"n": {drafting.tokens}' in verdict


@pytest.mark.parametrize(
    ("arguments", "verdict"), [row for row in verdicts() if row[1].startswith(("CONFIG", "VALIDATE"))]
)
def test_what_the_real_engine_refuses_is_refused_with_its_words(settings, arguments, verdict):
    with pytest.raises(StartError) as caught:
        settings(*local(arguments))
    kind, _, message = verdict.split(" ", 1)[1].partition(": ")
    assert caught.value.kind.endswith(kind)
    refusal = " ".join(caught.value.message.split()).split(" [type")[0]
    # The list of methods has another order, and long messages were cut when they were recorded.
    start = refusal.partition(" Input should be '")[0][:150]
    assert " ".join(message.split()).startswith(start)


@pytest.mark.parametrize(("arguments", "verdict"), [row for row in verdicts() if row[1].startswith("PARSE-ERROR")])
def test_what_the_real_parser_refuses_ends_with_status_2_and_its_message(capsys, arguments, verdict):
    with pytest.raises(SystemExit) as caught:
        parse(local(arguments))
    assert caught.value.code == 2
    message = re.sub(r"0x[0-9a-f]+", "0x", verdict.partition("error: ")[2])
    assert re.sub(r"0x[0-9a-f]+", "0x", capsys.readouterr().err).rstrip().endswith("error: " + message)


def test_every_recorded_command_line_is_judged():
    assert (
        len(verdicts())
        == len(re.findall(r"^\$ ", (FIXTURES / "flag-verdicts-0.32.0.txt").read_text(), re.MULTILINE))
        > 50
    )


@pytest.mark.slow
def test_a_failure_of_the_engine_tells_its_cause_above(container):
    ended = container("/mnt/models/tiny", "--load-format", "nonsense")
    assert "EngineCore failed to start." in ended.stdout
    assert "ValueError: Load format `nonsense` is not supported" in ended.stdout
    assert "ERROR" in ended.stdout


def test_every_option_of_the_release_is_parsed():
    options = vllm_options("0.32.0").options
    space = parse(["/m"])
    assert len(options) > 300
    assert [option.dest for option in options if not hasattr(space, option.dest) and option.dest != "help"] == []


@pytest.mark.slow
def test_an_unknown_argument_ends_with_status_2(container):
    ended = container("/mnt/models/tiny", "--swap-space", "4")
    assert ended.returncode == 2
    assert ended.stderr.rstrip().endswith("error: unrecognized arguments: --swap-space 4")


@pytest.mark.slow
def test_too_little_host_memory_is_a_kill(container):
    ended = container("/mnt/models/qat", *L4_QAT, memory_gib=8)
    assert ended.returncode == 137
    assert "Traceback" not in ended.stderr


@pytest.mark.slow
def test_a_key_is_not_in_the_log(container):
    ended = container("/mnt/models/nothing", "--api-key", "sk-planted")
    assert "sk-planted" not in ended.stdout + ended.stderr


def test_a_key_is_in_no_printed_form_of_the_settings(settings):
    made = settings("/mnt/models/tiny", "--api-key", "sk-planted")
    assert made.api_keys == ("sk-planted",)
    assert "sk-planted" not in repr(made)
    assert settings("/mnt/models/tiny", variables={"VLLM_API_KEY": "sk-other"}).api_keys == ("sk-other",)


def test_the_fingerprint_tells_settings_apart(settings):
    """Not the address that a server listens on."""
    one = settings("/mnt/models/tiny").fingerprint
    assert settings("/mnt/models/tiny", "--host=127.0.0.1").fingerprint == one
    assert settings("/mnt/models/tiny", "--max-model-len=512").fingerprint != one


@pytest.mark.parametrize(
    ("status", "end"),
    [(200, "200 OK"), (404, "404 Not Found"), (499, "499 "), (599, "599 "), (422, "422 Unprocessable Entity")],
)
def test_the_access_log_has_a_phrase_for_a_standard_status_only(status, end):
    arguments = ("127.0.0.1:5", "GET", "/x", "1.1", status)
    record = logging.LogRecord("uvicorn.access", logging.INFO, "", 0, '%s - "%s %s HTTP/%s" %d', arguments, None)
    assert UvicornFormatter().format(record).endswith(f'"GET /x HTTP/1.1" {end}')


def test_an_unknown_variable_is_refused_only_when_asked(settings):
    variables = {"VLLM_DISABLE_FLASHINFER": "1"}
    settings("/mnt/models/tiny", variables=variables)
    with pytest.raises(StartError, match="Unknown vLLM environment variable detected: VLLM_DISABLE_FLASHINFER"):
        settings("/mnt/models/tiny", "--fail-on-environ-validation", variables=variables)


def test_a_known_variable_is_accepted(settings):
    settings("/mnt/models/tiny", "--fail-on-environ-validation", variables={"VLLM_NO_USAGE_STATS": "1"})


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("VLLM_PORT", "abc", "VLLM_PORT 'abc' must be a valid integer"),
        ("VLLM_IMAGE_FETCH_TIMEOUT", "5s", "invalid literal for int"),
        ("VLLM_BATCH_INVARIANT", "true", "invalid literal for int"),
        ("VLLM_LOG_STATS_INTERVAL", "", "could not convert string to float"),
        ("VLLM_WORKER_MULTIPROC_METHOD", "thread", "Valid options: ['spawn', 'fork']"),
        ("VLLM_GPT_OSS_SYSTEM_TOOL_MCP_LABELS", "container,x", "Invalid value 'x' in"),
        ("VLLM_HUMMING_INPUT_QUANT_CONFIG", "{", "JSONDecodeError"),
    ],
)
def test_a_value_that_its_reader_refuses_ends_the_start(settings, name, value, message):
    with pytest.raises(StartError, match=re.escape(message)):
        settings("/mnt/models/tiny", variables={name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("VLLM_PORT", "8000"),
        ("VLLM_USE_MODELSCOPE", "yes"),  # taken for off
        ("VLLM_FLOAT32_MATMUL_PRECISION", "HIGH"),
        ("VLLM_GPT_OSS_SYSTEM_TOOL_MCP_LABELS", "container, web_search_preview"),
        ("MAX_JOBS", "many"),
    ],
)
def test_a_value_that_its_reader_takes_is_taken(settings, name, value):
    settings("/mnt/models/tiny", variables={name: value})


@pytest.mark.slow
def test_an_unknown_accelerator_is_named_with_the_known_ones(container):
    ended = container("/mnt/models/tiny", accelerator="nvidia-l5")
    assert ended.returncode == 2
    assert "nvidia-l5" in ended.stderr
    assert "nvidia-l4" in ended.stderr


def test_arguments_of_a_file_give_way_to_the_command_line(tmp_path):
    (tmp_path / "vllm.yaml").write_text("max-model-len: 4096\nmax_num_seqs: 4\nenforce-eager: true\napi-key: [a, b]\n")
    space = parse(["/m", "--config", str(tmp_path / "vllm.yaml"), "--max-num-seqs", "8"])
    assert (space.model, space.max_model_len, space.max_num_seqs, space.enforce_eager) == ("/m", 4096, 8, True)
    assert space.api_key == ["a", "b"]


def test_a_start_takes_as_long_as_its_weights_and_the_speed_divides_it(settings, environment):
    waits: list[float] = []
    start(parse(["/mnt/models/qat", *L4_QAT]), machine_from_environment(environment()), {}, waits.append)
    chip = settings("/mnt/models/qat", *L4_QAT).machine.accelerator
    assert 8.15e9 / chip.load_bytes_per_second in waits
    assert 60 < sum(waits) < 180


def test_a_refused_configuration_takes_seconds_and_a_refused_engine_longer(environment):
    waits: dict[str, list[float]] = {"config": [], "engine": []}
    for stage, arguments in (
        ("config", ["/nonexistent"]),
        ("engine", ["/mnt/models/qat", "--gpu-memory-utilization=0.4"]),
    ):
        with pytest.raises(StartError) as caught:
            start(parse(arguments), machine_from_environment(environment()), {}, waits[stage].append)
        assert caught.value.stage == stage
    assert 7 <= sum(waits["config"]) <= 8
    assert sum(waits["engine"]) > 20
