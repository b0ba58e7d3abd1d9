"""Description of a model as its files give it: configuration, generation defaults, tokenizer, tensors.

It is what a row of a project's catalogue is made from, and what the cache of a commit holds.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bezel.model_sources.tensor_headers import Tensor


@dataclass(frozen=True, slots=True)
class Description:
    """A model as its files give it.

    Attributes:
        source: where it was read: `hf:OWNER/NAME@COMMIT`, `gs://BUCKET/FOLDER`, or `folder NAME`.
        hub_id: its name on a hub; "" elsewhere.
        commit: of the repository; "" elsewhere.
        revision: the revision that was asked for; "" elsewhere.
        config: of config.json.
        generation: of generation_config.json; {} without one.
        processor: of the processor's configuration; {} without one.
        tokenizer: `files`, the names of its files; `chat_template`, whether it brings one; `templates`, their texts;
            `tokens`, its added tokens, None where they were not read.
        tensors: dtype and shape of each tensor of the weights that vLLM loads, by name.
        read_bytes: bytes that were read for it.
        weight_file_bytes: bytes of the files of these weights.
        pooling_module: whether modules.json of Sentence Transformers names a module that pools.
    """

    source: str
    hub_id: str
    commit: str
    revision: str
    config: Mapping[str, Any]
    generation: Mapping[str, Any]
    processor: Mapping[str, Any]
    tokenizer: Mapping[str, Any]
    tensors: Mapping[str, Tensor]
    read_bytes: int
    weight_file_bytes: int
    pooling_module: bool = False

    def as_json(self) -> str:
        """Return it as a JSON text."""
        return json.dumps(asdict(self))

    @classmethod
    def of_json(cls, text: str | bytes) -> Description:
        """Read what `as_json` wrote.

        Raises:
            ValueError, TypeError, KeyError: The text is another one.
        """
        values = json.loads(text)
        tensors = {name: (str(dtype), tuple(map(int, shape))) for name, (dtype, shape) in values["tensors"].items()}
        return cls(**{**values, "tensors": tensors})
