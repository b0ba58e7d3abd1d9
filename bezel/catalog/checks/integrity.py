"""Integrity check of the whole catalogue, used by a refresh, `bezel catalog check` and the tests.

Owns the snapshot of all records and the rules over several files. Leaves the rules of one file to the modules beside
it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bezel.catalog.accelerators import accelerators
from bezel.catalog.checks.hardware import check_accelerators, check_compared, check_gpu_machines, check_tpus
from bezel.catalog.checks.integrity_errors import Fault, check_dated
from bezel.catalog.checks.measurements import check_measured
from bezel.catalog.checks.models import check_models
from bezel.catalog.checks.prices import OPTIONAL_MODELS, check_prices
from bezel.catalog.external_machines import compared_machines
from bezel.catalog.loader import region_names
from bezel.catalog.machines import gpu_machines
from bezel.catalog.measurements import measured_memory, measured_speed
from bezel.catalog.models import models
from bezel.catalog.prices import PRICES, parse_prices
from bezel.catalog.skus import sku_rules
from bezel.catalog.tpus import tpus
from bezel.catalog.vllm.options import vllm_options, vllm_versions
from bezel.catalog.vllm.variables import tpu_variables

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from bezel.catalog.accelerators import Accelerator
    from bezel.catalog.external_machines import ComparedMachine
    from bezel.catalog.machines import GpuMachine
    from bezel.catalog.measurements import MeasuredMemory, MeasuredSpeed
    from bezel.catalog.models import Model
    from bezel.catalog.prices import Price
    from bezel.catalog.skus import SkuRule
    from bezel.catalog.tpus import TpuSlice
    from bezel.catalog.vllm.options import VllmOptions
    from bezel.catalog.vllm.variables import RecordedVariables

_FEWEST_VARIABLES, _FEWEST_VALUES = 200, 80  # 316 and 125 were recorded
_FEWEST_OPTIONS = 100  # a release has over 300; a truncated list would make flags that exist look wrong


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


def check_catalogue(catalogue: Catalogue) -> tuple[Fault, ...]:
    """Return the integrity errors of the catalogue, file by file."""
    return (
        *check_accelerators(catalogue.accelerators, catalogue.regions),
        *check_tpus(catalogue.tpus, catalogue.regions),
        *check_gpu_machines(catalogue.gpu_machines, catalogue.accelerators, catalogue.regions),
        *check_models(catalogue.models, [*catalogue.accelerators]),
        *check_prices(catalogue.prices, catalogue.accelerators, catalogue.tpus, catalogue.regions),
        *check_compared(catalogue.machines, catalogue.accelerators),
        *check_measured(catalogue.memory, catalogue.speed, catalogue.models, catalogue.tpus, catalogue.accelerators),
        *_check_rules(catalogue),
        *_check_options(catalogue.vllm),
        *check_dated("tpu_inference.json", catalogue.tpu_inference),
    )


def _check_rules(catalogue: Catalogue) -> Iterable[Fault]:
    """Every row of the price file has a rule of the refresh, with the same unit."""
    units = {(rule.service, rule.item, rule.model): rule.unit for rule in catalogue.rules}
    for rule in catalogue.rules:
        where = f"skus.toml: {rule.item}, {rule.model}"
        yield from check_dated(where, rule)
        try:
            re.compile(rule.description)
        except re.error as error:
            yield Fault(where, f"description = {rule.description}", f"no SKU can match it: {error}.", "mend it.")
    for row in catalogue.prices:
        if row.service in OPTIONAL_MODELS:
            continue  # billed by its parts, which no rule sums: such a row is edited by hand
        unit = units.get((row.service, row.item, row.model))
        if unit != row.unit:
            yield Fault(
                f"prices.csv: {', '.join(row.key)}",
                f"unit = {row.unit}",
                f"skus.toml prices it per {unit}."
                if unit
                else "skus.toml has no rule for it, so a refresh cannot read it.",
                "mend the unit, or add a rule.",
            )


def _check_options(vllm: Mapping[str, VllmOptions]) -> Iterable[Fault]:
    for version, found in vllm.items():
        where = f"vllm/{version}.json"
        yield from check_dated(where, found)
        names = found.names()
        if found.version != version:
            yield Fault(
                where, f"version = {found.version}", "another release's flags would be checked.", "rename the file."
            )
        if len(names) < _FEWEST_OPTIONS or len(set(names)) != len(names):
            yield Fault(
                where,
                f"{len(names)} options",
                "flags that exist would be refused.",
                "record the parser's whole list again.",
            )
        yield from _check_recorded(where, found)


def _check_recorded(where: str, found: VllmOptions) -> Iterable[Fault]:
    """Variables and values of a release: no truncated list, no schema of an option that does not exist."""
    if len(found.variables) < _FEWEST_VARIABLES:
        yield Fault(
            where,
            f"{len(found.variables)} variables",
            "variables that vLLM reads would be refused.",
            "record them again: `bezel catalog record-options`.",
        )
    stray = sorted(set(found.values) - {option.dest for option in found.options})
    if stray or len(found.values) < _FEWEST_VALUES:
        yield Fault(
            where,
            f"{len(found.values)} values, of no option: {', '.join(stray) or 'none'}",
            "values that vLLM refuses would be planned.",
            "record them again: `bezel catalog record-options`.",
        )
