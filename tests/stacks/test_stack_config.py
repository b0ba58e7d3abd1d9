"""The program's edge: all keys are read, structure is decoded, and nothing encrypted comes in."""

from pathlib import Path

import pytest
from pulumi.runtime import set_all_config

from bezel_base.errors import UserError
from bezel_stacks import config
from tests.support.components.fake_engine import declare


def settings(values: dict[str, str], secret: tuple[str, ...] = ()) -> dict[str, object]:
    def program() -> dict[str, object]:
        set_all_config(values, list(secret))
        return config.settings()

    return dict(declare(program).result)


def test_all_keys_of_the_namespace_are_read_and_no_others() -> None:
    assert settings({"bezel:model": "gemma", "bezel:unknown": "x", "gcp:region": "us-east4"}) == {
        "model": "gemma",
        "unknown": "x",
    }


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"cpu": 8, "memory": "32Gi"}', {"cpu": 8, "memory": "32Gi"}),
        ('["a", "b"]', ["a", "b"]),
        ("8", "8"),
        ("true", "true"),
        ("{cpu: 8}", "{cpu: 8}"),
        ("", ""),
    ],
)
def test_structure_is_decoded_and_plain_text_stays_text(text: str, value: object) -> None:
    assert settings({"bezel:key": text}) == {"key": value}


def test_an_encrypted_setting_is_refused_without_its_value() -> None:
    planted = "hf_plantedsecretvalue"
    with pytest.raises(UserError, match=r"bezel:secrets = \(encrypted\)") as raised:
        settings({"bezel:secrets": f'{{"HF_TOKEN": "{planted}"}}', "bezel:model": "m"}, ("bezel:secrets",))
    assert planted not in str(raised.value)
    assert "bezel:model" not in str(raised.value)


def test_a_secret_of_another_namespace_is_none_of_ours() -> None:
    assert settings({"bezel:model": "m", "gcp:accessToken": "t"}, ("gcp:accessToken",)) == {"model": "m"}


@pytest.mark.parametrize(
    ("keys", "named"),
    [
        (["bezel:config:cost"], "Pulumi.dev.yaml: bezel:config:cost"),
        (["cost", "bezel:cost"], "Pulumi.dev.yaml: bezel:cost"),
        (["bezel:cost", "bezel:config:cost"], "Pulumi.dev.yaml: bezel:cost"),
        (["cost", "bezel:environment", "gcp:config:project"], None),
        (["bezel:cost", "gcp:cost", "bezel:config"], None),
    ],
)
def test_a_key_that_the_engine_renames_is_refused(tmp_path: Path, keys: list[str], named: str | None) -> None:
    (tmp_path / "Pulumi.dev.yaml").write_text("config:\n" + "".join(f"  {key}: x\n" for key in keys))
    if named is None:
        config.check_stack_file("dev", tmp_path, "bezel")
        return
    with pytest.raises(UserError) as raised:
        config.check_stack_file("dev", tmp_path, "bezel")
    assert named in str(raised.value)


@pytest.mark.parametrize("key", ["region", "chat:region", "bezel:config:region"])
def test_a_setting_in_the_namespace_of_another_project_is_named(tmp_path: Path, key: str) -> None:
    """The program would not read it, and plan the default."""
    (tmp_path / "Pulumi.dev.yaml").write_text(f"config:\n  {key}: us-east4\n  chat:own: 1\n  bezel:cost: {{}}\n")
    with pytest.raises(UserError, match=f"{key}\\n.*\\n.*write bezel:region") as raised:
        config.check_stack_file("dev", tmp_path, "chat")
    assert len(raised.value.problems) == 1
