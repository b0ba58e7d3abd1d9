"""Reading of a model's description from a place: its small files, and the headers of its weights by ranges.

Owns the order, the bounds of what is read, and which files of weights vLLM loads (0.32.0:
model_executor/model_loader/default_loader.py, weight_utils.py). Leaves out why a folder is no model (`refusals`).
"""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from bezel.model_sources.description import Description
from bezel.model_sources.places import FolderPlace, HubPlace, ModelRefusedError
from bezel.model_sources.refusals import CONFIG, check_config, check_files, is_outside
from bezel.model_sources.tensor_headers import LENGTH_BYTES, HeaderError, header_end, read_header
from bezel.weights.layout import INDEX, missing_parts
from bezel_base.errors import Problem
from bezel_base.json_documents import check_depth
from bezel_catalog.architectures.pooling import POOLING_MODULES
from bezel_catalog.vllm.parser_families import added_tokens

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from bezel.model_sources.places import Place
    from bezel.model_sources.tensor_headers import Tensor

_LONGEST_FILE = 32 * 1024 * 1024
_LONGEST_INDEX = 64 * 1024 * 1024
MOST_BYTES = 512 * 1024 * 1024
"""Bytes that are read of one model at most: the headers of the largest models of the hub take a tenth of it."""
_AT_A_TIME = 8
_MOST_DIGITS = 100  # transformers writes a length without a limit as 1000000000000000019884624838656
_GENERATION = "generation_config.json"
_PROCESSORS = ("processor_config.json", "preprocessor_config.json")
_TOKENIZER_CONFIG = "tokenizer_config.json"
_MODULES = "modules.json"
_TEMPLATES = ("chat_template.jinja", "chat_template.json")
_FURTHER_TEMPLATES = "additional_chat_templates/"
_LONGEST_BEGINNING = 256 * 1024
_TOKENIZERS = ("tokenizer.json", "tokenizer.model", "tekken.json", "vocab.json", "vocab.txt", "tiktoken.model")
_AGAIN = "run the same command again; if it fails again, the place does not hold what it lists."
_OTHER_FORMAT = "consolidated"  # Mistral's own names of tensors; vLLM loads these only with load-format: mistral


class _Reader:
    """Parts of files of one place, and how many bytes they were."""

    def __init__(self, place: Place, files: Mapping[str, int]) -> None:
        self.place, self.files = place, files
        self.bytes = 0
        self._lock = threading.Lock()

    def part(self, file: str, begin: int, end: int) -> bytes:
        """Return a part of a file, whole.

        Raises:
            ModelRefusedError: It is shorter than it is listed, or too much was read already.
        """
        end = min(end, self.files[file])
        with self._lock:
            self.bytes += end - begin
        if self.bytes > MOST_BYTES:
            consequence = f"more than {MOST_BYTES} bytes would be read to describe it, so nothing was written."
            raise ModelRefusedError(Problem(self.place.name, None, consequence, "use another source."))
        content = self.place.part(file, begin, end) if end > begin else b""
        if len(content) != end - begin:
            consequence = f"it has fewer bytes than are listed ({self.files[file]}), so nothing was written."
            raise ModelRefusedError(Problem(f"{self.place.name}: {file}", None, consequence, _AGAIN))
        return content

    def json(self, file: str, longest: int = _LONGEST_FILE) -> dict[str, Any]:
        """Return a file that holds a JSON object.

        Raises:
            ModelRefusedError: It is too long, or holds something else.
        """
        where = f"{self.place.name}: {file}"
        if self.files[file] > longest:
            consequence = f"it has {self.files[file]} bytes, and such a file has {longest} at most: nothing was read."
            raise ModelRefusedError(Problem(where, None, consequence, "use another source."))
        try:
            content = json.loads(self.part(file, 0, self.files[file]), parse_int=_whole)
            check_depth(content)
        except (ValueError, RecursionError) as error:
            consequence = f"it is not valid JSON ({error}), so vLLM does not start, and nothing was written."
            raise ModelRefusedError(Problem(where, None, consequence, "correct the file.")) from None
        if not isinstance(content, dict):
            consequence = "it is not a JSON object, so vLLM does not start, and nothing was written."
            raise ModelRefusedError(Problem(where, None, consequence, "correct the file."))
        return content

    def optional(self, *names: str) -> dict[str, Any]:
        """Return the first of these files that is there; {} without one."""
        return next((self.json(name) for name in names if name in self.files), {})


def read_description(place: Place) -> Description:
    """Read a model's description.

    Raises:
        UserError: The place holds no model that vLLM loads, or cannot be read.
    """
    listing = place.listing()
    check_files(place.name, listing.files)
    reader = _Reader(place, listing.files)
    config = reader.json(CONFIG)
    check_config(place.name, config)
    weights, indexed = _weight_files(reader)
    tensors = _tensors(reader, weights, indexed)
    is_hub = isinstance(place, HubPlace)
    tokenizer_config = reader.optional(_TOKENIZER_CONFIG)
    template = bool(tokenizer_config.get("chat_template")) or any(name in listing.files for name in _TEMPLATES)
    tokens = added_tokens(tokenizer_config, _beginning(reader, "tokenizer.json"))
    pooling_module = _has_pooling_module(reader)
    if isinstance(place, HubPlace):
        source = f"hf:{place.repository.id}@{listing.version}"
    else:
        source = f"folder {place.folder.resolve().name}" if isinstance(place, FolderPlace) else place.name
    return Description(
        source=source,
        hub_id=place.repository.id if isinstance(place, HubPlace) else "",
        commit=listing.version if is_hub else "",
        revision=place.repository.revision if isinstance(place, HubPlace) else "",
        config=config,
        generation=reader.optional(_GENERATION),
        processor=reader.optional(*_PROCESSORS),
        tokenizer={
            "files": sorted(name for name in listing.files if name in (*_TOKENIZERS, _TOKENIZER_CONFIG, *_TEMPLATES)),
            "chat_template": template,
            "templates": _templates(reader, tokenizer_config),
            "tokens": None if tokens is None else sorted(tokens),
        },
        tensors=tensors,
        read_bytes=reader.bytes,
        weight_file_bytes=sum(listing.files[name] for name in weights),
        pooling_module=pooling_module,
    )


