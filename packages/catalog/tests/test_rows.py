"""A row of a data file fits its record, or is refused with every field that does not."""

from __future__ import annotations

import pytest

from bezel_catalog import Accelerator
from bezel_catalog.loader import make, read_toml

ROW = read_toml("accelerators.toml")["nvidia-l4"]


def test_a_row_becomes_its_record_with_tuples_for_lists():
    made = make(Accelerator, "here", ROW, id="nvidia-l4")
    assert made.regions == tuple(ROW["regions"])
    assert made.unpriced is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"min_cpus": 4},
            r"min_cpus = 4\n   no field has this name.\n   Repair: remove it; the fields are title, memory_bytes",
        ),
        ({"id": "another"}, "id = another\n   no field has this name"),
        ({"memory_bytes": "24 GB"}, "memory_bytes = 24 GB\n   expected an integer"),
        ({"memory_bytes": 24e9}, "expected an integer"),
        ({"min_cpu": True}, "min_cpu = true\n   expected an integer"),
        ({"forward_compatible_cuda": 1}, "expected true or false"),
        ({"regions": "us-east4"}, "regions = us-east4\n   expected a list of texts"),
        ({"regions": [4]}, "expected a list of texts"),
        ({"driver": 535}, "driver = 535\n   expected a text"),
    ],
)
def test_a_field_that_does_not_fit_is_named(changes, message):
    with pytest.raises(ValueError, match=f"(?s)^here: .*{message}"):
        make(Accelerator, "here", ROW | changes, id="nvidia-l4")


def test_everything_that_does_not_fit_is_named_at_once():
    row = {name: value for name, value in ROW.items() if name not in ("quota", "min_cpu")} | {"driver": 535}
    with pytest.raises(ValueError, match=r"min_cpu = \(not set\)") as caught:
        make(Accelerator, "here", row, id="nvidia-l4")
    assert "here: quota = (not set)\n   every row needs this field." in str(caught.value)
    assert "driver = 535" in str(caught.value)
