"""A model outside of the catalogue is judged by the figures that the caller gives, and is named where it is not."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from bench_support.writers.formats import FORMATS
from bench_support.writers.requests import closed_load
from bezel_bench.audit import findings
from bezel_bench.audit.models import EXAMPLE, stated_model
from bezel_bench.audit.runner import Audit, audit_files
from bezel_bench.commands.main import main

if TYPE_CHECKING:
    from pathlib import Path

HEAD = "hardware,model,context_tokens,users,value,unit\n"
H100 = "h100=80GB,3.35TB/s,989TFLOP/s"
MIXTURE = "qwen3-30b-a3b=30.5B,3.3B,61GB,98kB/token"
LLAMA = "meta-llama/Llama-3.1-8B-Instruct"


def audit_of(folder: Path, row: str, model: str = EXAMPLE, name: str = "a.csv", machine: str = H100) -> Audit:
    path = folder / name
    path.write_text(f"{HEAD}{row}\n", encoding="utf-8")
    return audit_files([path], machine=machine, model=model)


def kinds(audit: Audit) -> set[int]:
    return {one.kind for one in audit.findings}


def texts(audit: Audit) -> str:
    return " ".join(one.text for one in audit.questions)


@pytest.mark.parametrize(
    ("text", "parameters", "active", "weights", "cache"),
    [
        (EXAMPLE, 8.03e9, 8.03e9, 16.1e9, 131e3),
        (MIXTURE, 30.5e9, 3.3e9, 61e9, 98e3),
        ("Org/Tiny = 350M, 350M, 700 MiB, 12.5 KiB/tok", 350e6, 350e6, 700 * 2**20, 12.5 * 1024),
        ("big=1T,32B,1.1TB,9216B/token bf16", 1e12, 32e9, 1.1e12, 9216),
    ],
)
def test_described_model_has_the_given_figures(
    text: str, parameters: float, active: float, weights: float, cache: float
) -> None:
    model = stated_model(text)
    assert model is not None
    assert (model.parameters, model.active_parameters) == pytest.approx((parameters, active))
    assert (model.weight_bytes, model.cache_bytes_per_token) == pytest.approx((weights, cache))
    assert model.read_bytes == pytest.approx(weights * active / parameters)


@pytest.mark.parametrize(
    "text",
    ["llama-3.1-8b", "m=8B", "m=8B,8B,16GB", "m=8,8,16,131", "m=8B,9B,16GB,131kB/token", "m=0B,0B,16GB,1kB/token"],
)
def test_incomplete_model_is_refused_with_the_form(
    tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.csv").write_text(f"{HEAD},,16,1,2.0,req/s\n")
    assert main(["audit", "--model", text, str(tmp_path / "a.csv")]) == 1
    shown = " ".join(capsys.readouterr().err.split())
    assert f"--model = {text} it is not in the catalogue, so nothing was audited" in shown
    assert EXAMPLE in shown


def test_prompts_of_a_described_model_are_judged_by_its_active_parameters(tmp_path: Path) -> None:
    """70 requests/s x 1024 tokens x 2 x 8.03e9 are 1.15 PFLOP/s, of 0.989; with 3.3e9 active parameters 0.47."""
    result = audit_of(tmp_path, ",,1024,64,70,req/s")
    assert kinds(result) == {findings.ROOFLINE}
    assert "8.03e9 active parameters" in result.findings[0].arithmetic
    assert "not judged by the roofline" not in texts(result)
    assert not kinds(audit_of(tmp_path, ",,1024,64,30,req/s"))
    assert not kinds(audit_of(tmp_path, ",,1024,64,70,req/s", MIXTURE))
    assert not kinds(audit_of(tmp_path, ",,1024,64,70,req/s", machine=f"8 x {H100}"))


@pytest.mark.parametrize(("model", "most"), [(EXAMPLE, 208), (MIXTURE, 507)])
def test_decoding_is_judged_by_weights_and_cache(tmp_path: Path, model: str, most: float) -> None:
    """One user: a step reads 16.1 GB, or 61 GB x 3.3 / 30.5, at 3.35 TB/s."""
    most *= 6  # drafts are not denied: up to 5 are always right
    assert kinds(audit_of(tmp_path, f",,16,1,{1.1 * most},output tok/s", model)) == {findings.ROOFLINE}
    assert not kinds(audit_of(tmp_path, f",,16,1,{0.9 * most},output tok/s", model))


def test_long_contexts_lower_the_limit_of_decoding(tmp_path: Path) -> None:
    """64 sequences of 32,000 tokens read 268 GB of cache beside 16 GB: 754 tokens/s, of 13,317 without a cache."""
    assert kinds(audit_of(tmp_path, ",,32000,64,9000,output tok/s")) == {findings.ROOFLINE}
    assert not kinds(audit_of(tmp_path, ",,16,64,9000,output tok/s"))


@pytest.mark.parametrize(("field", "judged"), [(LLAMA, True), ("llama_3.1_8b", True), ("Qwen/Qwen3-8B", False)])
def test_file_of_another_model_is_not_judged_by_the_described_one(tmp_path: Path, field: str, judged: bool) -> None:
    result = audit_of(tmp_path, f",{field},1024,64,70,req/s")
    assert (kinds(result) == {findings.ROOFLINE}) == judged
    assert (f"not judged by the roofline: its model '{field}' is not in the catalogue" in texts(result)) != judged


def test_name_of_a_file_that_names_another_family_is_kept(tmp_path: Path) -> None:
    assert not kinds(audit_of(tmp_path, ",,1024,64,70,req/s", name="qwen-run.csv"))
    assert kinds(audit_of(tmp_path, ",,1024,64,70,req/s", name="llama-run.csv")) == {findings.ROOFLINE}
    assert kinds(audit_of(tmp_path, ",,1024,64,70,req/s", name="run.csv")) == {findings.ROOFLINE}


def test_size_in_a_described_name_is_no_model_of_the_catalogue(tmp_path: Path) -> None:
    """1 active parameter of 12 in "my-12b": gemma-4-12b would need twelve times the work."""
    assert not kinds(audit_of(tmp_path, ",,1024,64,70,req/s", "my-12b=12B,1B,24GB,100kB/token"))
    assert kinds(audit_of(tmp_path, ",,1024,64,70,req/s", "gemma-4-12b")) == {findings.ROOFLINE}


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMATS)
def test_unknown_model_of_each_format_is_not_judged_by_name(tmp_path: Path, name: str) -> None:
    kind = FORMATS[name]
    path = tmp_path / "file"
    path.write_text(kind.text(kind.write(closed_load(3))), encoding="utf-8")
    audit = audit_files([path], machine=H100)
    assert not audit.findings
    text = texts(audit)
    assert "not judged by the roofline: " in text
    assert (f"its model '{LLAMA}' is not in the catalogue" in text) or ("it names no model of the catalogue" in text)
    judged = audit_files([path], machine=H100, model=EXAMPLE)
    assert "not judged by the roofline" not in texts(judged)
    assert not judged.findings


def test_claims_of_an_unknown_model_are_named(tmp_path: Path) -> None:
    path = tmp_path / "claims.json"
    claim = {"id": "fast", "metric": "throughput", "value": 9.5, "unit": "req/s", "hardware": "l4"}
    path.write_text(json.dumps({"claims": [claim, {**claim, "id": "own", "model": "gemma-4-12b"}]}))
    text = texts(audit_files([path]))
    assert "not judged by the roofline: fast: it names no model of the catalogue" in text
    assert "own" not in text
