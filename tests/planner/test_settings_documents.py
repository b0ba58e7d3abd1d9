"""Each row of the settings' documents says what the schema says, and the schema refuses what the planner refuses.

The schema's file is walked here on its own, apart from the code that renders the documents.
"""

import functools
import json
import re
from pathlib import Path

import jsonschema
import pytest
import yaml
from pydantic import ValidationError

from bezel.planner.base.settings import Settings

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads((ROOT / "docs" / "stack.schema.json").read_text(encoding="utf-8"))
STANDARD = {
    "minimum": lambda bound, step: (bound, bound - step),
    "exclusiveMinimum": lambda bound, step: (bound + step, bound),
    "maximum": lambda bound, step: (bound, bound + step),
    "exclusiveMaximum": lambda bound, step: (bound - step, bound),
}
WORDS = {"array": "list", "object": "map"}


def walk_properties(properties, required=(), path=()):
    """(path, schema without its reference and its null, whether it is required) of every key of the schema's file."""
    for name, spec in properties.items():
        schema = dict(spec)
        for part in spec.get("anyOf", ()):
            schema |= part if part != {"type": "null"} else {}
        reference = schema.get("$ref") or schema.get("items", {}).get("$ref")
        section = SCHEMA["$defs"][reference.rpartition("/")[2]] if reference else {}
        schema.setdefault("type", section.get("type"))
        yield (*path, name), schema, name in required
        yield from walk_properties(section.get("properties", {}), section.get("required", ()), (*path, name))


CONFIG = SCHEMA["properties"]["config"]
KEYS = [
    (tuple(part.removeprefix("bezel:") for part in path), schema, is_required)
    for path, schema, is_required in walk_properties(CONFIG["properties"], CONFIG["required"])
]
NAMES = [".".join(path) for path, _, _ in KEYS]


@functools.cache
def table():
    """Path -> cells of each row of the table in docs/stacks.md."""
    section = (ROOT / "docs" / "stacks.md").read_text(encoding="utf-8").partition("tools.docs.planner.settings -->")[2]
    rows, path = {}, []
    for row in section.partition("<!-- end -->")[0].strip().splitlines()[2:]:
        key, *cells = [cell.strip() for cell in row.strip("|").split("|")]
        path[key.count("·") :] = [key.strip("·` ").removeprefix("bezel:")]
        rows[tuple(path)] = cells
    return rows


@functools.cache
def pulumi_lines():
    """Path -> the line of Pulumi.yaml that describes a key."""
    lines = {}
    for name, declared in yaml.safe_load((ROOT / "Pulumi.yaml").read_text(encoding="utf-8"))["config"].items():
        first, *rest = declared.get("description", "").splitlines() or [""]
        lines[name,] = first
        lines |= {tuple(f"{name}.{line.partition(' (')[0]}".replace("[]", "").split(".")): line for line in rest}
    return lines


def test_the_documents_have_the_keys_of_the_schema_in_order():
    assert list(table()) == [path for path, _, _ in KEYS]
    assert [path for path in pulumi_lines() if path != ("docker:disableDockerDaemonCheck",)] == list(table())
    assert len(KEYS) > 90


def documented_default(schema, is_required):
    if is_required:
        return {"required"}
    default = schema.get("default")
    if default is None:
        return {"computed"} if "default " in schema["description"] else {"none"}
    if default in ("", []) or isinstance(default, dict):
        return {"empty"}
    return {f"`{json.dumps(default).strip(chr(34))}`"}


@pytest.mark.parametrize(("path", "schema", "is_required"), KEYS, ids=NAMES)
def test_a_row_has_type_choices_bounds_and_default_of_the_schema(path, schema, is_required):
    type_, default, meaning = table()[path]
    kind, _, choices = type_.partition(": ")
    assert kind.split()[0].strip(",") == WORDS.get(schema["type"], schema["type"])
    assert choices == ", ".join(f"`{word}`" for word in schema.get("enum", ()))
    assert {default} == documented_default(schema, is_required)
    assert meaning == schema["description"]
    bounds = [schema[word] for word in STANDARD if word in schema]
    assert [float(word) for word in re.findall(r"(?<![\w`])-?\d+(?:\.\d+)?", kind)] == bounds
    line = pulumi_lines()[path]
    assert all(word in line for word in (*schema.get("enum", ()), *(str(bound) for bound in bounds if len(path) > 1)))


@pytest.mark.slow
def test_the_schema_of_the_documents_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    with pytest.raises(jsonschema.SchemaError):
        jsonschema.Draft202012Validator.check_schema(SCHEMA | {"type": "lists"})


@pytest.mark.parametrize("schema", [schema for _, schema, _ in KEYS], ids=NAMES)
def test_the_schema_is_standard_and_accepts_its_own_values(schema):
    keywords = {
        *STANDARD, "type", "enum", "default", "description", "title", "examples", "items", "pattern", "anyOf", "$ref",
        "additionalProperties",
    }  # fmt: skip
    assert set(schema) <= keywords
    assert not any(set(part) - keywords for part in schema.get("anyOf", ()))
    whole = {"$defs": SCHEMA["$defs"], **schema}
    values = [*schema.get("examples", ()), *([schema["default"]] if schema.get("default") is not None else [])]
    for value in values:
        jsonschema.Draft202012Validator(whole).validate(value)


def smallest(path, value):
    """The settings that have only this key beside the required ones."""
    nested = value
    for depth in range(len(path) - 1, -1, -1):
        siblings = {}
        below = [(keys, part) for keys, part, is_needed in KEYS if keys[:-1] == path[:depth] and is_needed]
        siblings = {keys[-1]: part["examples"][0] for keys, part in below}
        nested = siblings | {path[depth]: nested}
        parent = next((part for keys, part, _ in KEYS if keys == path[:depth]), {})
        nested = [nested] if parent.get("type") == "array" else nested
    return {"region": "us-east4"} | nested  # or `regions`


VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
BOUNDED = [(path, schema, word) for path, schema, _ in KEYS for word in STANDARD if word in schema]
BOUNDED_NAMES = [f"{'.'.join(path)}-{word}" for path, _, word in BOUNDED]


@pytest.mark.parametrize(("path", "schema", "word"), BOUNDED, ids=BOUNDED_NAMES)
def test_planner_and_schema_refuse_the_same_values(path, schema, word):
    inside, outside = STANDARD[word](schema[word], 1 if schema["type"] == "integer" else 0.001)
    for value, is_valid in ((inside, True), (outside, False)):
        settings = smallest(path, value)
        document = {"config": {f"bezel:{name}": part for name, part in settings.items()}}
        assert VALIDATOR.is_valid(document) is is_valid
        if is_valid:
            Settings.model_validate(settings)
        else:
            with pytest.raises(ValidationError):
                Settings.model_validate(settings)


PATTERNS = [path for path, schema, _ in KEYS if "pattern" in schema and path[0] in ("lease", "resources")]
TEXTS = ("4h", "1h30m", "16Gi", "1024Mi", "900s", "7d", "", "4", "h", "4 h", "-4h", "1m1h", "4H", "16GB", "16", 4, True)


@pytest.mark.parametrize("path", PATTERNS, ids=".".join)
def test_planner_and_schema_read_the_same_quantities(path):
    for value in TEXTS:
        settings = smallest(path, value)
        try:
            Settings.model_validate(settings)
        except ValidationError:
            is_valid = False
        else:
            is_valid = True
        document = {"config": {f"bezel:{name}": part for name, part in settings.items()}}
        assert VALIDATOR.is_valid(document) is is_valid, value
