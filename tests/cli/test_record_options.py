"""`bezel catalog record-release --options-only`: what a vLLM takes is recorded, and a stack of its image planned by it.

The vLLM is a small package of the same shape; the recorders run in its environment as they do in a real one's.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bezel.cli.catalog.record_options import record_options
from bezel_base.errors import UserError

ROOT = Path(__file__).parents[2]
RUN = "import sys; from bezel.cli.main import main; sys.exit(main(sys.argv[1:]))"
NIGHTLY = "nightly-2026-11-20"
# As many as a recording must have at least, with one option that no release has, and fields of three shapes.
CONFIG = "\n".join(
    [
        "import dataclasses",
        "import enum",
        "import typing",
        "from pydantic.dataclasses import dataclass",
        "from pydantic import Field, field_validator",
        "class Mode(enum.IntEnum):",
        "    SLOW, FAST = 0, 3",
        "@dataclass(config={'extra': 'forbid'})",
        "class Inner:",
        "    chosen: int = 1",
        "    filled_in: list[str] = dataclasses.field(default_factory=list, init=False)",
        "    counted: int = Field(default=0, init=False)",
        "    kinds: dict[str, str] = dataclasses.field(default_factory=dict)",
        "    mode: Mode = Mode.SLOW",
        "    words: list[str] = dataclasses.field(default_factory=list)",
        "    @field_validator('kinds', mode='before')",
        "    @classmethod",
        "    def written_large(cls, value):",
        "        return {key.upper(): text for key, text in value.items()} if isinstance(value, dict) else value",
        "    @field_validator('mode', mode='before')",
        "    @classmethod",
        "    def by_name(cls, value):",
        "        return Mode[value] if isinstance(value, str) else value",
        "    @field_validator('words', mode='before')",
        "    @classmethod",
        "    def split(cls, value):",
        "        return value.split(',') if isinstance(value, str) else value",
        "@dataclass",
        "class ModelConfig:",
        *(f"    made_up_{number}: int = Field(default=1, ge=0)" for number in range(100)),
        "    inner_config: Inner = dataclasses.field(default_factory=Inner)",
        "@dataclass",
        "class VllmConfig:",
        "    model_config: ModelConfig",
    ]
)
CLI = """
import argparse

def make_arg_parser(parser):
    group = parser.add_argument_group("ModelConfig")
    for number in range(100):
        group.add_argument(f"--made-up-{number}", dest=f"made_up_{number}", type=int, default=1)
    group.add_argument("--inner-config", dest="inner_config")
    small = lambda text: text.lower().replace("-", "_")
    parser.add_argument("--kernel", choices=["fast", "very_fast"], type=small)
    parser.add_argument("--exact", choices=["fast", "slow"], type=str)
    parser.add_argument("--attention-backend")
    parser.add_argument("model_tag", nargs="?")
    parser.add_argument("--only-in-this-build", action=argparse.BooleanOptionalAction, default=False)
    parser.add_argument("--object", default=object())
    for name in KNOWN:
        parser.add_argument(f"--{name}", dest=name.replace("-", "_"))
    for name in SWITCHES:
        parser.add_argument(f"--{name}", action=argparse.BooleanOptionalAction)
    return parser
"""
KNOWN = [
    *("port", "served-model-name", "dtype", "max-model-len", "gpu-memory-utilization", "max-num-seqs"),
    *("max-num-batched-tokens", "tool-call-parser", "reasoning-parser", "safetensors-load-strategy", "load-format"),
]
SWITCHES = ["disable-chunked-mm-input", "enable-auto-tool-choice", "fail-on-environ-validation"]


# As vLLM's own: values over several lines, an empty one, two names of one class, and a lookup that names them all.
ATTENTION = """
import enum

class Named(enum.EnumMeta):
    def __getitem__(cls, name):
        try:
            return super().__getitem__(name)
        except KeyError:
            raise ValueError(f"Unknown attention backend: '{name}'") from None

class AttentionBackendEnum(enum.Enum, metaclass=Named):
    FLASH_ATTN = "backends.flash_attn.FlashAttentionBackend"
    FLASH_ATTN_DIFFKV = (
        "backends.flash_attn_diffkv.FlashAttentionDiffKVBackend"
    )
    TORCH_SDPA = ""
    CUSTOM = ""
    FLEX_ATTENTION = "backends.flex_attention.FlexAttentionBackend"
