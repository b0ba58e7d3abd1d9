"""Limits of a process and of a machine's metadata on the server's arguments and variables.

Sources: Linux, execve(2): one argument or variable has at most 128 KiB (MAX_ARG_STRLEN), all together a quarter of the
stack's 8 MiB. Compute Engine and the TPU API: 256 KiB for a value of the metadata, 512 KiB for all (November 2026).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from bezel.planner.base.problems import of_option, setting
from bezel.planner.vllm.arguments import as_word
from bezel_base.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from bezel.planner.vllm.arguments import Argument

WORD_BYTES = 131_071
TOTAL_BYTES = 2 << 20
METADATA_VALUE_BYTES = 262_144
METADATA_BYTES = 524_288 - 98_304  # all entries, less the room of the startup script and the other values
_FAILS = "the container does not start (argument list too long)."
_REFUSED = "its request is refused."
_FILE = "put the content into a file of the bucket, and its path here"


def check_process(
    arguments: Mapping[str, Argument], variables: Mapping[str, str], *, leased: bool
) -> Iterator[Problem]:
    """Check the sizes of the server's arguments and variables.

    Args:
        arguments: of the server, by option name.
        variables: of the container.
        leased: whether a machine's metadata hand them over.
    """
    option_words = [
        (name, f"--{name}={as_word(each)}")
        for name, argument in arguments.items()
        for each in (argument.written if isinstance(argument.written, list) else [argument.written])
    ]
    for name, word in option_words:
        if (size := len(word.encode())) > WORD_BYTES:
            consequence = f"the argument has {size} bytes, and a process gets at most {WORD_BYTES}: {_FAILS}"
            yield of_option(name, f"{word[:40]}…", consequence, f"{_FILE}.")
    pairs = [f"{name}={value}" for name, value in variables.items()]
    total = sum(len(text.encode()) + 1 for text in [*pairs, *(word for _, word in option_words)])
    if total > TOTAL_BYTES:
        consequence = f"with the arguments they have {total} bytes, and a process gets {TOTAL_BYTES}: "
        yield Problem(setting("variables"), f"{len(pairs)} variables", consequence + _FAILS, f"{_FILE}.")
    elif leased:
        texts = {"variables": dict(variables), "vllm": [word for _, word in option_words]}
        sizes = {section: len(json.dumps(content).encode()) for section, content in texts.items()}
        for section, size in sizes.items():
            if size > METADATA_VALUE_BYTES:
                consequence = f"a value of a machine's metadata has at most {METADATA_VALUE_BYTES} bytes: {_REFUSED}"
                yield Problem(setting(section), f"{size} bytes", consequence, f"{_FILE}.")
        if max(sizes.values()) <= METADATA_VALUE_BYTES and sum(sizes.values()) > METADATA_BYTES:
            consequence = (
                f"with the arguments they exceed the {METADATA_BYTES} bytes of a machine's metadata: {_REFUSED}"
            )
            yield Problem(setting("variables"), f"{sum(sizes.values())} bytes", consequence, f"{_FILE}.")
