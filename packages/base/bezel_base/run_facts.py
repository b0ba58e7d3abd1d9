"""Facts that a program tells the run that started it: texts by their kind, in a file that the run names and reads.

For facts that hold for this run alone, such as the use of a quota: an output of the stack would be saved and differ at
each preview. The log repeats them for people. A program that no such run has started tells nothing.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, get_args

from bezel_base.atomic_write import write_whole
from bezel_base.json_documents import read_json

VARIABLE = "BEZEL_RUN_FACTS"
"""Names the file of the run to its program."""
FactKind = Literal["quota_use", "quota_warning", "rollback"]
Facts = Mapping[FactKind, tuple[str, ...]]
_MOST_BYTES = 1 << 20


def tell_fact(kind: FactKind, text: str, environment: Mapping[str, str] = os.environ) -> None:
    """Add a text to the facts of the run.

    Args:
        kind: what the text is about.
        text: as a person may read it, without secrets: the engine does not mask it.
        environment: the program's variables.

    Raises:
        OSError: the file cannot be written.
    """
    if not (name := environment.get(VARIABLE)):
        return
    file = Path(name)
    if not file.parent.is_dir():
        return  # the run that would read them was killed
    facts = read_facts(file)
    texts = {**facts, kind: (*facts.get(kind, ()), text)}
    write_whole(file, json.dumps(texts), mode=0o600, durable=False)


def read_facts(file: Path) -> Facts:
    """The facts of a run by their kind; none where its program wrote none, or the file is of another form."""
    try:
        if file.stat().st_size > _MOST_BYTES:
            return {}
        content: Any = read_json(file.read_bytes())
    except (OSError, ValueError):
        return {}
    by_kind = content if isinstance(content, dict) else {}
    return {kind: _texts(by_kind[kind]) for kind in get_args(FactKind) if kind in by_kind}


def _texts(value: object) -> tuple[str, ...]:
    return tuple(text for text in value if isinstance(text, str)) if isinstance(value, list) else ()
