"""A machine is told everything by attributes that its startup script reads, and nothing that is secret."""

from __future__ import annotations

import json
import re
from functools import partial

from bezel_components.config.node_metadata import node_metadata
from bezel_components.config.startup_script import SCRIPT

node = partial(
    node_metadata,
    image="r/i@sha256:" + "a" * 64,
    arguments=("/dev/shm/models/m", "--max-model-len=8192"),  # noqa: S108 - of the machine
    environment={"B": "2", "A": "1"},
    secrets={"HF_TOKEN": "hf-token"},
    weights="gs://b/m",
    model_folder="/dev/shm/models/m",  # noqa: S108 - of the machine
    compile_cache="gs://b/compile-cache/m",
    port=8000,
    device="tpu",
    packages="",
)
MADE = node(end_notice=("bezel-m", "m", 14_400), collector=("r/c@sha256:0", "global: {}"))


def test_every_attribute_is_one_that_the_script_knows_and_none_is_missing() -> None:
    names = {name.removeprefix("bezel-") for name in MADE if name.startswith("bezel-")}
    script = SCRIPT.read_text(encoding="utf-8")
    (listed,) = re.findall(r"^names = \((.+)\)$", script, re.MULTILINE)
    written = {*re.findall(r'"([\w-]+)"', listed), *re.findall(r'\("([\w-]+)", (?:list|dict)\)', script)}
    written |= set(re.findall(r"metadata instance/attributes/bezel-([\w-]+)", script))
    assert names == written


def test_lists_and_maps_are_json_that_does_not_depend_on_their_order() -> None:
    assert json.loads(MADE["bezel-arguments"])[0] == "/dev/shm/models/m"  # noqa: S108 - of the machine
    assert MADE["bezel-environment"] == '{"A":"1","B":"2"}'


def test_a_secret_stands_there_by_its_name_only() -> None:
    assert json.loads(MADE["bezel-secrets-by-name"]) == {"HF_TOKEN": "hf-token"}
    assert all(isinstance(value, str) for value in MADE.values())


def test_only_a_machine_that_tells_its_end_or_collects_has_attributes() -> None:
    assert json.loads(MADE["bezel-end-notice"]) == {"lease": "bezel-m", "stack": "m", "run_seconds": 14_400}
    assert set(MADE) - set(node()) == {
        "bezel-end-notice",
        "bezel-collector-image",
        "bezel-collector-configuration",
    }
