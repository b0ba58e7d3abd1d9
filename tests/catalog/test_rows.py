"""A row of a data file fits its record, or is refused with every field that does not."""

from __future__ import annotations

import pytest

from bezel.catalog import Accelerator
from bezel.catalog.loader import make, read_toml

ROW = read_toml("accelerators.toml")["nvidia-l4"]


def test_a_row_becomes_its_record_with_tuples_for_lists():
    made = make(Accelerator, "here", ROW, id="nvidia-l4")
    assert made.regions == tuple(ROW["regions"])
    assert made.unpriced is None


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"min_cpus": 4}, r"no field is named min_cpus \(known: title, memory_bytes"),
        ({"id": "another"}, "no field is named id"),
        ({"memory_bytes": "24 GB"}, "memory_bytes = '24 GB' is not a whole number"),
        ({"memory_bytes": 24e9}, "is not a whole number"),
        ({"min_cpu": True}, "min_cpu = True is not a whole number"),
        ({"forward_compatible_cuda": 1}, "is not true or false"),
        ({"regions": "us-east4"}, "regions = 'us-east4' is not a list of texts"),
        ({"regions": [4]}, "is not a list of texts"),
        ({"driver": 535}, "driver = 535 is not text"),
    ],
)
def test_a_field_that_does_not_fit_is_named(changes, words):
    with pytest.raises(ValueError, match=f"^here: .*{words}"):
        make(Accelerator, "here", ROW | changes, id="nvidia-l4")


def test_everything_that_does_not_fit_is_named_at_once():
    row = {name: value for name, value in ROW.items() if name not in ("quota", "min_cpu")} | {"driver": 535}
    with pytest.raises(ValueError, match="the field min_cpu is missing") as caught:
        make(Accelerator, "here", row, id="nvidia-l4")
    assert "the field quota is missing" in str(caught.value)
    assert "driver = 535" in str(caught.value)
