"""Structured outputs that vLLM refuses: schemas, regular expressions, grammars and structural tags of a wrong form.

vLLM has two libraries compile them and refuses what neither takes. Here their forms are read: the words and bounds of a
schema, the syntax of an expression, the rules of a grammar. Leaves out what the libraries refuse for its size, and the
drawing under the text of an error in an expression.
"""

from __future__ import annotations

import json
import re
from typing import Any

from bezel_simulated_vllm.api.errors import ApiError, api_error

_TYPES = {"string", "number", "integer", "boolean", "null", "array", "object"}
_FORMATS = {
    *("date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid", "uri", "idn-email"),
    *("uri-reference", "uri-template", "json-pointer", "relative-json-pointer", "iri", "iri-reference", "unknown"),
}
_PARTS = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames")
_BOUNDS = (("minimum", "maximum"), ("minLength", "maxLength"), ("minItems", "maxItems"))
_DEEPEST = 64
_WRAPPED = 16
# What a structural tag's format of each type must have, by its type.
_TAGS: dict[str, tuple[str, ...]] = {
    "any_text": (),
    "const_string": ("value",),
    "grammar": ("grammar",),
    "json_schema": ("json_schema",),
    "or": ("elements",),
    "qwen_xml_parameter": ("json_schema",),
    "regex": ("pattern",),
    "sequence": ("elements",),
    "tag": ("begin", "content", "end"),
    "tags_with_separator": ("tags", "separator"),
    "triggered_tags": ("triggers", "tags"),
}


def check(outputs: dict[str, Any]) -> None:
    """Refuse a constraint that no library of the server compiles.

    Args:
        outputs: one kind of constraint, as in `structured_outputs`.

    Raises:
        ApiError: 400 with the reason.
    """
    choice, grammar, schema, regex = (outputs.get(name) for name in ("choice", "grammar", "json", "regex"))
    if choice == []:
        raise api_error("choice-empty")
    if isinstance(grammar, str) and not grammar.strip():
        raise api_error("output-empty", name="grammar")
    if isinstance(schema, str) and not schema.strip():
        raise api_error("output-empty", name="json")
    if _too_deep(schema, _DEEPEST) or _too_deep(outputs.get("structural_tag"), _DEEPEST + _WRAPPED):
        raise api_error("too-deep")
    if outputs.get("json_object") is False:
        raise api_error("no-json-object")
    if regex:
        _check_regex(regex)
    if schema is not None:
        _check_json(schema)
    if grammar:
        _check_grammar(grammar)


def check_tag(tag: Any) -> bool:
    """Whether a structural tag (an object, or its text) is one."""
    if isinstance(tag, str):
        try:
            tag = json.loads(tag)
        except ValueError:
            return False
    if not isinstance(tag, dict):
        return False
    if "structures" in tag:
        return _check_structures(tag)
    return tag.get("type") == "structural_tag" and _check_format(tag.get("format"))


def _check_structures(tag: dict[str, Any]) -> bool:
    structures, triggers = tag["structures"], tag.get("triggers")
    if not (isinstance(structures, list) and isinstance(triggers, list) and triggers and structures):
        return False
    for structure in structures:
        if not isinstance(structure, dict) or not all(isinstance(structure.get(key), str) for key in ("begin", "end")):
            return False
        begin = structure["begin"]
        if sum(isinstance(trigger, str) and begin.startswith(trigger) for trigger in triggers) != 1:
            return False
        if not _compiles(structure.get("schema")):
            return False
    return True


def _check_format(form: Any) -> bool:
    if not isinstance(form, dict) or form.get("type") not in _TAGS:
        return False
    if not all(key in form for key in _TAGS[form["type"]]):
        return False
    if "json_schema" in form and not _compiles(form["json_schema"]):
        return False
    if form["type"] == "any_text":
        return isinstance(form.get("excludes", []), list)
    if form["type"] == "const_string":
        return isinstance(form["value"], str) and bool(form["value"])
    inner = [*_list_at(form, "elements"), *_list_at(form, "tags"), *([form["content"]] if "content" in form else [])]
    return all(map(_check_format, inner))


