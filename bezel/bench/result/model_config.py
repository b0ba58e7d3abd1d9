"""Shared model configuration of a result's records: no unknown field, no change, no NaN or infinity."""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field

Count = Annotated[int, Field(ge=0)]
Amount = Annotated[float, Field(ge=0)]

STRICT = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, populate_by_name=True)
