"""Results of operations with made-up values: short and long words, none, several rows."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel

_WORDS = ("a", "is", "gemma", "us-east4-a", "not enough", "gs://bucket/folder", "1.0465", "llm-00002-abc")
_MOST = 12  # words of a text


class MadeUp:
    """Values of one seed.

    Args:
        seed: Which values.
    """

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311 - no secret

    def result(self, model: type[BaseModel]) -> Any:
        """An instance of a model; its values are not validated."""
        hints = get_type_hints(model, include_extras=False)
        return model.model_construct(**{name: self._value(hints[name]) for name in model.model_fields})

    def _value(self, kind: Any) -> Any:
        origin, arguments = get_origin(kind), get_args(kind)
        if origin is Annotated:
            return self._value(arguments[0])
        if origin is Literal:
            return self._random.choice(arguments)
        if origin in (Union, UnionType):
            return self._value(self._random.choice(arguments))
        if origin in (tuple, list, Sequence) or (isinstance(origin, type) and issubclass(origin, tuple)):
            return tuple(self._value(arguments[0]) for _ in range(self._random.choice((0, 1, 3))))
        if origin in (dict, Mapping) or (isinstance(origin, type) and issubclass(origin, Mapping)):
            return {self._word(): self._value(arguments[1]) for _ in range(3)}
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            return self.result(kind)
        return self._plain(kind)

    def _plain(self, kind: Any) -> Any:
        if kind is NoneType:
            return None
        if kind is bool:
            return self._random.random() < 0.5
        if kind is int:
            return self._random.choice((0, 7, 262_144, 1_790_000_000))
        if kind is float:
            return self._random.choice((0.0, 0.25, 1234.5678))
        if kind is Decimal:
            return Decimal(self._random.choice(("0", "1.04652", "763.9592")))
        if kind is datetime:
            return datetime(2026, 11, 1, 12, 30, tzinfo=UTC)
        if kind is date:
            return date(2026, 11, 1)
        if kind is str:
            return " ".join(self._word() for _ in range(self._random.choice((1, 2, _MOST))))
        return self._word()

    def _word(self) -> str:
        return self._random.choice(_WORDS)
