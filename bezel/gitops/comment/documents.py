"""Documents that the pipeline's commands wrote, read for a comment. Their texts are those of others, and only shown.

Owns where they are looked for and what they must have. A document of a kind that no comment shows is passed over in a
folder, and refused as a file.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bezel_base.errors import Problem, UserError
from bezel_base.json_documents import read_json
from bezel_base.text.printable import encodable_values

KINDS = ("preview", "rehearsal", "deployment")
_MAX_BYTES = 32 * 2**20

Document = Mapping[str, Any]


def read_documents(paths: Iterable[Path]) -> list[Document]:
    """All documents of files and of folders, one for each project, stack and kind: the last one holds.

    Raises:
        UserError: a file cannot be read, holds something else, or there is no document at all.
    """
    documents: dict[tuple[str, str, str], Document] = {}
    problems: list[Problem] = []
    sources = list(paths)
    for path in sources:
        files = sorted(path.glob("*.json")) if path.is_dir() else [path]
        for file in files:
            document = _read(file, in_folder=path.is_dir())
            if isinstance(document, Problem):
                problems.append(document)
            elif document is not None:
                documents[*name_of(document), str(document["kind"])] = document
    if problems:
        raise UserError(*problems)
    if not documents:
        listed = ", ".join(map(str, sources))
        consequence = "there is no report to comment on, so nothing was previewed or rehearsed."
        raise UserError(Problem("FILE", listed, consequence, "run `bezel ci preview STACK --out FILE` before."))
    return list(documents.values())


def _read(file: Path, *, in_folder: bool) -> Document | Problem | None:
    again = "run the command that writes it again, e.g. `bezel ci preview STACK --out FILE`."
    try:
        if file.stat().st_size > _MAX_BYTES:
            return Problem(str(file), None, f"it is larger than {_MAX_BYTES >> 20} MiB.", again)
        content = read_json(file.read_bytes())
    except OSError as error:
        return Problem(str(file), None, f"it cannot be read: {error.strerror}.", again)
    except ValueError:
        return Problem(str(file), None, "it is not JSON.", again)
    kind = content.get("kind") if isinstance(content, dict) else None
    if kind not in KINDS:
        if in_folder:
            return None
        return Problem(str(file), None, f"its kind is {kind!r}; a comment shows {', '.join(KINDS)}.", again)
    if not isinstance(content.get("stack"), str) or not isinstance(content.get("verdict"), str):
        return Problem(str(file), None, "it names no stack or no verdict.", again)
    return dict(encodable_values(content))


def name_of(document: Document) -> tuple[str, str]:
    """Project and stack of a document: stacks of two projects may have one name."""
    return str(document.get("project") or ""), str(document["stack"])


def texts(document: Mapping[str, Any], name: str) -> Sequence[str]:
    """A list of texts in a document; what is no text is left out."""
    value = document.get(name)
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def entries(document: Mapping[str, Any], name: str) -> Iterator[Mapping[str, Any]]:
    """A list of mappings in a document; what is none is left out."""
    value = document.get(name)
    yield from (item for item in value if isinstance(item, dict)) if isinstance(value, list) else ()


def mapping(document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A mapping in a document; empty where it is none."""
    value = document.get(name)
    return value if isinstance(value, dict) else {}
