"""No accelerator is suggested for another, among those that services and leases have."""

from bezel.planner.base.hardware import leased_hardware
from bezel_catalog import accelerators, closest_record

OTHER_ACCELERATORS = [
    "nvidia-t4",
    "nvidia-l40s",
    "nvidia-l5",
    "nvidia-l4s",
    "nvidia-a100",
    "nvidia-tesla-t4",
    "nvidia-h100-80gb",
    "nvidia-rtx-pro-5000",
    "v6e-2",
    "v6e-16",
    "v6e",
    "v5e-4",
    "v5p-8",
    "g2-standard-48",
    "nvidia-l4-vws",
]


def test_no_accelerator_is_suggested_for_another() -> None:
    names = (*accelerators(), *leased_hardware())
    assert {name: closest_record(name, names) for name in OTHER_ACCELERATORS} == dict.fromkeys(OTHER_ACCELERATORS)
    assert closest_record("nvdia-l4", names) == "nvidia-l4"
    assert closest_record("rtx-pro-6000", names) == "nvidia-rtx-pro-6000"
