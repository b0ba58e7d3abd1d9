"""Recorder of an installed vLLM: options of `vllm serve`, their known values and schemas, environment variables.

    PYTHON recorder.py                 PYTHON: the interpreter of the installed vLLM
    PYTHON recorder.py --envs FILE     variables of another module of the same shape, tpu-inference's

Writes JSON on stdout. Runs in vLLM's own environment and imports nothing of bezel. Known values of options whose parser
takes any text come from the places where the started server looks them up; a place that a release does not have is
named with its reason. The type of a variable is found by trial: vLLM's own reader of it gets a set of words, and its
results and exceptions determine the type. Bounds and shapes of options are the JSON schemas of vLLM's configuration
classes; for a field whose values a function converts first, the types of values that it accepts. Combinations that vLLM
refuses are not recorded.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import importlib.util
import inspect
import json
import logging
import os
import sys
import typing
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

# Modules of the parser of `vllm serve`, newest first: it moved.
_PARSERS = ("vllm.entrypoints.common.cli_args", "vllm.entrypoints.launchers.cli_args")
# Not options: the help, and the positional argument for the model.
_NO_OPTIONS = ("help", "model_tag")
UNKNOWN_VALUES = "unknown_values"
"""Key of what is not part of the recording: options whose values are unknown, each with the reason."""
_SUPPRESSED = "==SUPPRESS=="
_REGISTERED: dict[str, tuple[str, str, Callable[[Any], Iterable[object]]]] = {
    "tool-call-parser": ("vllm.tool_parsers", "ToolParserManager", lambda it: it.list_registered()),
    "reasoning-parser": ("vllm.reasoning", "ReasoningParserManager", lambda it: it.list_registered()),
    "quantization": ("vllm.model_executor.layers.quantization", "QUANTIZATION_METHODS", list),
    "attention-backend": (
        "vllm.v1.attention.backends.registry",
        "AttentionBackendEnum",
        # Two names of one class are two members; "auto" is read by the option itself and is no member.
        lambda it: [*it.__members__, "auto"],
    ),
    "config-format": (
        "vllm.transformers_utils.config",
        "_CONFIG_FORMAT_TO_CONFIG_PARSER",
        lambda it: [*it, "auto"],
    ),
    "load-format": ("vllm.model_executor.model_loader", "_LOAD_FORMAT_TO_MODEL_LOADER", list),
    "kv-cache-dtype": ("vllm.config.cache", "CacheDType", typing.get_args),
}


_ON, _OFF = ("1", "true", "True"), ("0", "false", "False")
_TRIED = ("", "7", "-1", "1.5", "no such word", "{}", *_ON, *_OFF)
_REFUSED = object()
_UNWRITABLE = "unwritable"
# Values of each type that a user can write. No strings: the words that a function knows cannot be found by trial.
_SAMPLES: dict[str, tuple[object, ...]] = {
    "boolean": (True,),
    "integer": (1, 3),
    "number": (1.5,),
    "array": ([], ["x"], [1]),
    "object": ({}, {"x": 1}),
}
# Options whose field in the configuration class has another name.
_RENAMED = {
    "kv_cache_dtype": "cache_dtype",
    "scheduling_policy": "policy",
    "spec_tokens": "num_speculative_tokens",
}
# Classes that the engine fills in itself: users do not set the fields below them.
_INNER = ("ModelConfig", "ParallelConfig", "VllmConfig", "LoadConfig", "CacheConfig", "SchedulerConfig", "DeviceConfig")
_KEPT = (
    *("type", "enum", "const", "anyOf", "items", "properties", "additionalProperties", "required"),
    *("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "minItems", "maxItems", "minProperties"),
)


def options(parser: argparse.ArgumentParser) -> list[dict[str, object]]:
    """Return a row for each option, as bezel_catalog.vllm.options reads it."""
    actions = [action for action in parser._actions if action.dest not in _NO_OPTIONS]  # noqa: SLF001 - no other way
    return [_row(action) for action in actions if action.option_strings]


def _row(action: argparse.Action) -> dict[str, object]:
    row: dict[str, object] = {
        "dest": action.dest,
        "flags": list(action.option_strings),
        "kind": _kind(action),
    }
    if action.type is not None:
        row["type"] = getattr(action.type, "__name__", str(action.type))
    if action.choices is not None:
        row["choices"] = [str(choice) for choice in action.choices]
        if _takes_capitals(action):
            row["any_case"] = True
    if action.default is not None and action.default != _SUPPRESSED and _is_plain(action.default):
        row["default"] = action.default
    if getattr(action, "deprecated", False):
        row["deprecated"] = True
    return row


def _takes_capitals(action: argparse.Action) -> bool:
    """Whether the choices may be written in capitals too: the option's converter lowers them."""
    choices = list(action.choices or ())
    lower_case = [word for word in choices if isinstance(word, str) and word != word.upper()]
    if not lower_case or not callable(action.type):
        return False
    try:
        return all(action.type(word.upper()) in choices for word in lower_case)
    except (TypeError, ValueError, argparse.ArgumentTypeError):
        return False


