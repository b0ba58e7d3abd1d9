"""Detect the format of a result file and read it into a `ResultSource`, or say why it cannot be read.

The format is recognised by the content, never by the name. Leaves each format to its reader.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bezel_base.errors import Problem, UserError
from bezel_bench.audit.labels import machine_in, other_family, shape_in
from bezel_bench.audit.machines import describes, other_machine
from bezel_bench.audit.readers.claims import is_claims, read_claims
from bezel_bench.audit.readers.grid import read_grid
from bezel_bench.audit.readers.reports import is_report, read_report
from bezel_bench.audit.readers.result import is_result, read_result
from bezel_bench.audit.readers.serving import is_serving, read_serving
from bezel_bench.audit.readers.yaml_text import is_yaml, yaml_documents
from bezel_bench.audit.table import ResultSource

LARGEST_BYTES = 128 * 1024 * 1024
KNOWN = (
    "a CSV grid (context_tokens, users, value, unit, success_pct, status), claims ({claims: [...]}), the JSON of "
    "`vllm bench serve` or sglang's bench_serving (one, or one a line), of guidellm, aiperf, genai-perf or llmperf, "
    "the JSON or YAML of inference-perf, the YAML of a benchmark report of llm-d, or a result of `bezel bench`"
)
_READERS: tuple[tuple[Callable[[Any], bool], Callable[[Any, str, str], ResultSource]], ...] = (
    (is_result, read_result),
    (is_claims, read_claims),
    (is_report, read_report),
    (is_serving, read_serving),
)


class UnreadableError(UserError):
    """A file cannot be read as results; the text names it and the formats that can be read."""

    def __init__(self, item: str, reason: str, repair: str = f"name a file of a known format: {KNOWN}.") -> None:
        super().__init__(Problem(item, None, f"the file was not audited: {reason}.", repair))


def read(path: Path, item: str, *, machine: str = "", model: str = "") -> ResultSource:
    """Return the contents of a file.

    Args:
        path: of the file; its name without the suffix serves as a label.
        item: the file's name in findings.
        machine: the machine it was measured on, where neither content nor name state it.
        model: the served model, where neither content nor name state it.

    Raises:
        UnreadableError: it is missing, too large, broken, or of no known format.
    """
    text, label = _text(path, item), path.stem
    named = other_machine(label)
    label += f" {machine}" if not machine_in(label) and (named is None or describes(machine, named)) else ""
    family = other_family(path.stem)
    label += f" {model}" if not shape_in(label) and (family is None or family in model.lower()) else ""
    start = text.lstrip()
    try:
        if start[:1] in ("{", "[") or is_yaml(start):
            document = _json(start) if start[:1] in ("{", "[") else yaml_documents(start)
            for fits, reader in _READERS:
                if fits(document):
                    return reader(document, item, label)
            # Nothing of a file that is no result is repeated: the name may come from an agent.
            kind = "JSON" if start[:1] in ("{", "[") else "YAML"
            raise UnreadableError(item, f"the {kind} has no known format")
        return read_grid(text, item, label)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error).rstrip(".")
        if not isinstance(error, ValueError | RecursionError):
            reason = f"a field has a value that its format does not allow ({error!r})"
        raise UnreadableError(item, reason) from None


def _text(path: Path, item: str) -> str:
    try:
        size = path.stat().st_size
        if size > LARGEST_BYTES:
            raise UnreadableError(
                item,
                f"it has {size:,} bytes, the limit is {LARGEST_BYTES:,}",
                "leave the single requests out (vllm bench serve without --save-detailed), or audit the summary.",
            )
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise UnreadableError(item, error.strerror or str(error), "name a file of results.") from None
    except UnicodeDecodeError:
        raise UnreadableError(item, "it is not a text in UTF-8") from None
    if not text.strip():
        raise UnreadableError(item, "it is empty")
    return text


def _json(text: str) -> Any:
    """Parse one document, or a list of documents, one a line."""
    documents, decoder, at = [], json.JSONDecoder(), 0
    while at < len(text):
        try:
            document, at = decoder.raw_decode(text, at)
        except json.JSONDecodeError as error:
            position = f"line {error.lineno}, column {error.colno}"
            raise ValueError(f"the JSON is broken at {position} ({error.msg}); it may be cut off") from None
        documents.append(document)
        while at < len(text) and text[at].isspace():
            at += 1
    return documents[0] if len(documents) == 1 else documents
