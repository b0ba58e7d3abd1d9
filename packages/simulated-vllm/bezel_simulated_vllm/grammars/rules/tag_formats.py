"""Formats of xgrammar's structural tags: the fields of each type, and what they may hold.

Source: the behaviour of xgrammar 0.2.8 (`Grammar.from_structural_tag`, without a tokenizer).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeGuard

from bezel_simulated_vllm.grammars.verdicts import NotJudgedError, RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable

Format = dict[str, Any]
_STYLES = frozenset({
    *("json", "qwen_xml", "minimax_xml", "minimax_m3_xml", "deepseek_xml", "glm_xml", "cohere_xml", "kimi_k3_xml"),
    "deepseek_v4_1_xml",
})  # fmt: skip
_MOST_COUNT = 2**31 - 1
# The types that a format without one may have, in the order in which xgrammar tries them.
UNTYPED = (
    *("tag", "const_string", "json_schema", "any_text", "sequence", "or", "triggered_tags", "tags_with_separator"),
    *("optional", "plus", "star", "repeat", "dispatch", "token_dispatch"),
)
_UNLIMITED = {
    *("any_text", "triggered_tags", "token_triggered_tags", "dispatch", "token_dispatch", "any_tokens"),
    *("tags_with_separator", "star", "plus"),
}


def inner_formats(form: Format) -> list[Any]:
    """Return the formats within one, before they are read themselves."""
    kind = form["type"]
    if kind in ("sequence", "or"):
        return list(form["elements"])
    if kind in ("triggered_tags", "tags_with_separator", "token_triggered_tags"):
        return list(form["tags"])
    if kind in ("dispatch", "token_dispatch"):
        return [rule[1] for rule in form["rules"]]
    return [form["content"]] if kind in ("tag", "optional", "plus", "star", "repeat") else []


def is_unlimited(form: Format) -> bool:
    """Whether a format that has been read takes text without an end of its own."""
    kind, parts = form["type"], form["parts"]
    if kind in ("sequence", "or"):
        return any(is_unlimited(part) and not is_excluding(part) for part in parts)
    if kind == "optional":
        return is_unlimited(parts[0])
    if kind == "repeat":
        return bool(form["max"] == -1 or (form["max"] != 0 and is_unlimited(parts[0])))
    return kind in _UNLIMITED


def is_excluding(form: Format) -> bool:
    """Whether a format has texts or tokens that end it."""
    return bool(form.get("excludes") or form.get("exclude_tokens"))


def _need(condition: object, text: str) -> None:
    if not condition:
        raise RefusedError(text)


def _check_texts(form: Format, name: str, *, empty: bool = False) -> None:
    listed = form.get(name, [])
    _need(isinstance(listed, list), f"{name} must be an array")
    _need(all(isinstance(text, str) and (text or empty) for text in listed), f"{name} must be non-empty strings")


def _check_flags(form: Format, *names: str) -> None:
    for name in names:
        _need(isinstance(form.get(name, False), bool), f"{name} must be a boolean")


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_whole(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _check_budget(form: Format, *names: str) -> None:
    for name in names:
        value = form.get(name)
        whole = _is_number(value) and 0 <= value <= _MOST_COUNT and value == int(value)
        _need(value is None or whole, f"{name} must be a non-negative 32-bit integer or null")


def _check_token(value: Any) -> None:
    """Check a token: an id; a text is one of a tokenizer, which is not there at validation."""
    if isinstance(value, str):
        raise RefusedError("Token string requires a tokenizer")
    _need(_is_number(value) and 0 <= value <= _MOST_COUNT and value == int(value), "Token ID must be an integer")


def _check_tokens(form: Format, name: str) -> None:
    listed = form.get(name, [])
    _need(isinstance(listed, list), f"{name} must be an array")
    for token in listed:
        _check_token(token)


def _const_string(form: Format) -> None:
    _need(isinstance(form.get("value"), str), "ConstString format must have a value field with a string")


def _json_schema(form: Format) -> None:
    _need(isinstance(form.get("json_schema"), dict | bool), "JSON schema format must have a json_schema field")
    style = form.get("style", "json") if form["type"] == "json_schema" else "json"
    _need(not isinstance(style, str) or style in _STYLES, 'style must be "json"')
    _check_flags(form, "any_order")
    space = form.get("max_whitespace_cnt")
    _need(space is None or _is_whole(space), "max_whitespace_cnt must be an integer or null")
    _need(space is None or space > 0, "max_whitespace_cnt must be positive.")
    _check_texts(form, "excludes")
    if form.get("excludes") or (isinstance(style, str) and style != "json"):
        raise NotJudgedError("the conversion of a schema to another style")


def _any_text(form: Format) -> None:
    _check_budget(form, "max_tokens", "max_chars")
    _check_texts(form, "excludes", empty=True)


def _grammar(form: Format) -> None:
    _need(isinstance(form.get("grammar"), str) and form["grammar"], "Grammar format must have a grammar field")


def _regex(form: Format) -> None:
    _need(isinstance(form.get("pattern"), str) and form["pattern"], "Regex format must have a pattern field")


def _elements(form: Format) -> None:
    _need(isinstance(form.get("elements"), list) and form["elements"], "must have at least one element")


def _tag(form: Format) -> None:
    _need("begin" in form and "content" in form and "end" in form, "Tag format must have begin, content and end")
    for name in ("begin", "end"):
        value = form[name]
        if isinstance(value, dict):
            _need("token" in value, "TokenFormat must have a token field")
            _check_token(value["token"])
        elif name == "end" and isinstance(value, list):
            _need(value and all(isinstance(text, str) for text in value), "Tag format's end array cannot be empty")
        else:
            _need(isinstance(value, str), f"Tag format's {name} field must be a string")


def _tags(form: Format) -> None:
    _need(isinstance(form.get("tags"), list) and form["tags"], "tags must be non-empty")
    _check_flags(form, "at_least_one", "stop_after_first")


def _triggered_tags(form: Format) -> None:
    _need(isinstance(form.get("triggers"), list) and form["triggers"], "triggers must be non-empty")
    _check_texts(form, "triggers")
    _check_texts(form, "excludes")
    _tags(form)


def _tags_with_separator(form: Format) -> None:
    _tags(form)
    _need(isinstance(form.get("separator"), str), "separator field must be a string")


def _content(form: Format) -> None:
    _need("content" in form, "must have a content field")


def _repeat(form: Format) -> None:
    low, high = form.get("min"), form.get("max")
    if not (_is_whole(low) and _is_whole(high)):
        raise RefusedError("Repeat format must have a min and a max field")
    _need(low >= 0 and high >= -1 and low <= _MOST_COUNT and (high < 0 or low <= high), "Repeat min must be <= max")
    _content(form)


def _token(form: Format) -> None:
    _need("token" in form, "TokenFormat must have a token field")
    _check_token(form["token"])


def _exclude_token(form: Format) -> None:
    _check_tokens(form, "exclude_tokens")


def _any_tokens(form: Format) -> None:
    _check_tokens(form, "exclude_tokens")
    _check_budget(form, "max_tokens")


def _token_triggered_tags(form: Format) -> None:
    _need(form.get("trigger_tokens"), "trigger_tokens must be non-empty")
    _check_tokens(form, "trigger_tokens")
    _check_tokens(form, "exclude_tokens")
    _tags(form)
    for tag in form["tags"]:
        begin = tag.get("begin") if isinstance(tag, dict) else None
        if not isinstance(begin, dict):
            raise RefusedError("Tags in token_triggered_tags must have a token format begin, not a string")
        _need(form["trigger_tokens"].count(begin.get("token")) == 1, "Tag does not match any trigger")


def _rules(form: Format) -> list[Any]:
    rules = form.get("rules")
    _need(isinstance(rules, list) and rules, "format rules must be non-empty")
    _need(all(isinstance(rule, list) and len(rule) == 2 for rule in rules or ()), "pair must be a 2-element array")
    _check_flags(form, "loop")
    return rules or []


def _dispatch(form: Format) -> None:
    for rule in _rules(form):
        _need(isinstance(rule[0], str), "TagDispatch pair first element must be a string")
    _check_texts(form, "excludes")


def _token_dispatch(form: Format) -> None:
    for rule in _rules(form):
        _check_token(rule[0])
    _check_tokens(form, "exclude_tokens")


FORMATS: dict[str, Callable[[Format], None]] = {
    "const_string": _const_string,
    "json_schema": _json_schema,
    "qwen_xml_parameter": _json_schema,
    "any_text": _any_text,
    "grammar": _grammar,
    "regex": _regex,
    "sequence": _elements,
    "or": _elements,
    "tag": _tag,
    "triggered_tags": _triggered_tags,
    "tags_with_separator": _tags_with_separator,
    "optional": _content,
    "plus": _content,
    "star": _content,
    "repeat": _repeat,
    "token": _token,
    "exclude_token": _exclude_token,
    "any_tokens": _any_tokens,
    "token_triggered_tags": _token_triggered_tags,
    "dispatch": _dispatch,
    "token_dispatch": _token_dispatch,
}
