"""Adapters of the command line: loaded at the end of a start, listed and asked for by name, or the start's end."""

import json
from pathlib import Path

import pytest

from bezel_simulated_vllm.configuration.failures import StartError
from bezel_simulated_vllm.configuration.hardware import machine_from_environment
from bezel_simulated_vllm.configuration.options import parse
from bezel_simulated_vllm.configuration.settings import EngineSettings
from bezel_simulated_vllm.startup import start

CONFIG = {"r": 8, "lora_alpha": 16, "target_modules": ["q_proj"], "peft_type": "LORA"}
FAILED = "Call to add_lora method failed: "


@pytest.fixture(scope="module")
def start_with(mount: Path):
    """Start with adapters of the folders that a test writes."""

    def run(
        *arguments: str, lora: bool = True, environment: dict[str, str] | None = None, **configs: object
    ) -> EngineSettings:
        for name, config in configs.items():
            folder = mount / "adapters" / name
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "adapter_config.json").write_text(config if isinstance(config, str) else json.dumps(config))
            (folder / "adapter_model.safetensors").write_bytes(b"\0" * 8)
        mounts = {"LOCALCLOUD_MOUNTS": json.dumps({"/mnt/models": str(mount)})}
        flags = ["--enable-lora"] if lora else []
        named = ["/mnt/models/tiny", "--served-model-name=tiny", *flags, "--lora-modules", *arguments]
        return start(parse(named), machine_from_environment(mounts), environment or {}, lambda _: None)

    return run


def at(name: str) -> str:
    return f"{name}=/mnt/models/adapters/{name}"


def test_a_variable_lets_callers_change_the_adapters(start_with) -> None:
    start_with(at("sql"), sql=CONFIG)
    for value, changeable in (("1", True), ("True", True), ("0", False), (None, False)):
        environment = {} if value is None else {"VLLM_ALLOW_RUNTIME_LORA_UPDATING": value}
        assert (start_with(at("sql"), environment=environment).changeable_adapters is not None) is changeable


def test_adapters_are_loaded_in_order_and_asked_for_by_name(start_with, capsys: pytest.CaptureFixture[str]) -> None:
    made = start_with(at("sql"), '{"name": "law", "path": "/mnt/models/adapters/sql"}', sql=CONFIG)
    assert [(each.name, each.path) for each in made.adapters] == [
        ("sql", "/mnt/models/adapters/sql"),
        ("law", "/mnt/models/adapters/sql"),
    ]
    assert made.callable_names == ("tiny", "sql", "law")
    assert "Loaded new LoRA adapter: name 'sql', path '/mnt/models/adapters/sql'" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "config", "message"),
    [
        ("nowhere", None, "Loading lora nowhere failed: No adapter found for <path>"),
        ("rank", CONFIG | {"r": 64}, f"{FAILED}LoRA rank 64 is greater than max_lora_rank 16."),
        (
            "pattern",
            CONFIG | {"rank_pattern": {"q_proj": 64}},
            f"{FAILED}LoRA rank 64 is greater than max_lora_rank 16.",
        ),
        ("zero", CONFIG | {"r": 0}, f"{FAILED}LoRA rank `r` must be a positive integer, got 0."),
        ("text", CONFIG | {"r": "8"}, f"{FAILED}'<=' not supported between instances of 'str' and 'int'"),
        ("alpha", CONFIG | {"lora_alpha": "16"}, f"{FAILED}unsupported operand type(s) for /: 'str' and 'int'"),
        ("short", {"lora_alpha": 16, "target_modules": []}, f"{FAILED}Missing required configuration fields: {{'r'}}"),
        ("dora", CONFIG | {"use_dora": True}, f"{FAILED}vLLM does not yet support DoRA."),
        ("bias", CONFIG | {"bias": "all"}, f"{FAILED}Adapter bias is not supported."),
        ("pissa", CONFIG | {"init_lora_weights": "pissa"}, f"{FAILED}vLLM does not support init_lora_weights='pissa'."),
        ("broken", "{not json", f"{FAILED}Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
    ],
)
def test_an_adapter_that_cannot_be_loaded_ends_the_start(
    start_with, capsys: pytest.CaptureFixture[str], name: str, config: object, message: str
) -> None:
    with pytest.raises(StartError) as ended:
        start_with(at(name), **({name: config} if config else {}))
    assert ended.value.message.startswith(message)
    assert ended.value.status == 1
    assert f"ValueError: {message}" in capsys.readouterr().err


def test_a_rank_that_is_no_whole_number_is_loaded(start_with) -> None:
    assert [each.name for each in start_with(at("real"), real=CONFIG | {"r": 8.0}).adapters] == ["real"]


def test_an_adapter_that_cannot_be_registered_ends_the_start(start_with, mount: Path) -> None:
    """Its weights, the option or a name of its own is missing."""
    start_with(at("sql"), sql=CONFIG)
    cases = {
        (at("sql"), at("sql")): "The lora adapter 'sql' has already been loaded.",
        ("tiny=/mnt/models/adapters/sql",): "The lora adapter 'tiny' conflicts with a served base model.",
        ("sql=",): "Both 'lora_name' and 'lora_path' must be provided.",
    }
    for arguments, message in cases.items():
        with pytest.raises(StartError, match=message):
            start_with(*arguments)
    with pytest.raises(StartError, match="LoRA is not enabled"):
        start_with(at("sql"), lora=False)
    (mount / "adapters" / "sql" / "adapter_model.safetensors").unlink()
    with pytest.raises(StartError, match="doesn't contain tensors"):
        start_with(at("sql"))


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("sql", "Invalid JSON format for --lora-modules: sql"),
        ('{"name": "a", "path": "b", "rank": 8}', "got an unexpected keyword argument 'rank'"),
        ('{"name": "a"}', "missing 1 required positional argument: 'path'"),
        ("[1]", "Invalid fields for --lora-modules: [1] - "),
    ],
)
def test_a_word_of_another_form_ends_with_status_2(capsys: pytest.CaptureFixture[str], word: str, message: str) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(["/mnt/models/tiny", "--lora-modules", word])
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.slow
def test_adapters_are_listed_and_answer_and_others_are_unknown(serve, start_with) -> None:
    from dataclasses import replace

    adapters = start_with(at("sql"), sql=CONFIG).adapters
    arguments = ("/mnt/models/tiny", "--served-model-name=tiny", "--max-model-len=4096")
    with serve(*arguments, speed=200.0, change=lambda made: replace(made, adapters=adapters)) as client:
        rows = client.get("/v1/models").json()["data"]
        assert [(row["id"], row["root"], row["parent"], row["max_model_len"]) for row in rows] == [
            ("tiny", "/mnt/models/tiny", None, 4096),
            ("sql", "/mnt/models/adapters/sql", "tiny", None),
        ]
        asked = {"prompt": "hello", "max_tokens": 2}
        answer = client.post("/v1/completions", json=asked | {"model": "sql"})
        assert (answer.status_code, answer.json()["model"]) == (200, "sql")
        unknown = client.post("/v1/completions", json=asked | {"model": "law"})
        assert unknown.status_code == 404
        assert unknown.json()["error"]["message"] == "The model `law` does not exist. Valid aliases: tiny."
