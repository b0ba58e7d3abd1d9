"""Construction of a `System` from a source's statements: a label in words, and named fields.

Owns the names that other tools' files give to settings. A field wins over a label; disagreement between the two is left
to the check of labels, so the label's words are stored too.
"""

import functools
from collections.abc import Callable, Mapping
from typing import Any

from bezel_bench.audit.figure import whole
from bezel_bench.audit.labels import (
    checkpoint_of,
    date_in,
    drafts_in,
    encoding_in,
    is_assistant,
    machine_in,
    named_model,
    platform_in,
    prompts_in,
    shape_in,
)
from bezel_bench.audit.machines import describes, other_machine
from bezel_bench.audit.models import names_model, stated_model, without_stated_model
from bezel_bench.audit.table import System
from bezel_bench.audit.words import names

_NAMES = names("settings")


def stated_field(fields: Mapping[str, Any], kind: str) -> Any:
    """Return the first field of a kind that is stated and not empty."""
    return next((fields[name] for name in _NAMES[kind] if fields.get(name) not in (None, "")), None)


def system_of(fields: Mapping[str, Any], label: str = "") -> System:
    """Return the system that the fields and the label describe.

    Args:
        fields: named fields, e.g. of a claim or a row.
        label: words for values without a field, e.g. a file's name.
    """
    values = tuple(str(value) if (value := stated_field(fields, kind)) is not None else "" for kind in _NAMES)
    offloaded = any("offload" in str(value) for value in fields.values() if isinstance(value, str))
    return _system(values, label, offloaded=offloaded, simulated=fields.get("nature") == "simulated")


@functools.lru_cache(maxsize=4096)
def _system(values: tuple[str, ...], label: str, *, offloaded: bool, simulated: bool) -> System:
    """Build a system; cached, because rows of one file repeat the same values."""
    text = dict(zip(_NAMES, values, strict=True))
    chips = whole(text["chips"])
    machine = machine_in(text["hardware"], chips)
    other = other_machine(text["hardware"])
    if machine is None and (other is None or describes(label, other)):
        machine = machine_in(label, chips)
    described, label = stated_model(label), without_stated_model(label)
    if described and text["model"] and not names_model(text["model"], described):
        described = None
    named = named_model(text["model"])
    shape = named.architecture if named else shape_in(text["model"]) or (None if text["model"] else shape_in(label))
    assistant = is_assistant(text["model"])
    encoding = named.encoding if named else _first(encoding_in, text["encoding"], text["model"], label)
    drafts = _first(drafts_in, text["speculation"], label)
    prompts = prompts_in(text["prompts"])
    off = text["speculation"].lower() in ("none", "off", "no", "false", "0", "standard")
    return System(
        label=" ".join(word for word in (text["hardware"], text["model"]) if word) or label,
        machine=machine,
        label_machine=machine_in(label),
        tensor_parallel=whole(text["tensor_parallel"]),
        label_shape=shape_in(label),
        model_name=text["model"],
        shape=None if assistant else shape,
        stated_model=None if assistant or shape else described,
        checkpoint=named or checkpoint_of(None if assistant else shape, encoding, machine),
        assistant=assistant,
        encoding=encoding,
        kv_dtype=text["kv"] or None,
        instances=whole(text["instances"]),
        concurrency=whole(text["concurrency"]),
        max_num_seqs=whole(text["max_num_seqs"]),
        max_model_len=whole(text["max_model_len"]),
        speculation="none" if off else drafts[0] if drafts else text["speculation"] or None,
        draft_tokens=whole(text["draft_tokens"]) or (drafts[1] if drafts else None),
        prompts=prompts,
        cache_study=prompts in ("shared_prefix", "multi_turn")
        or any(word in text["study"].lower() for word in ("cache", "prefix")),
        offloaded=offloaded,
        platform=platform_in(text["platform"]) or platform_in(label),
        dated=date_in(label),
        simulated=simulated,
    )


def _first(find: Callable[[str], Any], *texts: str) -> Any:
    return next((value for text in texts if text and (value := find(text))), None)
