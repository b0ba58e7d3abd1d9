"""Catalogue of dated, sourced facts with typed look-ups that never fall back: hardware, models, prices, vLLM options.

Owns the product's data about the outside world. Leaves rules to bezel.planner; imports no other package of bezel but
bezel_base.errors.
"""

from bezel_catalog.accelerators import Accelerator, accelerator, accelerators
from bezel_catalog.architectures.architecture import Architecture
from bezel_catalog.likeness import agrees_in_numbers, closest, closest_record
from bezel_catalog.loader import DataFileError, NotInCatalogueError
from bezel_catalog.machines import ComparedMachine, GpuMachine, compared_machines, gpu_machine, gpu_machines
from bezel_catalog.models import Model, ids_by_hub_id, model, models, unservable_form
from bezel_catalog.prices import Price, Unpriced, price, prices
from bezel_catalog.tpus import TpuSlice, tpu, tpus
from bezel_catalog.vllm.options import (
    Variable,
    VllmOption,
    VllmOptions,
    removed_options,
    tpu_variables,
    vllm_options,
    vllm_versions,
)
from bezel_catalog.vllm.risks import Risk, unjudged_risks, vllm_risks

__all__ = [
    "Accelerator",
    "Architecture",
    "ComparedMachine",
    "DataFileError",
    "GpuMachine",
    "Model",
    "NotInCatalogueError",
    "Price",
    "Risk",
    "TpuSlice",
    "Unpriced",
    "Variable",
    "VllmOption",
    "VllmOptions",
    "accelerator",
    "accelerators",
    "agrees_in_numbers",
    "closest",
    "closest_record",
    "compared_machines",
    "gpu_machine",
    "gpu_machines",
    "ids_by_hub_id",
    "model",
    "models",
    "price",
    "prices",
    "removed_options",
    "tpu",
    "tpu_variables",
    "tpus",
    "unjudged_risks",
    "unservable_form",
    "vllm_options",
    "vllm_risks",
    "vllm_versions",
]
