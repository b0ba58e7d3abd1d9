"""Faults of the price list: a refresh reports each with the rows that it concerns, and writes no price unasked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bezel.cli.catalog.commands import refresh
from bezel_catalog.prices import PRICES
from bezel_localcloud import control
from localcloud_support.client import Client
from tests.support.e2e import warm_localcloud
from tests.support.e2e.fault_harness import check_golden

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow
FAULTS = "/localcloud/faults"
ONE_GPU = "NVIDIA L4 GPU with no zonal redundancy in us-east4"
STATE = "prices.csv is unchanged, nothing pending"


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    directory: Path = tmp_path_factory.mktemp("prices")
    client = Client(warm_localcloud.start_fake(directory))
    client.enable("cloudbilling")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in control.environment(client.endpoint).items():
            patch.setenv(name, value)
        yield client
    control.stop(directory)


@pytest.mark.parametrize(
    ("kind", "parameters", "following"),
    [
        ("price-changed", {"sku": ONE_GPU, "factor": 1.5}, "`bezel catalog refresh --write` writes the new price"),
        ("price-missing", {"sku": ONE_GPU}, "the row keeps its price and its date until the SKU is listed again"),
    ],
)
def test_a_refresh_names_the_rows_that_a_price_list_changes(
    kind: str, parameters: dict[str, object], following: str, cloud: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    before = PRICES.read_bytes()
    assert cloud.post(FAULTS, {"kind": kind, "parameters": parameters}).is_success
    assert refresh(write=False, month="2026-11") == 0
    assert cloud.delete(FAULTS).is_success
    text = capsys.readouterr().out
    assert PRICES.read_bytes() == before
    (concerned,) = [line for line in text.splitlines() if "nvidia-l4 no zonal redundancy, us-east4" in line]
    options = " ".join(
        f"'{name}={value}'" if " " in str(value) else f"{name}={value}" for name, value in parameters.items()
    )
    check_golden(kind, f"bezel local fault add {kind} {options}", f"{concerned}\n", STATE, following)
    assert concerned.startswith({"price-changed": "changed", "price-missing": "not found"}[kind])
