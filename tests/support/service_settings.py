"""The settings that `VllmService` and `LeasedVllmService` must have."""

from typing import Any

CHAT: dict[str, Any] = {"model": "gemma-4-12b-it-qat-w4a16", "accelerator": "nvidia-l4", "region": "us-east4"}
LEASED: dict[str, Any] = {
    "model": "gemma-4-26b-a4b-it",
    "accelerator": "v6e-4",
    "region": "us-east5",
    "lease": {"zones": [{"zone": "us-east5-b"}]},
    "cost": {"max_hourly_usd": 9.5},
}