"""


class Build:
    """A copy of the package, whose data files may be written, and an environment with a vLLM of some version."""

    def __init__(self, folder: Path, version: str = "0.34.0.dev7+g0123abc") -> None:
        self.folder, self.site = folder, folder / "site"
        for package in ("bezel", "packages/base/bezel_base", "packages/catalog/bezel_catalog"):
            target = folder / Path(package).name
            shutil.copytree(ROOT / package, target)  # with the compiled modules: thirteen processes import them
        shutil.copy(ROOT / "Pulumi.yaml", folder)
        self._write("__init__", "")
        self._write("config", CONFIG)
        for package in ("v1/__init__", "v1/attention/__init__", "v1/attention/backends/__init__"):
            self._write(package, "")
        self._write("v1/attention/backends/registry", ATTENTION)
        self._write("envs", "environment_variables = {f'VLLM_{n}': (lambda n=n: str(n)) for n in range(250)}")
        self._write("entrypoints/__init__", "")
        self._write("entrypoints/common/__init__", "")
        self._write("entrypoints/common/cli_args", f"KNOWN = {KNOWN}\nSWITCHES = {SWITCHES}\n{CLI}")
        self._write("utils/__init__", "")
        self._write("utils/argparse_utils", "from argparse import ArgumentParser as FlexibleArgumentParser")
        manager = "class ToolParserManager:\n    list_registered = staticmethod(lambda: ['gemma4', 'gemma5'])"
        self._write("tool_parsers", manager)
        info = self.site / "vllm-1.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}\n")

    def _write(self, module: str, text: str) -> None:
        file = self.site / "vllm" / f"{module}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}\n")

    @property
    def recordings(self) -> Path:
        return self.folder / "bezel_catalog" / "data" / "vllm"

    def bezel(self, *arguments: str) -> tuple[int, str]:
        environment = {**os.environ, "PYTHONPATH": f"{self.folder}:{self.site}", "GOOGLE_PROJECT": "bezel-local"}
        command = [sys.executable, "-c", RUN, *arguments]
        ran = subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, text=True, check=False, timeout=60
        )
        return ran.returncode, ran.stdout + ran.stderr

    def stack(self, **vllm: object) -> None:
        settings = {
            "model": "gemma-4-12b-it-qat-w4a16",
            "accelerator": "nvidia-l4",
            "region": "us-east4",
            "image": {"tag": NIGHTLY},
            "vllm": vllm,
        }
        text = json.dumps({"config": {f"bezel:{key}": value for key, value in settings.items()}})
        (self.folder / "Pulumi.build.yaml").write_text(text)


@pytest.fixture(scope="module")
def recorded_build(tmp_path_factory: pytest.TempPathFactory) -> tuple[Build, str]:
    """A build whose options were recorded, and what the recording printed."""
    build = Build(tmp_path_factory.mktemp("build"))
    code, text = build.bezel("catalog", "record-options", sys.executable, "--name", NIGHTLY, "--options-only")
    assert code == 0, text
    return build, text


@pytest.mark.slow
def test_a_build_between_releases_is_planned_by_what_was_recorded_of_it(recorded_build: tuple[Build, str]) -> None:
    build, text = recorded_build
    assert f"options and 250 variables of vLLM 0.34.0.dev7+g0123abc as {NIGHTLY}" in text
    assert "the values of reasoning-parser are not recorded" in text

    build.stack(**{"only-in-this-build": True})
    code, text = build.bezel("plan", "build")
    assert code == 0, text
    assert f"docker.io/vllm/vllm-openai:{NIGHTLY}" in text
    assert "--only-in-this-build" in text
    build.stack(**{"async-scheduling": True, "tool-call-parser": "gemma6"})
    code, text = build.bezel("plan", "build")
    assert code != 0
    assert f"vLLM {NIGHTLY} does not have this option" in text
    assert "bezel:vllm.tool-call-parser = gemma6" in text
    assert build.bezel("catalog", "check")[0] == 0


@pytest.mark.slow
def test_members_converters_and_fields_of_every_shape_are_recorded(recorded_build: tuple[Build, str]) -> None:
    build, _ = recorded_build
    recording = json.loads((build.recordings / f"{NIGHTLY}.json").read_text())
    assert recording["registered_values"]["attention-backend"] == [
        *("FLASH_ATTN", "FLASH_ATTN_DIFFKV", "TORCH_SDPA", "CUSTOM", "FLEX_ATTENTION", "auto")
    ]
    options = {row["dest"]: row for row in recording["options"]}
    assert options["kernel"]["any_case"]
    assert "any_case" not in options["exact"]
    assert recording["values"]["inner_config"]["properties"] == {
        "chosen": {"type": "integer"},
        "kinds": {"type": "object"},
        "mode": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
        "words": {"anyOf": [{"type": "array"}, {"type": "string"}]},
    }


@pytest.mark.slow
def test_what_cannot_be_recorded_leaves_the_catalogue_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build = Build(tmp_path)
    build.stack(**{"only-in-this-build": True})
    code, text = build.bezel("plan", "build")
    assert code != 0
    assert f"`bezel catalog record-release PYTHON --name {NIGHTLY}`" in text
    monkeypatch.setenv("PYTHONPATH", f"{build.folder}:{build.site}")
    before = {file.name: file.read_bytes() for file in build.recordings.iterdir() if file.is_file()}
    for (name, replace), message in {
        (None, False): "is not a release, so its recording needs a name of its own",
        ("0.33.0", False): "--name = 0.33.0\n   it is recorded already.\n   Repair: add --replace",
        ("0.33.0", True): "stacks of that release would be checked against wrong options",
        ("../x", False): "a name has letters, digits, dots",
    }.items():
        with pytest.raises(UserError) as refused:
            record_options(sys.executable, name=name, replace=replace, folder=build.recordings)
        assert message in str(refused.value)
    shutil.rmtree(build.site / "vllm" / "entrypoints" / "common")
    code, text = build.bezel("catalog", "record-release", sys.executable, "--name", "x", "--options-only")
    assert code != 0
    assert "the parser of `vllm serve` is in none of the known modules" in text
    assert "Traceback" not in text
    assert {file.name: file.read_bytes() for file in build.recordings.iterdir() if file.is_file()} == before


@pytest.mark.parametrize(
    ("python", "message"),
    [
        ("/no/such/python", "there is no such program"),
        ("/bin/false", r"no output\.\n"),
    ],
)
def test_an_interpreter_without_vllm_is_reported(tmp_path: Path, python: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        record_options(python, name=None, replace=False, folder=tmp_path)
    assert list(tmp_path.iterdir()) == []
