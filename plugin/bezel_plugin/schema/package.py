"""The whole schema: what a program of any language may write, and what code the SDKs are made of."""

from typing import Any

from bezel_components.base.caller_names import SchemaNames
from bezel_components.base.check_resource import camel_case
from bezel_plugin.schema.descriptions import describe_fields, describe_outputs, summary_of
from bezel_plugin.schema.file import names_of
from bezel_plugin.schema.types import ANY, Field, fields_of, properties_of
from bezel_plugin.table import CHECKS, COMPONENTS, PACKAGE, VERSION, Check, Component

_OUTPUTS: dict[str, dict[str, Any]] = {
    "string": {"type": "string"},
    "boolean": {"type": "boolean"},
    "number": {"type": "number"},
    "strings": {"type": "array", "items": {"type": "string"}},
    "numbers": {"type": "object", "additionalProperties": {"type": "number"}},
    "any": {"type": "object", "additionalProperties": ANY},
    "anys": {"type": "array", "items": ANY},
}


def fields_of_row(row: Component | Check) -> list[Field]:
    """The arguments of a component or a check that a program sets."""
    fields = fields_of(row.arguments(), always_unknown=isinstance(row, Check))
    if isinstance(row, Component):
        fields += [Field(key, each.annotation, False, False, each.description) for key, each in row.keywords.items()]
    return fields


def package_schema() -> dict[str, Any]:
    """The schema as Pulumi's `schema.PackageSpec` has it."""
    objects: dict[str, Any] = {}
    rows: dict[str, Component | Check] = {**COMPONENTS, **CHECKS}
    resources = {token: _resource(row, objects) for token, row in rows.items()}
    names = names_of(objects, resources)
    for each in (*objects.values(), *resources.values()):
        _describe_by_names(each, names)
    return {
        "name": PACKAGE,
        "displayName": "Bezel",
        "version": VERSION,
        "description": "Models on vLLM on Google Cloud's GPUs: components, and checks of a deployed server.",
        "keywords": ["pulumi", "kind/component", "category/cloud"],
        "license": "Apache-2.0",
        "meta": {"moduleFormat": "(.*)", "supportPack": True},
        "language": {
            "nodejs": {"respectSchemaVersion": True},
            "python": {"respectSchemaVersion": True, "pyproject": {"enabled": True}},
            "go": {"respectSchemaVersion": True, "importBasePath": "example.com/pulumi-bezel/sdk/go/bezel"},
        },
        "types": dict(sorted(objects.items())),
        "resources": dict(sorted(resources.items())),
    }


def _describe_by_names(described: dict[str, Any], names: SchemaNames) -> None:
    """Have the descriptions of a type or a resource name its properties as the schema does."""
    parts = [*described.get("properties", {}).values(), *described.get("inputProperties", {}).values()]
    for part in (described, *parts):
        part["description"] = names.in_text(part["description"])


def _resource(row: Component | Check, objects: dict[str, Any]) -> dict[str, Any]:
    module = row.token.split(":")[1]
    hidden = row.hidden if isinstance(row, Check) else ()
    given = properties_of([field for field in fields_of_row(row) if field.name not in hidden], module, objects)
    resource = row.resource()
    described = describe_fields(row.arguments()) | describe_outputs(resource)
    outputs = {
        camel_case(name): {**_OUTPUTS[kind], "description": described.get(name, "")}
        for name, kind in row.outputs.items()
    }
    made: dict[str, Any] = {
        "description": summary_of(resource),
        "inputProperties": given["properties"],
        "requiredInputs": given["required"],
    }
    if isinstance(row, Component):
        return {**made, "isComponent": True, "properties": outputs, "required": sorted(outputs)}
    # The state of a check has its inputs beside its result.
    required = sorted({*given["required"], *outputs})
    state = {
        key: {part: value for part, value in each.items() if part != "default"}
        for key, each in given["properties"].items()
    }
    return {**made, "properties": {**state, **outputs}, "required": required}
