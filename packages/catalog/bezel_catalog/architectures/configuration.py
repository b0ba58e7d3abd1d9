"""A `config.json` as vLLM sees it: the part of the language model, other names of a field, defaults of its class.

Source: transformers' configuration classes (`attribute_map` and default values), recorded in
`data/vllm/architectures/configurations.json` by tools/vllm/recorders/architectures.py, since a file may leave out
what its class sets.
"""

from __future__ import annotations

import functools
import json
from typing import TYPE_CHECKING, Any

from bezel_base.errors import Problem, UserError
from bezel_catalog.loader import DATA

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# Where a model of several parts keeps the one with the KV cache, outermost first.
TEXT_PARTS = ("thinker_config", "text_config", "llm_config", "language_config", "decoder", "llm")
FILE = DATA / "vllm" / "architectures" / "configurations.json"


class ConfigError(UserError, ValueError):
    """A config.json is no configuration of a model, or lacks what its architecture needs."""


class MissingFieldError(LookupError):
    """A field that a formula needs is neither in the file nor a default of its class."""


@functools.cache
def recorded_configurations() -> dict[str, dict[str, Any]]:
    """Defaults and other names of fields by model type, as recorded."""
    rows: dict[str, dict[str, Any]] = json.loads(FILE.read_text(encoding="utf-8"))["configurations"]
    return rows


class Configuration:
    """One part of a config.json.

    Attributes:
        values: the fields as written.
        model_type: type of the part; decides the defaults and the other names of its fields.
        whole: the outermost fields.
    """

    def __init__(
        self, values: Mapping[str, Any], *, whole: Mapping[str, Any] | None = None, model_type: str = ""
    ) -> None:
        self.values = values
        self.whole = values if whole is None else whole
        self.model_type = str(values.get("model_type") or model_type)
        row = recorded_configurations().get(self.model_type, {})
        self._defaults: Mapping[str, Any] = row.get("defaults", {})
        self._names: Mapping[str, str] = row.get("names", {})
        self._parts: Mapping[str, str] = row.get("parts", {})

    def get(self, *names: str, default: Any = None) -> Any:
        """The first of these fields that the file sets; else that of its class, unless the file sets one to null."""
        spellings = [spelling for name in names for spelling in (name, self._names.get(name)) if spelling is not None]
        written = [self.values[spelling] for spelling in spellings if spelling in self.values]
        for value in written:
            if value is not None:
                return value
        if not written:
            for spelling in spellings:
                if self._defaults.get(spelling) is not None:
                    return self._defaults[spelling]
        return default

    def number(self, *names: str, default: int | None = None, most: int | None = None) -> int:
        """A whole number, the first that is set.

        Raises:
            MissingFieldError: no field of these names holds one, and there is no default; or it is more than `most`.
        """
        value = self.get(*names, default=default)
        if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value):
            raise MissingFieldError(names[0] if value is None else f"{names[0]} = {value!r}")
        if most is not None and value > most:
            raise MissingFieldError(f"{names[0]} of at most {most}")
        return int(value)

    def texts(self, name: str) -> list[str]:
        """A list of texts, empty where the field is not set."""
        value = self.get(name)
        return [str(item) for item in value] if isinstance(value, list) else []

    def part(self, name: str) -> Configuration | None:
        """A part of this part, None where the file has none."""
        inner = self.values.get(name)
        if not isinstance(inner, dict):
            return None
        return Configuration(inner, whole=self.whole, model_type=self._parts.get(name, ""))


def read_configuration(config: Mapping[str, Any]) -> Configuration:
    """The part of a config.json that describes the language model.

    Raises:
        ConfigError: it is not the configuration of a model.
    """
    if not isinstance(config, dict) or not (config.get("model_type") or config.get("architectures")):
        raise ConfigError(
            Problem(
                "config.json",
                None if isinstance(config, dict) else type(config).__name__,
                "it names neither an architecture nor a model type, so no server knows what to load.",
                "name the folder or repository of a model in the form of Hugging Face's transformers.",
            )
        )
    part = Configuration(config)
    while inner := _text_part(part):
        part = inner
    return part


def _text_part(part: Configuration) -> Configuration | None:
    return next((inner for name in TEXT_PARTS if (inner := part.part(name)) is not None), None)


def class_names(config: Mapping[str, Any]) -> Sequence[str]:
    """The architectures that a config.json names, in its order."""
    names = config.get("architectures")
    return [str(name) for name in names] if isinstance(names, list) else []