def _templates(reader: _Reader, tokenizer_config: Mapping[str, Any]) -> list[str]:
    """Texts of the chat templates: those of files, and those of the tokenizer's configuration, named ones too."""
    texts = [_beginning(reader, name) for name in sorted(reader.files) if name == _TEMPLATES[0] or _is_further(name)]
    listed: list[object] = []
    for content in (tokenizer_config, reader.optional(_TEMPLATES[1])):
        template = content.get("chat_template")
        listed += template if isinstance(template, list) else [template]
    texts += [str(each.get("template", "")) if isinstance(each, dict) else str(each or "") for each in listed]
    return list(dict.fromkeys(text for text in texts if text))


def _is_further(name: str) -> bool:
    return name.startswith(_FURTHER_TEMPLATES) and name.endswith(".jinja")


def _beginning(reader: _Reader, file: str) -> str:
    """First part of a file's text; "" where there is none."""
    size = min(reader.files.get(file, 0), _LONGEST_BEGINNING)
    return reader.part(file, 0, size).decode(errors="replace") if size else ""


def _has_pooling_module(reader: _Reader) -> bool:
    """Whether modules.json, a list, names a module by which vLLM pools; a broken one is left to the server."""
    size = reader.files.get(_MODULES, 0)
    if not 0 < size <= _LONGEST_FILE:
        return False
    try:
        modules = json.loads(reader.part(_MODULES, 0, size))
    except (ValueError, RecursionError):
        return False
    types = [module.get("type") for module in modules if isinstance(module, dict)] if isinstance(modules, list) else []
    return any(each in POOLING_MODULES for each in types)


def _weight_files(reader: _Reader) -> tuple[list[str], Collection[str]]:
    """The files of weights that vLLM loads: those of the index, else every one beside the configuration.

    Also the names of the tensors in the index.
    """
    files = reader.files
    names = sorted(name for name in files if name.endswith(".safetensors") and "/" not in name)
    if INDEX not in files:
        others = [name for name in names if not name.startswith(_OTHER_FORMAT)] or names
        _refuse_missing(reader, others, ())
        return others, ()
    weight_map = reader.json(INDEX, _LONGEST_INDEX).get("weight_map")
    where = f"{reader.place.name}: {INDEX}"
    if not isinstance(weight_map, dict) or not weight_map or not all(isinstance(v, str) for v in weight_map.values()):
        consequence = "it names no file for a tensor, so vLLM loads nothing, and nothing was written."
        raise ModelRefusedError(Problem(where, None, consequence, "correct the index, or remove it."))
    indexed = sorted(set(weight_map.values()))
    for name in indexed:
        if is_outside(name):
            consequence = "it names a file outside of the model's folder, so nothing of it was read."
            raise ModelRefusedError(Problem(where, name, consequence, "use another source."))
    _refuse_missing(reader, names, indexed)
    return indexed, [*weight_map]


def _refuse_missing(reader: _Reader, weights: list[str], indexed: Iterable[str]) -> None:
    """Refuse weights of which a shard is missing, and files without content."""
    needed = {name: size for name, size in reader.files.items() if not name.endswith(".safetensors") or name in weights}
    # A model may take the tokenizer of another one.
    if problems := missing_parts(needed, indexed, draft=True):
        consequence = f"is not a complete model ({'; '.join(problems)}): vLLM could not load it, nothing was written."
        repair = "complete the files, e.g. copy them again, or name another source."
        raise ModelRefusedError(Problem(reader.place.name, None, consequence, repair))


def _tensors(reader: _Reader, weights: Sequence[str], indexed: Collection[str]) -> dict[str, Tensor]:
    """The tensors of all files, read a few files at a time; `indexed` are those that the index names."""
    with ThreadPoolExecutor(_AT_A_TIME) as pool:
        headers = list(pool.map(lambda name: _header(reader, name), weights))
    tensors = {name: tensor for header in headers for name, tensor in header.items()}
    if absent := sorted(set(indexed) - set(tensors)):
        consequence = f"it names {len(absent)} tensors that no file has: vLLM could not load it; nothing was written."
        where = f"{reader.place.name}: {INDEX}"
        raise ModelRefusedError(Problem(where, absent[0], consequence, "copy the files of one version again."))
    return tensors


def _header(reader: _Reader, file: str) -> dict[str, Tensor]:
    size = reader.files[file]
    try:
        end = header_end(reader.part(file, 0, LENGTH_BYTES), size)
        return read_header(reader.part(file, LENGTH_BYTES, end), size - end)
    except HeaderError as error:
        consequence = f"{error}: vLLM could not load it, and nothing was written."
        where = f"{reader.place.name}: {file}"
        raise ModelRefusedError(Problem(where, None, consequence, "copy the file again, or use another one.")) from None


def _whole(text: str) -> int:
    if len(text) > _MOST_DIGITS:
        raise ValueError(f"a whole number of {len(text)} digits, which no field has")
    return int(text)
