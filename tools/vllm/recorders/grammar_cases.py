"""Constraints of answers, for the record of what vLLM's libraries say of them: each kind, right and wrong.

Plain lists and their combinations, without a library: the recorder runs beside a real vLLM.
"""

from __future__ import annotations

import itertools
import json
import random
from typing import Any

SEED = 20261129
# Every keyword of JSON Schema, drafts 7 and 2020-12, with values that its specification allows and ones it does not.
KEYWORDS: dict[str, tuple[list[Any], list[Any]]] = {
    "$id": (["https://example.com/a"], [5]),
    "$schema": (["http://json-schema.org/draft-07/schema#"], [[]]),
    "$ref": (["#", "#/$defs/name", "#/definitions/name", "https://example.com/b"], ["#/$defs/none", 5, None]),
    "$anchor": (["here"], [5]),
    "$dynamicRef": (["#here"], [{}]),
    "$dynamicAnchor": (["here"], [None]),
    "$vocabulary": ([{"https://example.com/v": True}], ["a"]),
    "$comment": (["a"], [5]),
    "$defs": ([{"name": {"type": "string"}}], [[], {"name": 5}]),
    "definitions": ([{"name": {"type": "integer"}}], ["a"]),
    "type": (["string", ["string", "null"], "integer"], ["text", 5, ["string", "text"], [], [5], None]),
    "enum": ([["a", 1, None], [{"a": 1}], [True]], [[], "a", {}]),
    "const": ([None, {"a": [1]}, "a", 2.5], []),
    "multipleOf": ([3, 0.5], [0, -1, "a"]),
    "maximum": ([5, 2.5, -3], ["a", None, []]),
    "exclusiveMaximum": ([5, 2.5], [True, "a"]),
    "minimum": ([0, -2.5], ["a", {}]),
    "exclusiveMinimum": ([0], [False, []]),
    "maxLength": ([5, 0], [-1, 2.5, "a"]),
    "minLength": ([0, 5], [-1, 2.5, None]),
    "pattern": (["^[a-z]+$", "\\d{3}", "(a|b)*"], ["(", "[z-a]", 5, "(?=a)b", "a{2,1}", "\\p{L}+"]),
    "items": ([{"type": "string"}, True, False], [[{"type": "string"}], 5]),
    "additionalItems": ([False, {"type": "string"}], [5]),
    "prefixItems": ([[{"type": "string"}, {"type": "integer"}]], [{}, [5], []]),
    "unevaluatedItems": ([False, {"type": "string"}], [5]),
    "maxItems": ([3, 0], [-1, "a", 2.5]),
    "minItems": ([1], [-1, "a"]),
    "uniqueItems": ([True, False], ["a"]),
    "contains": ([{"type": "string"}], [5]),
    "minContains": ([1], ["a"]),
    "maxContains": ([2], [-1]),
    "maxProperties": ([2, 0], [-1, "a"]),
    "minProperties": ([0, 1], [-1, 2.5]),
    "required": ([["a"], []], ["a", [5]]),
    "properties": ([{"a": {"type": "string"}, "b": {}}, {}], [[], {"a": 5}, {"a": {"type": "text"}}, {"a": False}]),
    "patternProperties": ([{"^a": {"type": "string"}}], [{"(": {}}, [], {"^a": 5}]),
    "additionalProperties": ([False, True, {"type": "string"}], [5, "a"]),
    "unevaluatedProperties": ([False, {"type": "string"}], [5]),
    "dependencies": ([{"a": ["b"]}, {"a": {"required": ["b"]}}], [5]),
    "dependentRequired": ([{"a": ["b"]}], ["a"]),
    "dependentSchemas": ([{"a": {"required": ["b"]}}], [[]]),
    "propertyNames": ([{"pattern": "^[a-z]+$"}, {"maxLength": 3}], [{"type": "integer"}, 5]),
    "if": ([{"type": "string"}], [5]),
    "then": ([{"minLength": 1}], [5]),
    "else": ([False], ["a"]),
    "allOf": ([[{"type": "string"}], [{"minLength": 1}, {"maxLength": 3}]], [[], {}, [5]]),
    "anyOf": ([[{"type": "string"}, {"type": "null"}], [{"const": 1}, {"enum": ["a"]}]], [[], "a", [5]]),
    "oneOf": ([[{"type": "string"}, {"type": "integer"}], [{"minimum": 1}, {"maximum": 5}]], [[], {}, [False]]),
    "not": ([{"type": "string"}, {}], [5]),
    "format": (
        [
            *(
                "date-time",
                "date",
                "time",
                "duration",
                "email",
                "idn-email",
                "hostname",
                "idn-hostname",
                "ipv4",
                "ipv6",
            ),
            *("uri", "uri-reference", "iri", "iri-reference", "uuid", "uri-template", "json-pointer", "regex"),
        ],
        ["nosuch", 5, ["date"]],
    ),
    "contentMediaType": (["application/json"], [5]),
    "contentEncoding": (["base64"], []),
    "contentSchema": ([{"type": "object"}], []),
    "title": (["A"], [5]),
    "description": (["a"], [None]),
    "default": ([1, None, {}], []),
    "deprecated": ([True], ["a"]),
    "readOnly": ([True], []),
    "writeOnly": ([False], []),
    "examples": ([[1]], ["a"]),
    "nullable": ([True], ["a"]),
}
_TYPES = {
    **dict.fromkeys(
        ("multipleOf", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum"), ("integer", "number")
    ),
    **dict.fromkeys(
        ("maxLength", "minLength", "pattern", "format", "contentEncoding", "contentMediaType"), ("string",)
    ),
    **dict.fromkeys(
        ("items", "additionalItems", "prefixItems", "unevaluatedItems", "maxItems", "minItems"), ("array",)
    ),
    **dict.fromkeys(("uniqueItems", "contains", "minContains", "maxContains"), ("array",)),
    **dict.fromkeys(("maxProperties", "minProperties", "required", "properties", "patternProperties"), ("object",)),
    **dict.fromkeys(("additionalProperties", "unevaluatedProperties", "propertyNames"), ("object",)),
    **dict.fromkeys(("dependencies", "dependentRequired", "dependentSchemas"), ("object",)),
}
SCHEMAS: list[Any] = [
    {"type": "integer", "minimum": 5, "maximum": 1},
    {"type": "integer", "exclusiveMinimum": 1, "exclusiveMaximum": 2},
    {"type": "number", "minimum": 1, "exclusiveMaximum": 1},
    {"type": "integer", "maximum": 2**63},
    {"type": "integer", "minimum": 1.5},
    {"type": "string", "minLength": 5, "maxLength": 2},
    {"type": "string", "pattern": "^a", "maxLength": 3},
    {"type": "string", "format": "date", "minLength": 3},
    {"type": "array", "minItems": 3, "maxItems": 1},
    {"type": "array", "prefixItems": [{"type": "string"}], "items": False, "minItems": 2},
    {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a", "b"], "additionalProperties": False},
    {"type": "object", "properties": {"a": {}}, "propertyNames": {"pattern": "^a"}},
    {"type": "object", "patternProperties": {"^a": {}, "^b": {}}},
    {"type": "object", "minProperties": 2, "maxProperties": 1},
    {"$ref": "#/$defs/node", "$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}}},
    {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
    {"type": "object", "properties": {"a": {"anyOf": [{"$ref": "#/$defs/x"}, {"type": "null"}]}}, "$defs": {"x": {}}},
    {"allOf": [{"$ref": "#/$defs/x"}, {"type": "object"}], "$defs": {"x": {"properties": {"a": {"type": "string"}}}}},
    {"type": "object", "properties": {"kind": {"const": "a"}}, "required": ["kind"], "oneOf": [{"required": ["b"]}]},
    {"anyOf": [{"type": "string", "pattern": "a(?!b)"}, {"type": "integer"}]},
    {
        "type": ["object", "null"],
        "properties": {"a": {"type": "array", "items": {"type": "number", "multipleOf": 0.1}}},
    },
    {"if": {"properties": {"a": {"const": 1}}}, "then": {"required": ["b"]}, "else": {"required": ["c"]}},
    {"type": "string", "enum": ["a", "b"], "pattern": "("},
    {"const": "\ud800"},
    {"type": "array", "items": {"type": "array", "items": {"type": "text"}}},
    {"type": "object", "properties": {str(number): {"type": "string"} for number in range(60)}},
    {"type": "string", "pattern": "[" + "a" * 300},
    {},
    {"x-own": {"type": "text"}},
    True,
    False,
    5,
    [],
    "text",
    None,
]
TEXTS = ["{", '{"type": "object"}', '{"type": "text"}', "5", "true", "null", '"a"', "[]", "not json", '{"a": NaN}', " "]
EXPRESSIONS = [
    *(
        "a",
        "[a-z]+",
        "\\d{3}-\\d{4}",
        "(a|b)*c",
        "^start$",
        "a?b+c*",
        ".{1,5}",
        "(?:ab)+",
        "[^\\s]+",
        "\\w+@\\w+\\.com",
    ),
    *(
        "(",
        ")",
        "[",
        "[]",
        "[^]",
        "*",
        "+a",
        "a**",
        "a{2,1}",
        "a{",
        "{",
        "a{1,2",
        "a{,3}",
        "\\",
        "[z-a]",
        "[a",
        "|",
        "()",
    ),
    *("(?=a)b", "(?!a)b", "(?<=a)b", "(?<!a)b", "(a)\\1", "\\k<n>", "(?P<n>a)", "(?<n>a)", "(?i)a", "(?x)a b", "(?>a)"),
    *(
        "\\bword\\b",
        "\\p{L}+",
        "\\P{L}",
        "\\x41",
        "\\u0041",
        "\\u{41}",
        "\\cA",
        "\\0",
        "\\q",
        "\\e",
        "\\h",
        "\\A",
        "\\z",
    ),
    *(
        "[[:alpha:]]+",
        "[\\d-z]",
        "[\\w-]+",
        "[a-z&&[^b]]",
        "a??",
        "a+?",
        "a*+",
        "a{2}{3}",
        "(a+)+b",
        "(a|aa)+$",
        "a|",
        "|a",
    ),
    *(
        "é+",
        "[à-ü]",
        "😀",
        "\\n\\t\\r",
        "\n",
        "a\\/b",
        "a/b",
        '"',
        "'",
        "",
        " ",
        "a{1000}",
        "(a{100}){100}",
        "a{99999999999}",
    ),
    *(
        "(?#c)a",
        "[]a]",
        "[^a-z0-9_]",
        "\\.",
        "a.b",
        "(((a)))",
        "((a)",
        "(a))",
        "a$b",
        "a^b",
        "^^a",
        "a$$",
        "[-a]",
        "[a-]",
    ),
    *(
        "(?:a|b|c){2,4}?",
        "\\s\\S",
        "\\D\\W",
        "[\\s\\S]*",
        "a(?:b(?:c))",
        "(?a)",
        "[\\]]",
        "[\\x5a-\\x41]",
        "\\Qa\\E",
        "\\R",
    ),
]
CHOICES = [["a", "b"], ["a"], [""], ["a", "a"], ['"', "\\", "\n"], ["é"], ["\x00"], ["a" * 3000], ["\ud800"]]
EBNF = [
    *('root ::= "a"', 'root ::= "a" | "b"', "root ::= [a-z]+", 'root ::= a "b"\na ::= "c"', 'root ::= ("a" "b")* "c"?'),
    *(
        'root ::= "a"{2,3}',
        'root ::= "a"{2}',
        'root ::= "a"{3,1}',
        'root ::= "a"{,3}',
        'root ::= "a"{2,}',
        "root ::= (((",
        "root",
    ),
    *(
        "root ::=",
        "root ::= a",
        'main ::= "a"',
        'root ::= "a',
        "root ::= 'a'",
        "root ::= [a-z",
        "root ::= [z-a]",
        "root ::= []",
    ),
    *(
        'root ::= "a"\nroot ::= "b"',
        '# comment\nroot ::= "a" # more',
        'root ::= "\\n\\t\\"\\\\"',
        'root ::= "\\q"',
        "root ::= [^\\n]",
    ),
    *(
        'root ::= "\\u00e9"',
        'root ::= "é"',
        "root ::= [\\d]",
        'root ::= root "a" | "b"',
        'root ::= ""',
        'root ::= () | "a"',
    ),
    *(
        'root ::= "a" | ',
        'root ::= | "a"',
        'root ::= "a"**',
        'root ::= "a" ::= "b"',
        'root ::= "a" b ::= "c"',
        '::= "a"',
    ),
    *('root ::= "a"\n  | "b"', "root ::= expr\nexpr ::= term (('+' | '-') term)*", "root ::= digit+\ndigit ::= [0-9]"),
    *(
        'root ::= obj\nobj ::= "{" pair ("," pair)* "}"\npair ::= str ":" str\nstr ::= "\\"" [^"]* "\\""',
        'root ::= "a" (= "b")',
    ),
    *(
        "root ::= %",
        'root ::= "a" ;',
        'root = "a"\nb ::= "c"',
        'root-x ::= "a"\nroot ::= root-x',
        'root.x ::= "a"\nroot ::= root.x',
    ),
    *(
        'root ::= TagDispatch(("<a>", b))\nb ::= "c"',
        "root ::= Token(5)",
        'root ::= Regex("a+")',
        'root ::= Regex("(")',
    ),
    *('root ::= "a" /* c */', 'root ::= "a" // c', 'root ::= "a", "b"', "root ::= ~[a]", "root ::= .", 'root ::= !"a"'),
    *(
        "root ::= [a-zA-Z_] [a-zA-Z0-9_]*",
        'root ::= "\\x41"',
        'root ::= "\\xZZ"',
        "root ::= [\\]]",
        "root ::= [-a]",
        "root ::= [^]",
    ),
    *(
        'root ::= "yes" | "no" | "maybe"',
        'root   ::=   "a"\n\n\n',
        '\n\nroot ::= "a"',
        'root ::= "a"\nunused ::= nowhere',
        "root ::= 5",
    ),
]
LARK = [
    *(
        'start: "a"',
        'start: A\nA: "b"',
        "start: /[a-z]+/",
        'start: a b\na: "c"\nb: "d"',
        'start: "a" | "b"',
        'start: ("a" "b")*',
    ),
    *(
        "start: WORD\n%import common.WORD",
        "start: INT\n%import common.INT\n%ignore /\\s+/",
        "%import common.NOSUCH\nstart: NOSUCH",
    ),
    *(
        'start: "a',
        "start: nowhere",
        'a: "b"',
        "start",
        "start:",
        ": a",
        'start: "a" |',
        "start: (",
        "start: )",
        "start: A\nA: A",
    ),
    *(
        "start: A\nA: start",
        'start: "a"\nstart: "b"',
        'START: "a"',
        'start: "a"i',
        "start: /a/i",
        "start: /(/",
        "start: /(?=a)b/",
    ),
    *(
        'start: "a"~2',
        'start: "a"~2..3',
        'start: "a"~3..2',
        'start: "a"{2}',
        'start: "a"{2,3}',
        'start: "a"?',
        'start: ["a"]',
    ),
    *(
        "start: 'a'",
        'start: "a".."z"',
        'start: "z".."a"',
        '?start: "a" -> named',
        '!start: "a"',
        'start.2: "a"',
        "start: <|eos|>",
    ),
    *(
        'start: %json {"type": "string"}',
        'start: %json {"type": "text"}',
        "start: %json {",
        "start: <[5]>",
        "start: @other",
    ),
    *(
        'start: "a" // c\n# d',
        '%ignore WS\nstart: "a"',
        "%declare X\nstart: X",
        "start[lazy]: /a*/",
        'start[max_tokens=5]: "a"',
    ),
    *(
        'start: a{"b"}\na{x}: x',
        'start: "a" & "b"',
        'start: ~"a"',
        'start: "\\n"',
        'start: "\\q"',
        'start: /\\d+/ "x" /[^\\n]*/',
    ),
    *(
        'start: sum\nsum: NUM ("+" NUM)*\nNUM: /\\d+/',
        'start: pair ("," pair)*\npair: K "=" V\nK: /[a-z]+/\nV: /[0-9]+/',
    ),
    *(
        "plain keywords",
        "{}",
        "<a>",
        "",
        "   ",
        'start: "a"\n\n\n',
        'start : "a"',
        'start:"a"|"b"\n  |"c"',
        "start: /a/x",
        "start: //",
    ),
]


def _tag(form: Any) -> dict[str, Any]:
    return {"type": "structural_tag", "format": form}


def _legacy(structures: Any, triggers: Any) -> dict[str, Any]:
    return {"type": "structural_tag", "structures": structures, "triggers": triggers}


_OBJECT = {"type": "object", "properties": {"a": {"type": "string"}}}
_WITH = {"type": "json_schema", "json_schema": _OBJECT}
_ONE = {"begin": "<f=a>", "content": _WITH, "end": "</f>"}
TAGS: list[Any] = [
    _legacy([{"begin": "<f=a>", "schema": _OBJECT, "end": "</f>"}], ["<f="]),
    _legacy([{"begin": "<f=a>", "schema": _OBJECT, "end": "</f>"}], ["<g="]),
    _legacy([{"begin": "<f=a>", "schema": _OBJECT, "end": "</f>"}], ["<f=", "<"]),
    _legacy([{"begin": "<f=a>", "schema": {"type": "text"}, "end": "</f>"}], ["<f="]),
    _legacy([{"begin": "<f=a>", "end": "</f>"}], ["<f="]),
    _legacy([], ["<f="]),
    _legacy([{"begin": "<f=a>", "schema": _OBJECT, "end": "</f>"}], []),
    _legacy([{"begin": 5, "schema": _OBJECT, "end": "</f>"}], ["<f="]),
    _legacy([{"begin": "<f=a>", "schema": {}, "end": ""}], ["<f="]),
    {"type": "structural_tag"},
    {"format": _WITH},
    {"type": "other", "format": _WITH},
    _tag(None),
    _tag(_WITH),
    *(
        _tag({"type": kind})
        for kind in ("any_text", "any_tokens", "exclude_token", "tag", "or", "nosuch", "const_string")
    ),
    _tag({"type": "const_string", "value": "a"}),
    _tag({"type": "json_schema", "json_schema": True}),
    _tag({"type": "json_schema", "json_schema": {"type": "string", "pattern": "("}}),
    _tag({"type": "json_schema", "json_schema": _OBJECT, "style": "nosuch"}),
    _tag({"type": "qwen_xml_parameter", "json_schema": _OBJECT}),
    _tag({"type": "grammar", "grammar": 'root ::= "a"'}),
    _tag({"type": "grammar", "grammar": "root ::= ("}),
    _tag({"type": "grammar", "grammar": 'start: "a"'}),
    _tag({"type": "regex", "pattern": "a+"}),
    _tag({"type": "regex", "pattern": "(?=a)"}),
    _tag({"type": "regex", "pattern": ""}),
    _tag({"type": "sequence", "elements": [{"type": "const_string", "value": "a"}, _WITH]}),
    _tag({"type": "sequence", "elements": []}),
    _tag({"type": "or", "elements": [_WITH, {"type": "regex", "pattern": "a"}]}),
    _tag({"type": "tag", **_ONE}),
    _tag(_ONE),
    _tag({"type": "tag", "begin": "<a>", "content": {"type": "any_text"}, "end": ""}),
    _tag({"type": "tag", "begin": "<a>", "content": {"type": "any_text"}, "end": ["", "</a>"]}),
    _tag({"type": "tag", "begin": "<a>", "content": {"type": "any_text"}}),
    _tag({"type": "triggered_tags", "triggers": ["<f="], "tags": [_ONE]}),
    _tag({"type": "triggered_tags", "triggers": ["<f=", "<f"], "tags": [_ONE]}),
    _tag({"type": "triggered_tags", "triggers": ["<g"], "tags": [_ONE]}),
    _tag({"type": "triggered_tags", "triggers": [], "tags": [_ONE]}),
    _tag({"type": "triggered_tags", "triggers": ["<f="], "tags": [_ONE], "at_least_one": "yes"}),
    _tag(
        {"type": "triggered_tags", "triggers": ["<f="], "tags": [_ONE], "at_least_one": True, "stop_after_first": True}
    ),
    _tag({"type": "tags_with_separator", "tags": [_ONE], "separator": ","}),
    _tag({"type": "tags_with_separator", "tags": [_ONE]}),
    _tag({"type": "optional", "content": _WITH}),
    _tag({"type": "star", "content": {"type": "const_string", "value": "a"}}),
    _tag({"type": "plus"}),
    _tag({"type": "repeat", "min": 1, "max": 3, "content": _WITH}),
    _tag({"type": "repeat", "min": 3, "max": 1, "content": _WITH}),
    _tag({"type": "repeat", "min": 0, "max": -1, "content": _WITH}),
    _tag({"type": "token", "token": 5}),
    _tag({"type": "token", "token": "<eos>"}),
    _tag({"type": "any_text", "excludes": ["<a>"], "max_tokens": 5}),
    _tag({"type": "any_text", "max_tokens": -1}),
    _tag({"type": "dispatch", "rules": [["<a>", _WITH]]}),
    _tag({"type": "dispatch", "rules": []}),
]


def cases() -> list[tuple[str, Any]]:
    """Return each kind of constraint with a value, in an order that does not change."""
    listed: list[tuple[str, Any]] = [("json", schema) for schema in _schemas()]
    listed += [("json", text) for text in TEXTS]
    listed += [("regex", pattern) for pattern in EXPRESSIONS]
    listed += [("choice", choice) for choice in CHOICES]
    listed += [("grammar", grammar) for grammar in [*EBNF, *LARK] if grammar.strip()]
    listed += [("structural_tag", json.dumps(tag)) for tag in TAGS]
    return [*listed, ("structural_tag", "{"), ("structural_tag", "[]"), ("json_object", True)]


def _schemas() -> list[Any]:
    listed: list[Any] = []
    for word, (right, wrong) in KEYWORDS.items():
        for value, kind in itertools.product([*right, *wrong], _TYPES.get(word, ("",))):
            listed.append({"type": kind, word: value} if kind else {word: value})
    random_of = random.Random(SEED)  # noqa: S311 - the same cases each time
    keywords = sorted(KEYWORDS)
    for _ in range(150):
        chosen = {
            word: random_of.choice(KEYWORDS[word][0]) for word in random_of.sample(keywords, random_of.randint(2, 5))
        }
        listed.append({"type": "object", "properties": {"a": chosen, "b": {"type": "array", "items": chosen}}})
    return listed + [schema for schema in SCHEMAS if isinstance(schema, dict)]


def held_back(count: int) -> set[int]:
    """Return the third of the cases that the rules were not written with, by their places."""
    return set(random.Random(SEED).sample(range(count), count // 3))  # noqa: S311 - the same cases each time
