"""Pulumi.yaml and the configuration table say what the settings say, in full."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
import yaml

from bezel.planner.base.settings import Settings
from tools.docs.planner.schema import (
    PROVIDER_SETTINGS,
    configuration_table,
    project_config,
    project_yaml,
    stack_file_schema,
)

ROOT = Path(__file__).parents[2]
REPAIR = "run `python -m tools.docs.planner.settings --write`"


def test_pulumi_yaml_declares_every_setting_as_the_planner_reads_it():
    text = (ROOT / "Pulumi.yaml").read_text(encoding="utf-8")
    assert yaml.safe_load(text)["config"] == project_config() | PROVIDER_SETTINGS, REPAIR
    assert text.endswith("\n" + project_yaml()), REPAIR


def test_every_key_is_typed_described_and_has_a_default():
    for name, declared in project_config().items():
        assert declared["type"] in {"string", "object", "array"}, name
        assert ("items" in declared) is (declared["type"] == "array"), name
        assert len(declared["description"]) > 10, name
        assert "default" in declared, name


def test_the_image_look_up_needs_no_docker_daemon():
    declared = yaml.safe_load((ROOT / "Pulumi.yaml").read_text(encoding="utf-8"))["config"]
    assert declared["docker:disableDockerDaemonCheck"] == {"value": True}


def test_nested_keys_are_described_too():
    for section in Settings.model_fields.values():
        for field in getattr(section.annotation, "model_fields", {}).values():
            assert field.description


def test_the_table_has_a_row_for_every_key_with_four_cells():
    rows = configuration_table().splitlines()
    assert all(row.count("|") == 5 for row in rows)
    assert any("bezel:cost" in row for row in rows)
    assert any("max_hourly_usd" in row and "number" in row for row in rows)


@pytest.mark.slow
def test_the_tool_prints_both():
    tool = [sys.executable, "-m", "tools.docs.planner.settings"]
    for flags, expected in (([], configuration_table()), (["--pulumi"], project_yaml())):
        done = subprocess.run([*tool, *flags], capture_output=True, text=True, check=True, timeout=60)
        assert done.stdout == expected


STACKS = sorted(ROOT.glob("Pulumi.*.yaml"))


def test_the_schema_of_a_stack_file_is_that_of_the_settings():
    schema = json.loads((ROOT / "docs" / "stack.schema.json").read_text(encoding="utf-8"))
    assert schema == json.loads(json.dumps(stack_file_schema())), REPAIR


@functools.cache
def validator():
    return jsonschema.Draft202012Validator(stack_file_schema())


@pytest.mark.parametrize("path", STACKS, ids=lambda path: path.name)
def test_each_stack_file_names_the_schema_and_keeps_to_it(path):
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# yaml-language-server: $schema=docs/stack.schema.json\n")
    validator().validate(yaml.safe_load(text))


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [{"bezel:modle": "x"}, {"bezel:scaling": {"max_instances": 0}}, {"bezel:cost": {"limit": 1}}, {"bezel:model": 4}],
)
def test_a_slip_in_a_stack_file_is_seen_in_the_editor(change):
    document = yaml.safe_load((ROOT / "Pulumi.l4-qat.yaml").read_text(encoding="utf-8"))
    document["config"] |= change
    with pytest.raises(jsonschema.ValidationError):
        validator().validate(document)