def _kind(action: argparse.Action) -> str:
    if action.nargs == 0:
        return "switch-pair" if isinstance(action, argparse.BooleanOptionalAction) else "switch"
    if isinstance(action, argparse._AppendAction):  # noqa: SLF001 - argparse names it nowhere else
        return "append"
    return {"?": "optional-value", "+": "values", "*": "values"}.get(str(action.nargs), "value")


def _is_plain(value: object) -> bool:
    """Whether a default is a JSON value, and not an object of vLLM's own."""
    if isinstance(value, list):
        return all(_is_plain(part) for part in value)
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_plain(part) for key, part in value.items())
    return type(value) in (bool, int, float, str)


def registered_values() -> tuple[dict[str, list[str]], dict[str, str]]:
    """Return, by option name, the values that the started server knows in its own order, and why others are unknown."""
    recorded: dict[str, list[str]] = {}
    unknown: dict[str, str] = {}
    for name, (module, attribute, read) in _REGISTERED.items():
        try:
            values = read(getattr(importlib.import_module(module), attribute))
            recorded[name] = list(dict.fromkeys(str(value) for value in values))
        except (ImportError, AttributeError) as error:
            unknown[name] = str(error)
    return recorded, unknown


def _parser() -> argparse.ArgumentParser:
    utilities = importlib.import_module("vllm.utils.argparse_utils")
    for name in _PARSERS:
        with contextlib.suppress(ModuleNotFoundError):
            module = importlib.import_module(name)
            return typing.cast("argparse.ArgumentParser", module.make_arg_parser(utilities.FlexibleArgumentParser()))
    raise SystemExit("vllm: the parser of `vllm serve` is in none of the known modules: " + ", ".join(_PARSERS))


def variables(module: Any) -> dict[str, object]:
    """Return every variable that a module like vllm.envs reads, with its type.

    A type is "text", "int", "float", "json", `{"on": words, "off": words}`, with `strict` where it reads a number and
    refuses other words instead of reading them as off, or `{"choices": words}`, with `any_case` and `list`
    (comma-separated) where they apply.
    """
    readers: Mapping[str, Callable[[], object]] = module.environment_variables
    types = {name: _type(name, readers[name]) for name in sorted(readers)}
    if "VLLM_LOGGING_LEVEL" in readers:  # vLLM reads it as text, then logging refuses an unknown level
        types["VLLM_LOGGING_LEVEL"] = {"choices": sorted(logging.getLevelNamesMapping()), "any_case": True}
    return types


def _type(name: str, read: Callable[[], object]) -> object:
    chosen = inspect.getclosurevars(read).nonlocals if inspect.isfunction(read) else {}
    if "_get_validated_env_list" in chosen or inspect.isfunction(chosen.get("env_list_with_choices")):
        chosen = inspect.getclosurevars(chosen["_get_validated_env_list"]).nonlocals
    if "choices" in chosen:
        return _choices(name, read, chosen)
    answers = {word: _read(name, word, read) for word in _TRIED}
    accepted = {word for word, value in answers.items() if value is not _REFUSED}
    if answers["{}"] == {}:
        return "json"
    if any(isinstance(answers[word], bool) for word in accepted):
        return _switch(answers)
    if accepted.isdisjoint({"", "no such word"}):
        return "float" if "1.5" in accepted else "int" if "7" in accepted else "text"
    return "text"


def _switch(answers: Mapping[str, object]) -> object:
    """Return the words that switch a variable on and off; "text" where no word does one of the two."""
    on, off = [word for word in _ON if answers[word] is True], [word for word in _OFF if answers[word] is False]
    if not (on and off):
        return "text"
    return {"on": on, "off": off} | ({"strict": True} if answers["no such word"] is _REFUSED else {})


def _choices(name: str, read: Callable[[], object], chosen: Mapping[str, Any]) -> object:
    """Return the choices of a reader that takes fixed words; `list` where it takes two of them with a comma."""
    choices = chosen["choices"]() if callable(chosen["choices"]) else chosen["choices"]
    description: dict[str, object] = {"choices": [str(word) for word in choices]}
    if not chosen.get("case_sensitive", True):
        description["any_case"] = True
    if choices and _read(name, f"{choices[0]},{choices[-1]}", read) is not _REFUSED:
        description["list"] = True
    return description


def _read(name: str, word: str, read: Callable[[], object]) -> object:
    before = dict(os.environ)
    os.environ[name] = word
    try:
        return read()
    except Exception:  # noqa: BLE001 - any exception ends the server
        return _REFUSED
    finally:
        os.environ.clear()
        os.environ.update(before)


