"""Values that the parser takes and the start refuses: the verdicts of vLLM 0.32.0's own classes, recorded by hand."""

import json

import pytest

from bezel_simulated_vllm.configuration.failures import StartError
from bezel_simulated_vllm.configuration.hardware import machine_from_environment
from bezel_simulated_vllm.configuration.options import parse
from bezel_simulated_vllm.configuration.settings import EngineSettings, make_settings
from simulated_vllm_support.process import MODEL

LEAST, ABOVE, WHOLE = "greater than or equal to 0", "greater than 0", "valid integer"
# What vLLM's MultiModalConfig and ModelConfig say to each limit; None where they take it.
LIMITS = {
    '{"image": -1}': LEAST,
    '{"image": {"count": -1}}': LEAST,
    '{"other": -1}': LEAST,
    '{"image": {"count": 1, "width": 0}}': ABOVE,
    '{"video": {"num_frames": 0}}': ABOVE,
    '{"audio": {"length": 0}}': ABOVE,
    '{"image": {"length": 5}}': "Unexpected keyword argument",
    '{"image": {"width": null}}': WHOLE,
    '{"image": {"count": null}}': WHOLE,
    '{"image": null}': WHOLE,
    '{"image": "x"}': WHOLE,
    '{"image": 1.5}': WHOLE,
    '{"image": [1]}': WHOLE,
    '{"image": 0}': None,
    '{"image": {}}': None,
    '{"image": "2"}': None,
    '{"image": true}': None,
    '{"audio": {"length": 5}}': None,
    '{"other": {"width": 3}}': None,
    '{"video": {"num_frames": "8"}}': None,
}
TRANSFER = {"kv_role": "kv_both"}
CONNECTORS = {
    "NoSuch": "Unsupported connector type: NoSuch",
    "FlexKVConnectorV1": "FlexKV is not installed",
    "HF3FSKVConnector": "hf3fs_fuse.io is not available",
    "MoRIIOConnector": "MoRIIO is not available",
    "OffloadingConnector": None,
    "NixlConnector": None,
}


@pytest.fixture(scope="module")
def start_with(tmp_path_factory: pytest.TempPathFactory):
    """Settings of a model with images and video, whose blocks have 16 and 32 tokens, or of its text alone."""
    folder = tmp_path_factory.mktemp("models")
    text = MODEL | {"head_dim": 32, "global_head_dim": 64, "num_key_value_heads": 1, "num_global_key_value_heads": 1}
    for name, config in (("seeing", {"text_config": text, "vision_config": {}, "audio_config": {}}), ("text", text)):
        (folder / name).mkdir()
        (folder / name / "config.json").write_text(json.dumps(config))
        (folder / name / "model.safetensors").write_bytes(b"\0" * 400_000)
    machine = machine_from_environment({"LOCALCLOUD_MOUNTS": json.dumps({"/mnt/models": str(folder)})})

    def make(*arguments: str, model: str = "seeing") -> EngineSettings:
        return make_settings(parse([f"/mnt/models/{model}", "--max-model-len=512", *arguments]), machine, {})

    return make


@pytest.mark.parametrize(("limits", "message"), LIMITS.items())
def test_limits_of_media_are_judged_as_by_vllm(start_with, limits: str, message: str | None) -> None:
    option = f"--limit-mm-per-prompt={limits}"
    if message is None:
        assert start_with(option)
        return
    with pytest.raises(StartError) as ended:
        start_with(option)
    assert message in ended.value.message
    if message != WHOLE:  # a model of text alone has its types judged, and nothing else
        assert start_with(option, model="text")


@pytest.mark.parametrize(("name", "message"), CONNECTORS.items())
def test_a_connector_is_one_of_the_factory_whose_package_is_there(start_with, name: str, message: str | None) -> None:
    one = TRANSFER | {"kv_connector": name, "kv_connector_extra_config": {"cpu_bytes_to_use": 1 << 30}}
    several = {"kv_connector": "MultiConnector", "kv_connector_extra_config": {"connectors": [one]}}
    for transfer in (one, TRANSFER | several):
        option = f"--kv-transfer-config={json.dumps(transfer)}"
        if message is None:
            assert start_with(option)
            continue
        with pytest.raises(StartError, match=message):
            start_with(option)


@pytest.mark.parametrize(
    ("arguments", "refused"),
    [
        (("64",), True),
        (("5",), True),
        (("32",), True),
        (("16",), False),
        (("8",), False),
        (("64", "--no-enable-prefix-caching"), False),
        (("64", "--block-size=64"), False),
    ],
)
def test_the_unit_of_prefix_matches_divides_the_blocks(start_with, arguments: tuple[str, ...], refused: bool) -> None:
    option = ("--prefix-match-unit", *arguments)
    if not refused:
        assert start_with(*option)
        return
    with pytest.raises(StartError, match="block sizes must be divisible by prefix_match_unit") as ended:
        start_with(*option)
    assert ended.value.stage == "engine"
