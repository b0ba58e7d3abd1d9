"""Integrity check of the whole catalogue, used by a refresh, `bezel catalog check` and the tests.

Owns the snapshot of all records and the rules over several files. Leaves the rules of one file to the modules beside
it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bezel_base.errors import Problem
from bezel_catalog.accelerators import accelerators
from bezel_catalog.checks.hardware import check_accelerators, check_machines, check_tpus
from bezel_catalog.checks.integrity_errors import check_dated
from bezel_catalog.checks.models import check_measured, check_models
from bezel_catalog.checks.prices import OPTIONAL_MODELS, check_prices
from bezel_catalog.loader import region_names
from bezel_catalog.machines import compared_machines, gpu_machines
from bezel_catalog.measurements import measured_memory, measured_speed
from bezel_catalog.models import models
from bezel_catalog.prices import PRICES, parse_prices
from bezel_catalog.skus import sku_rules
from bezel_catalog.tpus import tpus
from bezel_catalog.vllm.options import tpu_variables, vllm_options, vllm_versions

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from bezel_catalog.accelerators import Accelerator
    from bezel_catalog.machines import ComparedMachine, GpuMachine
    from bezel_catalog.measurements import MeasuredMemory, MeasuredSpeed
    from bezel_catalog.models import Model
    from bezel_catalog.prices import Price
    from bezel_catalog.skus import SkuRule
    from bezel_catalog.tpus import TpuSlice
    from bezel_catalog.vllm.options import RecordedVariables, VllmOptions

_MIN_VARIABLES, _MIN_VALUES = 200, 80  # 316 and 125 were recorded
_MIN_OPTIONS = 100  # a release has over 300; a truncated list would make flags that exist look wrong


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The records of all data files."""

    accelerators: Mapping[str, Accelerator]
    tpus: Mapping[str, TpuSlice]
    gpu_machines: Mapping[str, GpuMachine]
    models: Mapping[str, Model]
    prices: tuple[Price, ...]
    machines: Mapping[str, ComparedMachine]
    memory: tuple[MeasuredMemory, ...]
    speed: tuple[MeasuredSpeed, ...]
    regions: frozenset[str]
    rules: tuple[SkuRule, ...]
    vllm: Mapping[str, VllmOptions]
    tpu_inference: RecordedVariables


def read_catalogue() -> Catalogue:
    """Reads every data file.

    Raises:
        DataFileError: a file cannot be read; the message names the line or the field.
    """
    return Catalogue(
        accelerators=accelerators(),
        tpus=tpus(),
        gpu_machines=gpu_machines(),
        models=models(),
        prices=parse_prices(PRICES.read_text(encoding="utf-8")),
        machines=compared_machines(),
        memory=measured_memory(),
        speed=measured_speed(),
        regions=region_names(),
        rules=sku_rules(),
        vllm={version: vllm_options(version) for version in vllm_versions()},
        tpu_inference=tpu_variables(),
    )


def check_catalogue(catalogue: Catalogue) -> tuple[Problem, ...]:
    """Return the integrity errors of the catalogue, file by file."""
    accelerators, regions = catalogue.accelerators, catalogue.regions
    return (
        *check_accelerators(accelerators, regions),
        *check_tpus(catalogue.tpus, regions),
        *check_models(catalogue.models, [*accelerators]),
        *check_prices(catalogue.prices, accelerators, catalogue.tpus, regions),
        *check_machines(catalogue.gpu_machines, catalogue.machines, accelerators, regions),
        *check_measured(catalogue.memory, catalogue.speed, catalogue.models, catalogue.tpus, accelerators),
        *_check_rules(catalogue),
        *_check_options(catalogue.vllm),
        *check_dated("tpu_inference.json", catalogue.tpu_inference),
    )


def _check_rules(catalogue: Catalogue) -> Iterable[Problem]:
    """Every row of the price file has a rule of the refresh, with the same unit."""
    units = {(rule.service, rule.item, rule.model): rule.unit for rule in catalogue.rules}
    for rule in catalogue.rules:
        where = f"skus.toml: {rule.item}, {rule.model}"
        yield from check_dated(where, rule)
        try:
            re.compile(rule.description)
        except re.error as error:
            yield Problem(f"{where}: description", rule.description, f"no SKU can match it: {error}.", "correct it.")
    for row in catalogue.prices:
        unit = units.get((row.service, row.item, row.model))
        # Optional models are billed by their parts, which no rule sums: such a row is edited by hand.
        if row.service not in OPTIONAL_MODELS and unit != row.unit:
            consequence = f"skus.toml prices it per {unit}." if unit else "no rule in skus.toml refreshes it."
            where = f"prices.csv: {', '.join(row.key)}: unit"
            yield Problem(where, row.unit, consequence, "correct the unit, or add a rule.")


def _check_options(vllm: Mapping[str, VllmOptions]) -> Iterable[Problem]:
    """A recording is of its release and complete, and has no schema of an option that does not exist."""
    again = "record it again: `bezel catalog record-release`."
    for version, recording in vllm.items():
        where = f"vllm/{version}.json"
        yield from check_dated(where, recording)
        names = recording.names()
        if recording.version != version:
            consequence = "stacks are checked against another release."
            yield Problem(f"{where}: version", recording.version, consequence, "rename the file.")
        if len(names) < _MIN_OPTIONS or len(set(names)) != len(names):
            yield Problem(f"{where}: options", len(names), "existing options are refused.", again)
        if len(recording.variables) < _MIN_VARIABLES:
            yield Problem(f"{where}: variables", len(recording.variables), "existing variables are refused.", again)
        unknown = sorted(set(recording.values) - {option.dest for option in recording.options})
        if unknown or len(recording.values) < _MIN_VALUES:
            values = f"{len(recording.values)}, of unknown options: {', '.join(unknown) or 'none'}"
            yield Problem(f"{where}: values", values, "values that vLLM refuses are accepted.", again)