def _list_at(form: dict[str, Any], key: str) -> list[Any]:
    if key not in form:
        return []
    return form[key] if isinstance(form[key], list) and form[key] else [None]


def _compiles(schema: Any) -> bool:
    try:
        _check_schema(schema, schema)
    except ApiError:
        return False
    return True


def _too_deep(spec: Any, limit: int) -> bool:
    if isinstance(spec, str):
        try:
            spec = json.loads(spec)
        except (ValueError, RecursionError):
            return False
    level = [spec] if isinstance(spec, dict | list) else []
    for _ in range(limit):
        level = [
            child
            for node in level
            for child in (node.values() if isinstance(node, dict) else node)
            if isinstance(child, dict | list)
        ]
    return bool(level)


def _check_json(schema: Any) -> None:
    if isinstance(schema, str):
        try:
            schema = json.loads(schema)
        except ValueError:
            raise api_error("no-json") from None
        if not isinstance(schema, dict):
            raise api_error("grammar", text="Expecting object schema to apply options")
    _check_schema(schema, schema)


def _check_schema(schema: Any, root: Any) -> None:
    """Refuse a part of a JSON schema that has no meaning or no value."""
    if isinstance(schema, bool):
        return
    if not isinstance(schema, dict):
        raise _grammar_error("schema must be an object or boolean")
    kinds = schema.get("type", [])
    if not isinstance(kinds, str | list) or not all(isinstance(kind, str) for kind in kinds):
        raise _grammar_error("type must be a string or array of strings")
    for kind in [kinds] if isinstance(kinds, str) else kinds:
        if kind not in _TYPES:
            raise _grammar_error(f"Invalid type: {kind}")
    _check_words(schema)
    if isinstance(reference := schema.get("$ref"), str) and reference.startswith("#/"):
        _check_pointer(reference[1:], root)
    inner = list(schema["properties"].values()) if "properties" in schema else []
    for key in ("anyOf", "oneOf", "allOf", "prefixItems"):
        inner += schema.get(key, [])
    for part in [*inner, *(schema[key] for key in _PARTS if key in schema)]:
        _check_schema(part, root)


def _check_words(schema: dict[str, Any]) -> None:
    if "properties" in schema and not isinstance(schema["properties"], dict):
        raise _grammar_error("properties must be an object")
    if "required" in schema and not isinstance(schema["required"], list):
        raise _grammar_error(f"Expected array for 'required', got {json.dumps(schema['required'])}")
    for key in ("anyOf", "oneOf", "allOf", "prefixItems", "enum"):
        if key in schema and not isinstance(schema[key], list):
            raise _grammar_error(f"{key} must be an array")
    if schema.get("enum") == []:
        raise _grammar_error("Unsatisfiable schema: anyOf is empty")
    _check_bounds(schema)
    if schema.get("type") == "string":
        if schema.get("format", "unknown") not in _FORMATS:
            raise _grammar_error(f"Unknown format: {schema['format']}")
        if isinstance(schema.get("pattern"), str) and (fault := _fault(schema["pattern"])):
            raise _grammar_error(f"regex parse error:\n{_underline(schema['pattern'])}\nerror: {fault}")


def _check_bounds(schema: dict[str, Any]) -> None:
    for least, most in _BOUNDS:
        low, high = schema.get(least), schema.get(most)
        if isinstance(low, int | float) and isinstance(high, int | float) and low > high:
            raise _grammar_error(f"Unsatisfiable schema: {least} ({low}) is greater than {most} ({high})")


def _check_pointer(pointer: str, root: Any) -> None:
    node = root
    for name in pointer.split("/")[1:]:
        if not isinstance(node, dict) or name not in node:
            raise _grammar_error(f"Pointer '{pointer}' does not exist")
        node = node[name]


def _grammar_error(text: str) -> ApiError:
    return api_error("grammar-error", text=text)


