"""The description of a lease: its boot and its console as the machine reports them, as data."""

import pytest

from bezel.operations.context import Context
from bezel.operations.tpu.describe_lease import DescribeArguments, LeaseDescriptions, describe_lease
from bezel_base.errors import UserError
from tests.support.leases.harness import NAME, ZONES, LeaseHarness
from tests.support.operations.lease_cloud import ROOT

pytestmark = pytest.mark.slow  # a server, and the waits of a boot


def describe(trial: LeaseHarness, name: str) -> LeaseDescriptions:
    with Context(ROOT, clock=trial.world.clock, show=lambda _line: None) as context:
        return describe_lease(context, DescribeArguments(name=name, zone=ZONES, project="acme"))


def test_a_description_tells_the_boot_and_where_there_is_one_the_console(trial: LeaseHarness) -> None:
    trial.run()
    (description,) = describe(trial, NAME).leases
    assert (description.lease.name, description.lease.zone, description.lease.state) == (NAME, ZONES[0], "active")
    assert [phase.name for phase in description.phases] == ["network", "image", "weights", "compile", "healthy"]
    assert description.console == (("bezel: starting",) if trial.kind == "flex_start_vm" else ())
    assert "boot: healthy" in describe(trial, NAME).text()


def test_what_a_machine_reports_is_data_without_credentials(trial: LeaseHarness) -> None:
    trial.world.zone(ZONES[0]).broken_phase = "weights"
    with pytest.raises(UserError, match="failed in the phase weights"):
        trial.run()
    (description,) = describe(trial, NAME).leases
    assert description.phases[-1].detail == "it broke"
    assert description.phases[-1].state == "failed"


def test_a_name_that_no_lease_of_ours_has_is_reported(trial: LeaseHarness) -> None:
    with pytest.raises(UserError, match="no such lease of this program"):
        describe(trial, "bezel-none")
