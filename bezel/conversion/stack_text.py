"""Text of a stack file with comments: where each setting comes from, and what could not be converted. Pure."""

from __future__ import annotations

import json
import re
import textwrap
from typing import TYPE_CHECKING, Any

from bezel.planner.base.problems import NAMESPACE
from bezel_base.text.printable import encodable, printable
from bezel_base.text.redaction import redact, redact_forms

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from bezel.conversion.converted import Converted
    from bezel.conversion.inputs.found_server import Remark

_WIDTH = 110
_PLAIN = re.compile(r"[A-Za-z_/][A-Za-z0-9_./+-]*")
# Words that a reader of YAML takes for something else than text.
_WORDS = frozenset(["true", "false", "yes", "no", "on", "off", "null", "y", "n", "nan", "inf"])
_TITLES = (
    ("not converted", "What the stack file does not say:"),
    ("assumed", "What was assumed, as the input does not say it:"),
    ("changes", "What changes once it is deployed:"),
)
_COMMENTS = {
    "service_name": "the service that is adopted",
    "cost": "what it costs now is the limit",
    "public": "anyone on the internet may call it, at your cost",
    "served-model-name": "the name that callers use",
}
_SWITCHED_OFF = "was off: remove the line to have it"
_LABELS = ("owner", "expires-at")


def stack_text(converted: Converted, *, schema: str = "") -> str:
    """The text of the stack file.

    Args:
        converted: The conversion.
        schema: Path of the schema of stack files, from the file's folder; "" for none.
    """
    name = f" ({converted.server.name})" if converted.server.name else ""
    lines = [f"# yaml-language-server: $schema={schema}"] if schema else []
    lines += _comment(f"Converted from: {converted.server.form}{name}.")
    for kind, title in _TITLES:
        if remarks := [each for each in converted.remarks if each.kind == kind]:
            lines += ["#", f"# {title}", *_items(remarks)]
    lines.append("config:")
    if converted.project:
        lines.append(f"  gcp:project: {_scalar(converted.project)}")
    for key, value in converted.settings.items():
        lines += _setting(key, value, "  ", f"{NAMESPACE}:{key}")
    missing = [name for name in _LABELS if name not in converted.settings.get("labels", {})]
    if missing:
        lines += [
            f"  # The policy packs ask for bezel:labels: {', '.join(missing)}, e.g. owner: chat, expires-at: never."
        ]
    # Values under the name of a secret are ids of secrets here: only what has the form of a credential is taken out.
    return redact_forms(encodable("\n".join(lines) + "\n"))


def _items(remarks: Iterable[Remark]) -> Iterator[str]:
    for line in dict.fromkeys(each.line() for each in remarks):
        first, *others = _wrap(line, _WIDTH - 4) or [""]
        yield f"# - {first}"
        yield from (f"#   {other}" for other in others)


def _comment(text: str) -> list[str]:
    return [f"# {line}" for line in _wrap(text, _WIDTH - 2)]


def _wrap(text: str, width: int) -> list[str]:
    plain = " ".join(printable(redact(text)).split())
    return textwrap.wrap(plain, width, break_long_words=False, break_on_hyphens=False)


def _setting(key: str, value: Any, indent: str, shown: str) -> Iterator[str]:
    comment = _COMMENTS.get(key, "")
    if isinstance(value, dict) and value:
        yield f"{indent}{shown}:{f'  # {comment}' if comment else ''}"
        for name, item in value.items():
            yield from _setting(str(name), item, f"{indent}  ", _scalar(str(name)))
        return
    if value is None:
        comment = _SWITCHED_OFF
    yield f"{indent}{shown}: {_flow(value)}{f'  # {comment}' if comment else ''}"


def _flow(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_flow, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_scalar(str(key))}: {_flow(item)}' for key, item in value.items())}}}"
    return _scalar(value)


def _scalar(value: object) -> str:
    if isinstance(value, str):
        if _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
            return value
        # YAML's double-quoted text has JSON's escapes.
        return json.dumps(value)
    return json.dumps(value)
