"""The schema of the package: what programs in other languages may write, and what their SDKs are made of."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pydantic
import pytest

from bezel_plugin.schema.file import read_schema
from bezel_plugin.schema.package import package_schema
from bezel_plugin.schema.types import type_of
from bezel_plugin.table import CHECKS, COMPONENTS

ROOT = Path(__file__).parents[2]
SCHEMA: dict[str, Any] = json.loads(read_schema())


def properties() -> Iterator[tuple[str, dict[str, Any]]]:
    for token, resource in SCHEMA["resources"].items():
        for part in ("properties", "inputProperties"):
            yield from ((f"{token} {part} {key}", value) for key, value in resource[part].items())
    for token, kind in SCHEMA["types"].items():
        yield from ((f"{token} {key}", value) for key, value in kind["properties"].items())


def test_the_stored_schema_is_that_of_the_models() -> None:
    """`.venv/bin/python -m bezel_plugin.schema` writes it again."""
    assert package_schema() == SCHEMA


def test_the_schema_has_every_row_of_the_table() -> None:
    assert SCHEMA["resources"].keys() == COMPONENTS.keys() | CHECKS.keys()
    assert {token for token, each in SCHEMA["resources"].items() if each.get("isComponent")} == COMPONENTS.keys()


def test_the_table_has_every_check_that_a_component_declares() -> None:
    """Without its row, a program with the setting that declares a check would be refused in the middle of a deploy."""
    check = re.compile(r'\(CheckResource, module="(\w+)", name="(\w+)"')
    sources = (file.read_text() for folder in ("components", "smoke") for file in (ROOT / folder).rglob("*.py"))
    declared = {match for text in sources for match in check.findall(text)}
    assert {f"bezel:{module}:{name}" for module, name in declared} == CHECKS.keys()


def test_everything_has_a_description() -> None:
    assert [name for name, value in properties() if len(value["description"]) < 6] == []
    assert [token for token, each in SCHEMA["resources"].items() if not each["description"]] == []


def test_constant_defaults_are_in_the_schema() -> None:
    service = SCHEMA["resources"]["bezel:services:VllmService"]["inputProperties"]
    assert (service["environment"]["default"], service["rollout"]["default"]) == ("dev", "direct")
    scaling = SCHEMA["types"]["bezel:services:Scaling"]["properties"]
    assert (scaling["maxInstances"]["default"], scaling["zonalRedundancy"]["default"]) == (1, False)
    gateway = SCHEMA["resources"]["bezel:gateway:IdentityGateway"]["inputProperties"]
    assert gateway["deletionProtection"]["default"] is True
    assert SCHEMA["resources"]["bezel:smoke:HealthCheck"]["inputProperties"]["deadlineSeconds"]["default"] == 2400


def test_defaults_of_a_plan_are_described_alone() -> None:
    weights = SCHEMA["types"]["bezel:services:Weights"]["properties"]
    assert "default" not in weights["bucket"]
    assert "default `<project>-models`" in weights["bucket"]["description"]
    labels = SCHEMA["resources"]["bezel:storage:WeightsBucket"]["inputProperties"]["labels"]
    assert "`VllmService` adds" in labels["description"]
    for token, resource in SCHEMA["resources"].items():
        required = {key for key in resource["requiredInputs"] if "default" in resource["inputProperties"][key]}
        assert not required, token
        assert not [key for key, each in resource["properties"].items() if "default" in each], token


def test_descriptions_name_properties_as_the_schema_does() -> None:
    uptime = SCHEMA["types"]["bezel:services:Observability"]["properties"]["uptime"]["description"]
    assert "needs `minInstances` above 0" in uptime
    assert not [name for name, value in properties() if re.search(r"\bmin_instances\b|=True", value["description"])]


def test_a_hook_is_no_input() -> None:
    assert "hooks" not in SCHEMA["resources"]["bezel:cloudrun:CloudRunGpuService"]["inputProperties"]


def test_an_object_within_an_object_is_a_type_of_its_own() -> None:
    container = SCHEMA["types"]["bezel:cloudrun:VllmContainer"]
    assert container["properties"]["startupProbe"]["$ref"] == "#/types/bezel:cloudrun:Probe"
    assert container["properties"]["mounts"]["items"] == {"$ref": "#/types/bezel:cloudrun:BucketMount"}
    assert container["required"] == ["arguments", "cpu", "memoryGib", "startupProbe"]


def test_a_model_within_itself_is_one_type() -> None:
    objects: dict[str, Any] = {}
    assert type_of(Tree, "trees", objects) == {"$ref": "#/types/bezel:trees:Tree"}
    assert objects["bezel:trees:Tree"]["properties"]["parts"]["items"] == {"$ref": "#/types/bezel:trees:Tree"}


def test_a_type_that_the_schema_does_not_know_is_refused() -> None:
    with pytest.raises(TypeError, match="has no type in the schema"):
        type_of(complex, "trees", {})


class Tree(pydantic.BaseModel):
    """A tree."""

    parts: tuple["Tree", ...] = ()
    """Its parts."""
