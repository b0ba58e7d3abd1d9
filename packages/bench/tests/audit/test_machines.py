"""A machine outside of the catalogue is judged by the figures that the caller gives, and by no other machine's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bezel_bench.audit import findings
from bezel_bench.audit.labels import machine_in
from bezel_bench.audit.machines import EXAMPLE
from bezel_bench.audit.runner import audit_files
from bezel_bench.commands.main import main

if TYPE_CHECKING:
    from pathlib import Path

HEAD = "hardware,context_tokens,users,value,unit\n"


def audit_row(folder: Path, row: str, machine: str, name: str = "a.csv") -> tuple[set[int], str]:
    path = folder / name
    path.write_text(f"{HEAD}{row}\n", encoding="utf-8")
    audit = audit_files([path], machine=machine, model="gemma-4-12b bf16")
    return {one.kind for one in audit.findings}, " ".join(one.text for one in audit.questions)


@pytest.mark.parametrize(
    ("text", "chips", "memory", "bandwidth", "flops"),
    [
        (EXAMPLE, 1, 80e9, 3.35e12, 989e12),
        ("8 x h100=80GB,3.35TB/s,989TFLOP/s", 8, 80e9, 3.35e12, 989e12),
        ("mi300x=192 GB, 5.3 TB/s, 1.3 PFLOP/s", 1, 192e9, 5.3e12, 1.3e15),
        ("t4=16GiB,320GB/s,65TFLOPs", 1, 16 * 2**30, 320e9, 65e12),
    ],
)
def test_described_machine_has_the_given_figures(
    text: str, chips: int, memory: float, bandwidth: float, flops: float
) -> None:
    machine = machine_in(text)
    assert machine is not None
    assert machine.chips == chips
    assert machine.memory_bytes == pytest.approx(chips * memory)
    assert machine.bandwidth == pytest.approx(chips * bandwidth)
    for encoding in (None, "fp8", "bf16"):
        assert machine.flops(encoding) == pytest.approx(chips * flops)


@pytest.mark.parametrize("text", ["h100", "h100=80GB", "h100=80GB,3.35TB/s", "h100=80,3,989", "=80GB,3TB/s,9TFLOP/s"])
def test_incomplete_description_is_refused_with_the_form(
    tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.csv").write_text(f"{HEAD},16,1,2.0,req/s\n")
    assert main(["audit", "--machine", text, str(tmp_path / "a.csv")]) == 1
    error = " ".join(capsys.readouterr().err.split())
    assert f"--machine = {text} it is not in the catalogue" in error
    assert EXAMPLE in error


def test_file_of_a_described_machine_is_judged_by_its_roof(tmp_path: Path) -> None:
    """60 requests/s x 1024 tokens x 2 x 12e9 are 1.47 PFLOP/s, 1.5 times what an H100 has."""
    assert audit_row(tmp_path, ",1024,64,60,req/s", EXAMPLE)[0] == {findings.ROOFLINE}
    assert not audit_row(tmp_path, ",1024,64,20,req/s", EXAMPLE)[0]
    assert not audit_row(tmp_path, ",1024,64,60,req/s", f"8 x {EXAMPLE}")[0]


def test_file_that_names_the_described_machine_is_judged(tmp_path: Path) -> None:
    assert audit_row(tmp_path, "NVIDIA H100 80GB HBM3,1024,64,60,req/s", EXAMPLE)[0] == {findings.ROOFLINE}
    assert audit_row(tmp_path, ",1024,64,60,req/s", EXAMPLE, "run-h100.csv")[0] == {findings.ROOFLINE}


@pytest.mark.parametrize("machine", ["l4", EXAMPLE])
@pytest.mark.parametrize(("hardware", "name"), [("NVIDIA A100-SXM4-80GB", "a.csv"), ("", "run_mi300x.csv")])
def test_file_of_another_machine_is_not_judged_by_the_named_one(
    tmp_path: Path, machine: str, hardware: str, name: str
) -> None:
    kinds, open_ = audit_row(tmp_path, f"{hardware},1024,64,60,req/s", machine, name)
    assert not kinds
    assert "it names no machine" in open_
