"""YAML of results: recognised by its first line, bounded, and without objects of the program."""

import datetime as dt
import re
from typing import Any

import yaml

_LARGEST = 16 * 1024 * 1024
_FIRST = re.compile(r"(?:---|%YAML|[A-Za-z_][\w .-]*:(?:\s|$))")
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def is_yaml(text: str) -> bool:
    """Whether the first line that is no comment begins a YAML mapping or document."""
    lines = (line for line in text.splitlines() if line.strip() and not line.startswith("#"))
    return bool(_FIRST.match(next(lines, "")))


def yaml_documents(text: str) -> Any:
    """Return the document, or a list of several.

    Raises:
        ValueError: It is broken or too large; the text has the position.
    """
    if len(text) > _LARGEST:
        raise ValueError(f"the YAML has {len(text):,} characters, the limit is {_LARGEST:,}")
    try:
        documents = [_plain(document) for document in yaml.load_all(text, Loader=_Loader) if document is not None]
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise ValueError(f"the YAML is broken{where} ({error.problem}); it may be cut off") from None
    except yaml.YAMLError as error:
        raise ValueError(f"the YAML is broken ({str(error).splitlines()[0]})") from None
    return documents[0] if len(documents) == 1 else documents


def _plain(document: Any) -> Any:
    """Return a document with its dates as texts at the top level, as JSON has them."""
    if not isinstance(document, dict):
        return document
    dates = (dt.date, dt.datetime)
    return {str(name): str(value) if isinstance(value, dates) else value for name, value in document.items()}