def values(parser: argparse.ArgumentParser) -> dict[str, object]:
    """Return, by the `dest` of an option, the JSON schema of its field, with the name of its class as title.

    Options whose field takes any value, or only the type that the parser declares, have none.
    """
    configuration = importlib.import_module("vllm.config")
    whole = _schema(configuration.VllmConfig)
    schemas: dict[str, object] = {}
    for group in parser._action_groups:  # noqa: SLF001 - argparse has no other way to its groups
        owner = getattr(configuration, group.title or "", None)
        # An option without a class's own group may still be a field of VllmConfig.
        schema = _schema(owner) if owner else {}
        places = [schema, *schema.get("$defs", {}).values(), whole] if owner else [whole]
        for action in group._group_actions:  # noqa: SLF001
            field = _RENAMED.get(action.dest, action.dest)
            place = next((place for place in places if field in place.get("properties", {})), None)
            shared = {**whole.get("$defs", {}), **schema.get("$defs", {})}
            kept = _simplify(place["properties"][field], shared, ()) if place else {}
            if place and kept and kept not in ({"type": "string"}, {"type": "boolean"}):
                schemas[action.dest] = {"title": place["title"], **kept}
    return dict(sorted(schemas.items()))


def _schema(owner: Any) -> dict[str, Any]:
    pydantic = importlib.import_module("pydantic")
    generator = importlib.import_module("pydantic.json_schema").GenerateJsonSchema

    class Schemas(generator):  # type: ignore[misc, valid-type]
        """Schemas without the fields that a class fills in itself; values without a JSON form are marked unwritable."""

        ignored_warning_kinds = frozenset({"skipped-choice", "non-serializable-default"})

        def dataclass_args_schema(self, schema: Any) -> dict[str, Any]:
            fields = [field for field in schema["fields"] if field.get("init", True)]
            return dict(super().dataclass_args_schema({**schema, "fields": fields}))

        def function_before_schema(self, schema: Any) -> dict[str, Any]:
            inner = dict(super().function_before_schema(schema))
            whole = schema["schema"]["type"] in ("dataclass", "dataclass-args", "model")
            branches = [
                self.get_schema_from_definitions(branch["$ref"]) or {} if "$ref" in branch else branch
                for branch in inner.get("anyOf", [inner])
            ]
            kinds = {branch.get("type", "string" if "enum" in branch else None) for branch in branches}
            # A function may accept a name for each of the values.
            named = {"string"} if any("enum" in branch for branch in branches) else set()
            return inner if whole else _accepted_kinds(schema, kinds | named)

        def handle_invalid_for_json_schema(self, schema: Any, error_info: str) -> dict[str, Any]:
            del schema, error_info
            return {_UNWRITABLE: True}

    result: dict[str, Any] = pydantic.TypeAdapter(owner).json_schema(schema_generator=Schemas)
    return result


def _accepted_kinds(schema: Any, kinds: set[Any]) -> dict[str, Any]:
    """Return the types that a field with a converting function takes: its declared types, and those found by trial.

    Bounds and words are left out, as the function may convert the values first; {} where no trial is possible.
    """
    core = importlib.import_module("pydantic_core")
    if not kinds <= {*_SAMPLES, "string", "null"}:
        return {}
    try:
        judge = core.SchemaValidator(schema)
    except core.SchemaError:
        return {}
    kinds |= {kind for kind, samples in _SAMPLES.items() if any(_takes(judge, sample) for sample in samples)}
    if "string" not in kinds and _takes(judge, "x"):
        kinds.add("string")
    return {"anyOf": [{"type": kind} for kind in sorted(kinds)]}


def _takes(judge: Any, sample: object) -> bool:
    try:
        judge.validate_python(sample)
    except Exception:  # noqa: BLE001 - a function may raise any exception, and the server then ends
        return False
    return True


def _simplify(schema: Any, shared: Mapping[str, Any], above: tuple[str, ...]) -> Any:
    """Return a schema with its references resolved and without descriptions; {} where any value is valid."""
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return {} if name in _INNER or name in above else _simplify(shared[name], shared, (*above, name))
    kept: dict[str, Any] = {}
    for key in _KEPT:
        if key not in schema:
            continue
        if key == "properties":
            kept[key] = {name: _simplify(part, shared, above) for name, part in sorted(schema[key].items())}
        elif key == "anyOf":
            branches = [_simplify(part, shared, above) for part in schema[key] if _UNWRITABLE not in part]
            if {} in branches or not branches:
                return {}
            kept |= {key: branches} if len(branches) > 1 else branches[0]
        elif key in ("items", "additionalProperties"):
            kept[key] = _simplify(schema[key], shared, above)
        else:
            kept[key] = schema[key]
    return kept


@contextlib.contextmanager
def _stdout_kept() -> Iterator[None]:
    """Keep stdout for the JSON: vLLM logs there."""
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)


def main(arguments: list[str]) -> None:
    """Print the recording."""
    with _stdout_kept():
        if arguments[:1] == ["--envs"]:
            spec = importlib.util.spec_from_file_location("envs", arguments[1])
            if spec is None or spec.loader is None:
                raise SystemExit(f"{arguments[1]}: not a Python file.")
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            recording: dict[str, object] = {"variables": variables(module)}
        else:
            parser = _parser()
            registered, unknown = registered_values()
            recording = {
                "installed": importlib.import_module("importlib.metadata").version("vllm"),
                "registered_values": registered,
                UNKNOWN_VALUES: unknown,
                "options": options(parser),
                "variables": variables(importlib.import_module("vllm.envs")),
                "values": values(parser),
            }
    json.dump(recording, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1:])