def _check_regex(pattern: str) -> None:
    if "\x00" in pattern:
        raise api_error("regex-nul")
    if re.search(r"\\[pP]\{|\(\?i\)|\*\*|\\$", pattern):
        raise api_error("engine")  # one library takes it, and fails once the engine compiles it
    if fault := _fault(pattern):
        shown = f'at 1(8): invalid regex "{_escape(pattern)}" (in regex): regex parse error:\n{_underline(pattern)}'
        raise _grammar_error(f"{shown}\nerror: {fault}\n   1 | start: /{pattern}/\n              ^")


def _escape(pattern: str) -> str:
    return pattern.replace("\\", "\\\\").replace('"', '\\"')


def _underline(pattern: str) -> str:
    return f"    {pattern}\n    ^"


def _fault(pattern: str) -> str | None:
    """Return what is wrong with an expression, in the words of the library that reads it last."""
    if re.search(r"\(\?<?[=!]", pattern):
        return "look-around, including look-ahead and look-behind, is not supported"
    if re.search(r"\\[1-9]", pattern):
        return "backreferences are not supported"
    try:
        re.compile(pattern)  # it is parsed, and never matched
    except (RecursionError, OverflowError):
        return "exceeds the size limit"
    except re.error as error:
        texts = {
            "missing )": "unclosed group",
            "unterminated subpattern": "unclosed group",
            "unbalanced parenthesis": "unopened group",
            "unterminated character set": "unclosed character class",
            "nothing to repeat": "repetition operator missing expression",
            "min repeat greater than max repeat": "invalid repetition count range, the start must be <= the end",
            "multiple repeat": "repetition operator missing expression",
        }
        message = next((text for start, text in texts.items() if error.msg.startswith(start)), error.msg)
        return message.replace("missing ), ", "")
    return None


def _check_grammar(grammar: str) -> None:
    lines = [re.sub(r"(#|//).*", "", line).strip() for line in grammar.split("\n")]
    if not any("::=" in line for line in lines):
        _check_lark([line for line in lines if line])
        return
    matches = (re.match(r"([\w-]+)\s*::=(.*)", line.lstrip()) for line in grammar.split("\n"))
    rules: dict[str, str] = {rule[1]: rule[2] for rule in matches if rule}
    if not all("::=" in line or line.startswith("|") for line in lines if line):
        raise api_error("gbnf", text=_unexpected_text(lines))
    for body in rules.values():
        if not body.strip():
            raise api_error("engine")
        for name in re.findall(r"(?<![\w-])[A-Za-z_][\w-]*", re.sub(r'"(?:[^"\\]|\\.)*"?|\[[^\]]*\]?', "", body)):
            if name not in rules:
                raise api_error("gbnf", text=f"Rule '{name}' not found")
    if "root" not in rules:
        raise api_error("gbnf", text="No 'root' rule found")


def _check_lark(lines: list[str]) -> None:
    matches = (re.match(r"[?!]?(\w+)(?:\.-?\d+)?\s*:(.*)$", line) for line in lines)
    rules: dict[str, str] = {rule[1]: rule[2] for rule in matches if rule}
    if not rules:
        raise api_error("gbnf", text=_unexpected_text(lines))
    for body in rules.values():
        plain = re.sub(r'"(?:[^"\\]|\\.)*"?|/(?:[^/\\]|\\.)+/?', "", body)
        for name in re.findall(r"[A-Za-z_]\w*", plain):
            if name not in rules:
                raise _grammar_error(f'at 1(8): unknown name: "{name}"\n   1 | {lines[0]}\n              ^')
    if "start" not in rules:
        raise _grammar_error("no start rule found")


def _unexpected_text(lines: list[str]) -> str:
    """Return the text of the error in a grammar whose first line is no rule."""
    word = re.match(r"[\w-]+|.?", lines[0] if lines else "")
    first = word[0] if word else ""
    return f"Expected ::= at line 1, '{first}' ^ '{lines[0][len(first) :] if lines else ''}'"
