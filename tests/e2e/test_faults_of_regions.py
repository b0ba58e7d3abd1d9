"""Faults of the balancer in front of two regions: callers notice them, and no deploy does."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from localcloud_support.client import until
from tests.support.e2e.fault_harness import FaultHarness, check_golden, normalize
from tests.support.e2e.regions import OTHER_DOMAIN, A, B, RegionsStack, deploy_two

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.e2e.kill_points import KillHarness
    from tests.support.e2e.rehearsal import Run


@pytest.fixture
def two(grounds: KillHarness, tmp_path: Path) -> Iterator[RegionsStack]:
    """The stack in service in two regions, deployed once for all tests."""
    made = grounds.copy_with_cloud("regions", deploy_two, tmp_path / "two")
    yield RegionsStack(made)
    made.stop_cloud()


def shown_lines(run: Run, pattern: str) -> str:
    """The lines of a command's output that a pattern finds, without what differs from run to run."""
    assert run.code == 0, run.text
    lines = [" ".join(line.split()) for line in run.text.splitlines() if re.search(pattern, line)]
    text = re.sub(r"-[0-9a-f]{7}\b", "-0000000", "\n".join(lines))
    text = re.sub(r"with TLS: .*\)$", "with TLS: ...)", text, flags=re.MULTILINE)  # in the words of the interpreter
    return normalize(re.sub(r"127\.\d+\.\d+\.\d+", "127.0.0.0", text))


@pytest.mark.wide
def test_a_drained_region_and_a_late_certificate_are_shown_to_who_asks(two: RegionsStack) -> None:
    made = two.rehearsal
    stage = FaultHarness(made, (made.folder / "Pulumi.l4-qat.yaml").read_text())
    client = two.client()

    drained = stage.add("region-drain", region=A)
    stage.need_a_revision()
    assert stage.up().code == 0, "a deploy asks each region at its own URL"
    assert (client.ask_once(), two.serving_regions()) == (200, {B})
    text = shown_lines(made.bezel("local", "region", "--dir", str(made.cloud)), "out of use")
    state = stage.state()
    stage.clear()
    until(lambda: two.serving_regions() == {A, B})
    check_golden("region-drain", drained, text, state, "once it is mended its traffic is back; nothing is to be done")

    delayed = stage.add("certificate-delayed")
    assert two.up(**{"address.domain": OTHER_DOMAIN}).code == 0, "a deploy does not wait for the certificate"
    text = shown_lines(made.bezel("endpoint", "l4-qat", **made.variables()), r"^  (address|repair) ")
    state = stage.state()
    stage.clear()
    assert two.client(OTHER_DOMAIN).ask_once() == 200
    stage.in_service()
    following = "once it is mended callers can connect; the next `up` is green, then nothing is left to do"
    check_golden("certificate-delayed", delayed, text, state, following)
