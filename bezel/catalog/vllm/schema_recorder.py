"""Recorder of an installed vLLM's environment variables and of the schemas of its options' values, as JSON on stdout.

    PYTHON bezel/catalog/vllm/schema_recorder.py                 PYTHON: the interpreter of the installed vLLM
    PYTHON bezel/catalog/vllm/schema_recorder.py --envs FILE     variables of another module of the same shape,
    tpu-inference's

Runs in vLLM's own environment and imports nothing of bezel. The type of a variable is found by trial: vLLM's own reader
of it gets a set of words, and its results and exceptions determine the type. Bounds and shapes of options are the JSON
schemas of vLLM's configuration classes; for a field whose values a function converts first, the types of values that it
accepts. Combinations that vLLM refuses are not recorded.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import inspect
import json
import logging
import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

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
# Modules of the parser of `vllm serve`, newest first: it moved.
_PARSERS = ("vllm.entrypoints.common.cli_args", "vllm.entrypoints.launchers.cli_args")
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


def variables(module: Any) -> dict[str, object]:
    """Return every variable that a module like vllm.envs reads, with its type.

    A type is "text", "int", "float", "json", `{"on": words, "off": words}`, with `strict` where it reads a number and
    refuses other words instead of reading them as off, or `{"choices": words}`, with `any_case` and `list`
    (comma-separated) where they apply.
    """
    readers: Mapping[str, Callable[[], object]] = module.environment_variables
    return {name: _type(name, readers[name]) for name in sorted(readers)} | _logging_level(readers)


def _logging_level(readers: Mapping[str, Callable[[], object]]) -> dict[str, object]:
    """Return the choices of VLLM_LOGGING_LEVEL: vLLM reads it as text, then logging refuses an unknown level."""
    level = "VLLM_LOGGING_LEVEL"
    known = {"choices": sorted(logging.getLevelNamesMapping()), "any_case": True}
    return {level: known} if level in readers else {}


def _type(name: str, read: Callable[[], object]) -> object:
    chosen = inspect.getclosurevars(read).nonlocals if inspect.isfunction(read) else {}
    if "_get_validated_env_list" in chosen or inspect.isfunction(chosen.get("env_list_with_choices")):
        chosen = inspect.getclosurevars(chosen["_get_validated_env_list"]).nonlocals
    if "choices" in chosen:
        return _choices(name, read, chosen)
    found = {word: _read(name, word, read) for word in _TRIED}
    words = {word for word, value in found.items() if value is not _REFUSED}
    if found["{}"] == {}:
        return "json"
    if any(isinstance(found[word], bool) for word in words):
        return _switch(found)
    if words.isdisjoint({"", "no such word"}):
        return "float" if "1.5" in words else "int" if "7" in words else "text"
    return "text"


def _switch(found: Mapping[str, object]) -> object:
    """Return the words that switch a variable on and off; "text" where no word does one of the two."""
    on, off = [word for word in _ON if found[word] is True], [word for word in _OFF if found[word] is False]
    if not (on and off):
        return "text"
    return {"on": on, "off": off} | ({"strict": True} if found["no such word"] is _REFUSED else {})


def _choices(name: str, read: Callable[[], object], chosen: Mapping[str, Any]) -> object:
    """Return the choices of a reader that takes fixed words; `list` where it takes two of them with a comma."""
    words = chosen["choices"]() if callable(chosen["choices"]) else chosen["choices"]
    found: dict[str, object] = {"choices": [str(word) for word in words]}
    if not chosen.get("case_sensitive", True):
        found["any_case"] = True
    if words and _read(name, f"{words[0]},{words[-1]}", read) is not _REFUSED:
        found["list"] = True
    return found


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


def values() -> dict[str, object]:
    """Return, by the `dest` of an option, the JSON schema of its field, with the name of its class as title.

    Options whose field takes any value, or only the type that the parser declares, have none.
    """
    configuration = importlib.import_module("vllm.config")
    whole = _schema(configuration.VllmConfig)
    found: dict[str, object] = {}
    for group in _parser()._action_groups:  # noqa: SLF001 - argparse has no other way to its groups
        owner = getattr(configuration, group.title or "", None)
        # An option without a class's own group may still be a field of VllmConfig.
        schema = _schema(owner) if owner else {}
        places = [schema, *schema.get("$defs", {}).values(), whole] if owner else [whole]
        for action in group._group_actions:  # noqa: SLF001
            field = _RENAMED.get(action.dest, action.dest)
            place = next((place for place in places if field in place.get("properties", {})), None)
            shared = {**whole.get("$defs", {}), **schema.get("$defs", {})}
            kept = _kept(place["properties"][field], shared, ()) if place else {}
            if place and kept and kept not in ({"type": "string"}, {"type": "boolean"}):
                found[action.dest] = {"title": place["title"], **kept}
    return dict(sorted(found.items()))


def _parser() -> Any:
    utilities = importlib.import_module("vllm.utils.argparse_utils")
    for name in _PARSERS:
        with contextlib.suppress(ModuleNotFoundError):
            return importlib.import_module(name).make_arg_parser(utilities.FlexibleArgumentParser())
    raise SystemExit("vllm: the parser of `vllm serve` is in none of the known modules: " + ", ".join(_PARSERS))


def _schema(owner: Any) -> dict[str, Any]:
    pydantic = importlib.import_module("pydantic")
    generator = importlib.import_module("pydantic.json_schema").GenerateJsonSchema

    class Schemas(generator):  # type: ignore[misc, valid-type]
        """Schemas without the fields that a class fills in itself; values without a JSON form are marked unwritable."""

        ignored_warning_kinds = frozenset({"skipped-choice", "non-serializable-default"})

        def dataclass_args_schema(self, schema: Any) -> dict[str, Any]:
            given = [field for field in schema["fields"] if field.get("init", True)]
            return dict(super().dataclass_args_schema({**schema, "fields": given}))

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
            return inner if whole else _kinds(schema, kinds | named)

        def handle_invalid_for_json_schema(self, schema: Any, error_info: str) -> dict[str, Any]:
            del schema, error_info
            return {_UNWRITABLE: True}

    found: dict[str, Any] = pydantic.TypeAdapter(owner).json_schema(schema_generator=Schemas)
    return found


def _kinds(schema: Any, kinds: set[Any]) -> dict[str, Any]:
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


def _kept(schema: Any, shared: Mapping[str, Any], above: tuple[str, ...]) -> Any:
    """Return a schema with its references resolved and without descriptions; {} where any value is valid."""
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return {} if name in _INNER or name in above else _kept(shared[name], shared, (*above, name))
    kept: dict[str, Any] = {}
    for key in _KEPT:
        if key not in schema:
            continue
        if key == "properties":
            kept[key] = {name: _kept(part, shared, above) for name, part in sorted(schema[key].items())}
        elif key == "anyOf":
            branches = [_kept(part, shared, above) for part in schema[key] if _UNWRITABLE not in part]
            if {} in branches or not branches:
                return {}
            kept |= {key: branches} if len(branches) > 1 else branches[0]
        elif key in ("items", "additionalProperties"):
            kept[key] = _kept(schema[key], shared, above)
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
                raise SystemExit(f"{arguments[1]}: no Python file.")
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            found: dict[str, object] = {"variables": variables(module)}
        else:
            version = importlib.import_module("importlib.metadata").version("vllm")
            found = {
                "version": version.partition("+")[0],
                "variables": variables(importlib.import_module("vllm.envs")),
                "values": values(),
            }
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1:])
